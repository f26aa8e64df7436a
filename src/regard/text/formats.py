"""Bytes -> lines -> rows: plain lines, tab-separated, CSV and JSON lines, gzipped or not.

A line that cannot be used becomes a Fault, to be counted and left out; a file that cannot be trusted is a DataError.
Only a line feed ends a line: U+2028 or a vertical tab inside a sentence must not tear two parallel files apart.
"""

import csv
import difflib
import gzip
import json
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from regard.errors import DataError
from regard.text.arguments import mended
from regard.text.headings import pairs_heading
from regard.text.pair import Pair

LONGEST_LINE = 1 << 20  # bytes: room for a hundred thousand words, and no danger to memory
JUDGED = 999  # lines by which a file is judged that is answered 1,000 lines at a time: before any is
TOO_MANY_INVALID = 10  # lines, and at least a tenth of the file: then it is the file that is wrong, not the lines

# What a file of text never starts with, and the way out. The mark of UTF-8 is not here: it does no harm.
NOT_TEXT = {
    b"\xff\xfe": "is UTF-16 text. Convert it: iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "is UTF-16 text. Convert it: iconv -f utf-16 -t utf-8",
    b"\x1f\x8b": "is compressed by gzip. Let its name end in .gz, or unpack it: gzip -d",
    b"PK\x03\x04": "is a zip archive. Unpack it: unzip",
    b"\xfd7zXZ\x00": "is compressed by xz. Unpack it: xz -d",
    b"BZh91AY&SY": "is compressed by bzip2. Unpack it: bzip2 -d",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd. Unpack it: zstd -d",
}
HEADINGS = (("source", "target"), ("src", "tgt"))


class Reason(Enum):
    """Why a pair is left out, worded to follow a count."""

    EMPTY = "with an empty side"
    NUL = "with a NUL character"
    LONG = f"longer than {LONGEST_LINE:,} bytes"
    ENCODING = "not valid UTF-8"
    COLUMNS = "with too few columns"
    HEADING = "taken for a heading"


class Fault(NamedTuple):
    """A pair that cannot be used, and where it stands."""

    reason: Reason
    place: str
    pair: Pair | None = None
    """What is there of it, if a score can do with it: with an empty side, say."""


Line = tuple[str, Reason | None]
Row = tuple[int, Pair | Fault]
Unreadable = Callable[[int, str], None]
"""Told the number of a line that cannot be read, and why."""


@dataclass(frozen=True)
class TextFile:
    """A file of lines, under the name the user knows it by."""

    name: str
    path: Path

    def lines(self) -> Iterator[Line]:
        """Each line's text and what is wrong with it."""
        with explained(self.name), self._open() as stream:
            yield from split(self.name, stream)

    def sentences(self, longest: int, unreadable: Unreadable | None = None) -> Iterator[str]:
        """Each line's text, none left out."""
        with explained(self.name), self._open() as stream:
            yield from every(self.name, stream, longest, unreadable)

    def _open(self) -> BinaryIO:
        return cast(BinaryIO, gzip.open(self.path)) if self.name.lower().endswith(".gz") else self.path.open("rb")


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn what reading can raise into a DataError that names the file."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name} is not a whole gzip file ({error}). Copy or compress it again.") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror or error}. Check its permissions.") from None


def split(name: str, stream: BinaryIO, longest: int = LONGEST_LINE, judged: int = 0) -> Iterator[Line]:
    """Cut a stream at line feeds, never holding more of a line than `longest` bytes.

    Whether it is UTF-8 at all is judged by the first so many lines, or by all.
    """
    count = invalid = first_invalid = 0

    def judge() -> None:
        if invalid >= TOO_MANY_INVALID and 10 * invalid > count:
            raise DataError(
                f"{name} is probably not UTF-8: {invalid:,} of its {'first ' * bool(judged)}{count:,} lines are not "
                f"(first: {name}:{first_invalid}). If it is Latin-1, convert it: {_conversion(name)}"
            )

    while raw := stream.readline(longest + 2):  # room for both characters of a line end
        if judged and count == judged:
            judge()
        count += 1
        if count == 1:
            raw = _without_mark(name, raw)
        content = raw.removesuffix(b"\n").removesuffix(b"\r")
        if len(content) > longest:
            quotes = raw.count(b'"') + (0 if raw.endswith(b"\n") else _drop_rest(stream))
            # A CSV reader must still learn whether a quoted field was opened or closed on the line it never sees.
            yield '"' * (quotes % 2), Reason.LONG
            continue
        try:
            text = content.decode()
        except UnicodeDecodeError:
            invalid += 1
            first_invalid = first_invalid or count
            yield content.decode(errors="replace"), Reason.ENCODING
            continue
        yield text, Reason.NUL if "\0" in text else None
    if not judged or count < judged:
        judge()


