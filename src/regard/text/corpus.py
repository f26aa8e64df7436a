"""Where sentence pairs come from: two files line by line, one table, standard input, or a built-in task.

A corpus can be read again and again, in the same order, and never lies in memory. What cannot be used is left out
and counted, with the first place of each kind; what makes a whole file doubtful is a DataError.
"""

import difflib
import hashlib
import logging
import shutil
import stat
import sys
import tempfile
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

from regard.errors import DataError, StorageError
from regard.text.builtin import grammar, tasks
from regard.text.formats import (
    LONGEST_LINE,
    Fault,
    Reason,
    Row,
    TextFile,
    Unreadable,
    comma_separated,
    every,
    explained,
    json_lines,
    near,
    parallel,
    shown,
    tab_separated,
)
from regard.text.pair import Pair

TABLES: dict[str, Callable[[TextFile, str], Iterator[Row]]] = {
    ".tsv": tab_separated,
    ".csv": comma_separated,
    ".jsonl": json_lines,
}


@dataclass
class Skips:
    """What a pass left out: how many pairs for each reason, and where the first of them stands."""

    counts: dict[Reason, int] = field(default_factory=dict)
    first: dict[Reason, str] = field(default_factory=dict)
    unit: str = "pair"

    def add(self, fault: Fault) -> None:
        """Count one more."""
        self.counts[fault.reason] = self.counts.get(fault.reason, 0) + 1
        self.first.setdefault(fault.reason, fault.place)

    @property
    def total(self) -> int:
        """Pairs left out, for whatever reason."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        """One readable sentence, without its full stop.

        >>> skips = Skips()
        >>> skips.add(Fault(Reason.EMPTY, "train.en:17"))
        >>> print(skips)
        left out 1 pair: 1 with an empty side (first: train.en:17)
        """
        if not self.total:
            return f"left out no {self.unit}s"
        parts = [f"{count:,} {reason.value} (first: {self.first[reason]})" for reason, count in self.counts.items()]
        return f"left out {self.total:,} {self.unit}{'s' if self.total > 1 else ''}: {', '.join(parts)}"

    def as_table(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {r.name.lower(): {"count": count, "first": self.first[r]} for r, count in self.counts.items()}


class Corpus(ABC):
    """Text pairs that can be read again and again, in the same order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = ""
        """The fingerprint, once it was computed, or told by whoever did."""
        self.skipped = Skips()

    @abstractmethod
    def pairs(self) -> Iterator[tuple[int, Pair]]:
        """Each usable pair and the number of its line, from 1. A complete pass leaves its count in `skipped`."""

    def all_pairs(self) -> Iterator[tuple[int, Pair]]:
        """Each pair, usable for training or not, and the number of its line: for a score, which is of all of them.

        A pair with an empty side is one; a line that holds no pair at all is an error.
        """
        return self.pairs()

    def fingerprint(self) -> str:
        """A hash that changes when the content does; a large text is read for it only once."""
        self.known = self.known or self.hashed()
        return self.known

    @abstractmethod
    def hashed(self) -> str:
        """The hash, computed from the content."""

    def place(self, number: int) -> str:
        """How messages point to a line."""
        return f"{self.name}:{number}"


class FileCorpus(Corpus):
    """Pairs from one file or two."""

    def __init__(self, files: Sequence[TextFile], rows: Callable[[], Iterator[Row]], columns: str = "") -> None:
        super().__init__(" + ".join(file.name for file in files))
        self.files = tuple(files)
        self.columns = columns
        self._rows = rows

    def pairs(self) -> Iterator[tuple[int, Pair]]:
        skips, usable = Skips(), 0
        for number, row in self._rows():
            if isinstance(row, Fault):
                skips.add(row)
            else:
                usable += 1
                yield number, row
        self.skipped = skips
        if not usable:
            what = f"{skips}. Mend these lines" if skips.total else "it is empty. Check how it was made"
            raise DataError(f"{self.name} holds no usable pair: {what}, or give another file.")

    def all_pairs(self) -> Iterator[tuple[int, Pair]]:
        usable, mended = 0, Skips(unit="line")
        for number, row in self._rows():
            pair = row.pair if isinstance(row, Fault) else row
            if isinstance(row, Fault) and row.reason is Reason.ENCODING and pair:
                mended.add(row)
            if pair is not None:
                usable += all(pair)
                yield number, pair
            elif isinstance(row, Fault) and row.reason not in (Reason.EMPTY, Reason.HEADING):
                raise DataError(f"{row.place} is a pair {row.reason.value}, which cannot be scored. Mend the line.")
        if not usable:
            raise DataError(f"{self.name} holds no usable pair: a side of each is empty. Give another file.")
        if mended.total:
            lines = "1 line is" if mended.total == 1 else f"{mended.total:,} lines are"
            logging.getLogger(__name__).warning(
                "%s not valid UTF-8 and scored with \ufffd in its place (first: %s)", lines, *mended.first.values()
            )

    def hashed(self) -> str:
        # Each file's hash goes in rather than its content, so that a line moved from one file to the next still shows.
        whole = hashlib.blake2b(self.columns.encode(), digest_size=16)
        for file in self.files:
            one = hashlib.blake2b()
            with explained(file.name), file.path.open("rb") as stream:
                while piece := stream.read(1 << 20):
                    one.update(piece)
            whole.update(one.digest())
        return whole.hexdigest()

    def place(self, number: int) -> str:
        return f"{self.files[0].name}:{number}"


@dataclass(frozen=True)
class Task:
    """How a built-in corpus is made; a pure function of count and seed."""

    make: Callable[[int, int], list[Pair]]
    count: int
    seed: int = 0


class BuiltinCorpus(Corpus):
    """Pairs that are made, not read."""

    def __init__(self, name: str, task: Task) -> None:
        super().__init__(name)
        self.task = task

    def pairs(self) -> Iterator[tuple[int, Pair]]:
        return enumerate(self._made, 1)

    def hashed(self) -> str:
        content = f"{self.name} {self.task.count} {self.task.seed}"
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()

    @cached_property
    def _made(self) -> list[Pair]:
        return self.task.make(self.task.count, self.task.seed)


BUILTIN: dict[str, Task] = {
    "builtin:en-fr": Task(partial(grammar.corpus, "train"), 100_000),
    "builtin:en-fr/valid": Task(partial(grammar.corpus, "valid"), 1000),
    "builtin:en-fr/test": Task(partial(grammar.corpus, "test"), 1000),
    "builtin:en-fr/ambiguous": Task(partial(grammar.ambiguous, "test"), 1000),
    # builtin:copy, builtin:copy/valid and so on, for each task and split.
    **{
        f"builtin:{name}/{split}".removesuffix("/train"): Task(partial(tasks.pairs, name, split), tasks.COUNTS[split])
        for name, rule in tasks.TASKS.items()
        for split in rule.lengths
    },
}


def open_corpus(names: Sequence[str], *, columns: str = "", spool: Path | None = None) -> Corpus:
    """The corpus that these names, as typed by the user, stand for.

    `columns` chooses among those of a table; two parallel files have none. `spool` is where standard input is kept.
    """
    if len(names) == 1:
        return _one(names[0], columns, spool)
    if len(names) != 2:
        raise DataError(f"A corpus cannot have {len(names)} names. Give two files, such as train.en train.fr, or one.")
    for name in names:
        if name == "-":
            raise DataError("Standard input (-) cannot be one side of a pair. Pipe both sides in, parted by a tab.")
        if name.startswith("builtin:"):
            raise DataError(f"{shown(name)} has both sides already. Give it alone.")
        if _ending(name) in TABLES:
            raise DataError(f"{shown(name)} holds both sides. Give it alone, or two files of plain lines.")
    sources, targets = (open_file(name) for name in names)
    if sources.path.samefile(targets.path):
        raise DataError(f"{sources.name} was given as both sides. Name the file with the translations as the second.")
    return FileCorpus([sources, targets], lambda: parallel(sources, targets))


def read_lines(path: str, *, unreadable: Unreadable | None = None) -> Iterator[str]:
    """The lines to translate, from a file or standard input (-): one item for each line, nothing left out.

    A line that cannot be read is an error, unless there is someone to be told of it; then it is empty.
    """
    if path == "-":
        return _stdin_lines(unreadable)
    # A pipe will do here: it is read once.
    return open_file(path, pipe=True).sentences(LONGEST_LINE, unreadable)