def every(name: str, stream: BinaryIO, longest: int, unreadable: Unreadable | None = None) -> Iterator[str]:
    """The text of every line, for none may go missing: one that cannot be read is an error, or empty if someone is told."""
    for number, (text, fault) in enumerate(split(name, stream, longest, JUDGED if unreadable else 0), 1):
        why = ""
        if fault is Reason.ENCODING:
            why = f"{name}:{number} is not valid UTF-8. If it is Latin-1, convert it: {_conversion(name)}"
        if fault is Reason.LONG:
            why = f"{name}:{number} is longer than {longest:,} bytes. Put each sentence on its own line."
        if not why:
            yield text
        elif unreadable:
            unreadable(number, why)
            yield ""
        else:
            raise DataError(why)


def parallel(sources: TextFile, targets: TextFile) -> Iterator[Row]:
    """Line i of one file with line i of the other."""
    lines = [0, 0]
    for number, (source, target) in enumerate(zip_longest(sources.lines(), targets.lines()), 1):
        lines = [lines[0] + (source is not None), lines[1] + (target is not None)]
        if source is None or target is None:
            continue  # count on, so that the message can tell both lengths
        for file, (text, fault) in ((sources, source), (targets, target)):
            if fault or not text.strip():
                known = None if Reason.LONG in (source[1], target[1]) else Pair(tidy(source[0]), tidy(target[0]))
                yield number, Fault(fault or Reason.EMPTY, f"{file.name}:{number}", known)
                break
        else:
            yield number, Pair(tidy(source[0]), tidy(target[0]))
    if lines[0] != lines[1]:
        raise DataError(
            f"{sources.name} has {_lines(lines[0])}, {targets.name} has {_lines(lines[1])}. Each line must stand beside its "
            "translation: find where they part (a lost or doubled line), or put both into one .tsv file."
        )


def tab_separated(file: TextFile, columns: str) -> Iterator[Row]:
    """Two columns of a table without quoting, by number; a heading above them is left out."""
    wanted = _two(columns) or ("1", "2")
    if not all(column.isdecimal() and int(column) > 0 for column in wanted):
        raise DataError(f"text.columns {columns!r} does not suit {file.name}: give numbers from 1, such as 1,2.")
    first, second = (int(column) - 1 for column in wanted)
    rows = _cut_at_tabs(file, first, second)
    top = list(islice(rows, 2))
    pairs = [row if isinstance(row, Pair) else None for _, row in top]
    if pairs and pairs[0] and pairs_heading(pairs[0], pairs[-1]):
        top[0] = 1, Fault(Reason.HEADING, f"{file.name}:1")
    yield from chain(top, rows)


def _cut_at_tabs(file: TextFile, first: int, second: int) -> Iterator[Row]:
    for number, (text, fault) in enumerate(file.lines(), 1):
        place = f"{file.name}:{number}"
        if not fault and not text.strip():
            yield number, Fault(Reason.EMPTY, place, Pair("", ""))
        else:
            yield number, _chosen(text.split("\t"), first, second, place, fault)


def comma_separated(file: TextFile, columns: str) -> Iterator[Row]:
    """Two columns of a CSV table with a header; a record is known by the line on which it begins."""
    # No line is longer, so that only a field of many lines can be; and one of very many lacks its closing quote.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    feed = _Feed(file.lines())
    records = csv.reader(feed, strict=True)
    chosen: tuple[int, int] | None = None
    while True:
        number, feed.fault = feed.number + 1, None
        place = f"{file.name}:{number}"
        try:
            record = next(records, None)
        except csv.Error as error:
            if "field limit" in str(error):
                raise DataError(
                    f"{place} begins a field of more than {LONGEST_LINE:,} characters. Close the quote that opens it, or "
                    "shorten the field."
                ) from None
            raise DataError(f"{place} is not valid CSV ({error}). Look for a quote that is not closed there.") from None
        if record is None:
            return
        if chosen is None and (feed.fault or not record):
            yield number, Fault(feed.fault or Reason.EMPTY, place)
        elif chosen is None:
            chosen = _headed(record, columns, place)
        elif not record:
            yield number, Fault(feed.fault or Reason.EMPTY, place, None if feed.fault else Pair("", ""))
        else:
            yield number, _chosen(record, *chosen, place, feed.fault)