def _one(name: str, columns: str, spool: Path | None) -> Corpus:
    if name.startswith("builtin:"):
        return BuiltinCorpus(name, _builtin(name))
    if name == "-":
        return _from_stdin(columns, spool)
    file = open_file(name)
    if _ending(name) not in TABLES:
        raise DataError(
            f"{file.name} alone is one side of the pairs. Give the file with the other side too, "
            f"or one file that holds both and ends in {', '.join(TABLES)} or one of these and .gz. "
            "To learn from running text, train a language model: --model lm."
        )
    rows = TABLES[_ending(name)]
    return FileCorpus([file], lambda: rows(file, columns), columns)


def _builtin(name: str) -> Task:
    if name in BUILTIN:
        return BUILTIN[name]
    task, _, split = name.removeprefix("builtin:").partition("/")
    if split.isdecimal() and task in tasks.TASKS:
        tasks.lengths_of(task, split)  # told now, not after an hour of other work
        return Task(partial(tasks.pairs, task, split), tasks.EXACT)
    raise DataError(
        f"There is no {shown(name)}.{near(name, BUILTIN)} Known: {', '.join(BUILTIN)}; "
        "and a number after a task, such as builtin:copy/80, for sources of that length alone."
    )


def _ending(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def open_file(name: str, *, pipe: bool = False) -> TextFile:
    """The file of this name, once it is sure that it can be read."""
    path, called = Path(name), shown(name)
    try:
        kind = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"There is no file {called}.{_near_file(path)}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{called} cannot be opened: {reason}. Check the name.") from None
    if stat.S_ISDIR(kind.st_mode):
        raise DataError(f"{called} is a folder. Name the files in it.")
    if pipe:
        return TextFile(called, path)
    if not stat.S_ISREG(kind.st_mode):
        raise DataError(f"{called} can be read only once. Save it to a file, or pipe tab-separated pairs into -.")
    if not kind.st_size:
        raise DataError(f"{called} is empty. Check how it was made, or give another file.")
    with explained(called), path.open("rb"):  # told now, not after an hour of other work
        return TextFile(called, path)


def _near_file(path: Path) -> str:
    folder = shown(str(path.parent))
    try:
        known = sorted(other.name for other in path.parent.iterdir())
    except OSError:
        return f" The folder {folder} cannot be read either. Check the path."
    close = difflib.get_close_matches(path.name, known, n=3)
    if close:
        return f" Did you mean {' or '.join(shown(str(path.parent / name)) for name in close)}?"
    return f" Nothing in {folder} has a name like it. Check the path."


def standard_input() -> BinaryIO:
    """Its bytes; an error if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("Standard input (-) is closed. Pipe the text in, or name a file.")
    return sys.stdin.buffer


def _stdin_lines(unreadable: Unreadable | None) -> Iterator[str]:
    with explained("stdin"):
        yield from every("stdin", standard_input(), LONGEST_LINE, unreadable)


def _from_stdin(columns: str, spool: Path | None) -> Corpus:
    """Standard input can be read once and a corpus many times, so it is kept in a file first."""
    path = Path(tempfile.gettempdir(), f"regard-{uuid.uuid4().hex}.tsv") if spool is None else spool
    if not path.exists():
        keep_stdin(path)
    file = TextFile("stdin", path)
    corpus = FileCorpus([file], lambda: tab_separated(file, columns), columns)
    if spool is None:
        weakref.finalize(corpus, path.unlink, missing_ok=True)
    return corpus


def keep_stdin(path: Path) -> None:
    """Copy standard input into a file, which appears when it is complete."""
    stream, part = standard_input(), path.with_name(path.name + ".part")
    try:
        with part.open("wb") as written:
            shutil.copyfileobj(stream, written, 1 << 20)
        if not part.stat().st_size:
            raise DataError("Nothing came in on standard input. Pipe tab-separated pairs into -, or name a file.")
        part.replace(path)
    except OSError as error:
        raise StorageError(f"Standard input cannot be kept in {path}: {error.strerror}. Make room there.") from None
    finally:
        part.unlink(missing_ok=True)