class _Feed:
    """Lines for csv.reader, which takes as many as a record needs; keeps what was wrong with any of them."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.number = 0
        self.fault: Reason | None = None
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        for text, fault in self._lines:
            self.number += 1
            self.fault = self.fault or fault
            yield text.replace("\r", " ") + "\n"


def json_lines(file: TextFile, columns: str) -> Iterator[Row]:
    """One object a line. The first decides which keys are meant, so that key order can never swap the languages."""
    keys: tuple[str, ...] = ()
    for number, (text, fault) in enumerate(file.lines(), 1):
        place = f"{file.name}:{number}"
        if fault or not text.strip():
            yield number, Fault(fault or Reason.EMPTY, place, None if fault else Pair("", ""))
            continue
        try:
            table = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place} is not valid JSON ({error}). Put one whole object on each line.") from None
        if not isinstance(table, dict):
            raise DataError(f'{place} is not a JSON object. Write {{"source": "...", "target": "..."}} on each line.')
        keys = keys or _json_keys(table, columns, place)
        yield number, _json_pair(table, keys, place)


def _json_keys(table: dict[str, Any], columns: str, place: str) -> tuple[str, ...]:
    """The two keys, and before them the key of the object they are in, if it is not the line itself."""
    inner = table.get("translation")
    if wanted := _two(columns):
        return ("translation", *wanted) if isinstance(inner, dict) and wanted[0] not in table else wanted
    for names in HEADINGS:
        if all(name in table for name in names):
            return names
    if isinstance(inner, dict) and len(inner) > 1:
        return ("translation", *list(inner)[:2])
    example = ",".join(list(table)[:2]) if len(table) > 1 else "en,fr"
    raise DataError(
        f"{place} has no keys source and target; it has: {_listed(table)}. Name the two: text.columns={shown(example)}"
    )


def _json_pair(table: dict[str, Any], keys: tuple[str, ...], place: str) -> Pair | Fault:
    inner: Any = table.get(keys[0]) if len(keys) == 3 else table
    texts, fault = [], None
    for key in keys[-2:]:
        if not isinstance(inner, dict) or key not in inner:
            known = inner if isinstance(inner, dict) else table
            raise DataError(f"{place} has no key {key!r}; it has: {_listed(known)}.{near(key, known)} Mend the line.")
        value = "" if inner[key] is None else inner[key]
        if not isinstance(value, str):
            raise DataError(f"{place}: {key!r} holds {type(value).__name__}, not text. Write it in quotes.")
        # Escapes such as \ud800 name half a character: it reads as JSON, but cannot be written as UTF-8.
        texts.append(mended(value))
        fault = fault or (Reason.ENCODING if texts[-1] != value else Reason.NUL if "\0" in value else None)
    return _chosen(texts, 0, 1, place, fault)


def _chosen(cells: list[str], first: int, second: int, place: str, fault: Reason | None = None) -> Pair | Fault:
    """Two of the cells; a fault if one of them is empty, or there was one before."""
    if fault is Reason.LONG or len(cells) <= max(first, second):
        return Fault(fault or Reason.COLUMNS, place)
    pair = Pair(tidy(cells[first]), tidy(cells[second]))
    return pair if all(pair) and not fault else Fault(fault or Reason.EMPTY, place, pair)


def _headed(header: list[str], columns: str, place: str) -> tuple[int, int]:
    """Which two columns of a CSV table are meant."""
    names = [name.strip() for name in header]
    if wanted := _two(columns):
        for name in wanted:
            if name not in names and not (name.isdecimal() and 0 < int(name) <= len(names)):
                raise DataError(f"{place} has no column {name!r}; it has: {_listed(names)}.{near(name, names)}")
        first, second = (names.index(name) if name in names else int(name) - 1 for name in wanted)
        return first, second
    if len(names) < 2:
        raise DataError(f"{place} has one column only. Part the columns by commas, or call a tab-separated file .tsv.")
    small = [name.lower() for name in names]
    for source, target in HEADINGS:
        if source in small and target in small:
            return small.index(source), small.index(target)
    return 0, 1


def _two(columns: str) -> tuple[str, str] | None:
    """`"en, fr"` -> `("en", "fr")`; nothing if none are named."""
    names = [name.strip() for name in columns.split(",")]
    if not columns.strip():
        return None
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise DataError(f"text.columns {columns!r} does not name two columns. Write it as SOURCE,TARGET.")
    return names[0], names[1]


def tidy(text: str) -> str:
    """A sentence on one line, without white space at its ends."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ").strip()


def near(word: str, known: Iterable[str]) -> str:
    """A hint at the name that was probably meant, to end a message with."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {shown(close[0])}?" if close else ""


def shown(name: str) -> str:
    """A name fit for a message of one line.

    >>> print(shown("train.en"), shown("two\\nlines"))
    train.en 'two\\nlines'
    """
    return name if name and name.isprintable() else repr(name)


def _listed(names: Iterable[str] | Mapping[str, Any]) -> str:
    return ", ".join(shown(name[:40]) for name in list(names)[:8]) or "nothing"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _without_mark(name: str, raw: bytes) -> bytes:
    for start, what in NOT_TEXT.items():
        if raw.startswith(start):
            raise DataError(f"{name} {what} {shlex.quote(name)}")
    return raw.removeprefix(b"\xef\xbb\xbf")


def _conversion(name: str) -> str:
    """The command that makes UTF-8 of it, the ending kept, for it tells the format.

    >>> _conversion("data/train.fr")
    'iconv -f latin1 -t utf-8 data/train.fr > data/utf8-train.fr'
    """
    plain = name.removesuffix(".gz")
    source = shlex.quote(name) if plain == name else f"<(zcat {shlex.quote(name)})"
    return f"iconv -f latin1 -t utf-8 {source} > {shlex.quote(str(Path(plain).parent / f'utf8-{Path(plain).name}'))}"


def _drop_rest(stream: BinaryIO) -> int:
    """Read to the end of the line; how many quotes there were."""
    quotes = 0
    while piece := stream.readline(1 << 20):
        quotes += piece.count(b'"')
        if piece.endswith(b"\n"):
            break
    return quotes
