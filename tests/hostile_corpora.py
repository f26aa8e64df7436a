"""Text as nobody should write it, and what must come of it: in tests a little of each, in torture as large as it comes."""

import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from regard.config import read
from regard.errors import DataError
from regard.text.corpus import open_corpus
from regard.text.plain_text import open_documents
from regard.text.shards.prepare_pairs import prepare
from regard.text.shards.prepare_text import prepare_text
from regard.text.tokenizers.tokenizer import learn_tokenizer

CLEAN = 500  # lines that nothing is wrong with, about half of them before what is
WORDS = read({"text": {"tokenizer": "words"}}).text


class Hostile(NamedTuple):
    """A corpus with something wrong in it."""

    what: str
    kind: str
    """What it is read as: pairs, text or labels."""
    files: dict[str, bytes]
    left_out: str = ""
    """What is said of what was left out; nothing, if nothing is."""
    refused: str = ""
    """What is said, if the file is not read at all."""


def line(number: int, ending: str) -> bytes:
    """A line that nothing is wrong with."""
    source, target = f"source number {number}", f"target number {number}"
    texts = {".tsv": f"{source}\t{target}", ".csv": f"{source},{target}", ".label": f"{source}\t{number % 2}"}
    texts[".jsonl"] = json.dumps({"source": source, "target": target})
    return texts.get(ending, f"{source}, and more of it so that it is a passage of its own").encode() + b"\n"


def around(fault: bytes, ending: str, end: bytes = b"\n") -> bytes:
    """Clean lines with others in their midst."""
    clean = [line(number, ending).replace(b"\n", end) for number in range(CLEAN)]
    return b"".join([*clean[: CLEAN // 2], fault, *clean[CLEAN // 2 :]])


def _plain(ending: str, kind: str, size: int) -> Iterator[Hostile]:
    """Each fault in one kind of file."""
    head = b"source,target\n" if ending == ".csv" else b""
    one = partial(_one, kind=kind, name="a.tsv" if ending == ".label" else f"a{ending}")
    for what, fault, left_out in _lines({".csv": b",", ".txt": b" "}.get(ending, b"\t"), size):
        # An empty line of running text parts paragraphs.
        yield one(what, head + around(fault, ending), "" if ending == ".txt" and "empty" in what else left_out)
    yield one("CRLF", head + around(b"", ending, b"\r\n"))
    yield one("a mark of UTF-8", b"\xef\xbb\xbf" + head + around(b"", ending))
    yield one("no end of the last line", (head + around(b"", ending))[:-1])
    yield one("nothing", b"", refused="is empty")
    yield one("nothing but empty lines", b"\n" * (10**6 // size), refused="holds no")
    yield one("UTF-16", (head + around(b"", ending)).decode().encode("utf-16"), refused="is UTF-16 text")
    yield one("a line of Latin-1", head + around(b"caf\xe9\n", ending), "1 not valid UTF-8")
    yield one("most of it Latin-1", head + b"caf\xe9\n" * CLEAN, refused="is probably not UTF-8")


def _one(what: str, content: bytes, left_out: str = "", refused: str = "", *, kind: str, name: str) -> Hostile:
    return Hostile(what, kind, {name: content}, left_out, refused)


def _lines(tab: bytes, size: int) -> Iterator[tuple[str, bytes, str]]:
    """Bad lines, and how their number is told."""
    yield "a NUL", b"a\0b" + tab + b"c\n", "1 with a NUL character"
    yield "bytes that are not UTF-8", b"\xff\xfe\xed\xa0\x80" + tab + b"c\n", "1 not valid UTF-8"
    large = max(1_100_000, 10**7 // size)
    yield "a line of 10 MB", b"x" * large + tab + b"c\n", "1 longer than"
    yield "a line of 10 MB of NULs", bytes(large) + tab + b"c\n", "1 longer than"
    yield "10^6 empty lines", b"\n" * (10**6 // size), f"{10**6 // size:,} with an empty side"


def _parallel(size: int) -> Iterator[Hostile]:
    """Two files, one of which is not what it should be."""
    clean = around(b"", ".txt")
    for what, fault, left_out in _lines(b" ", size):
        yield Hostile(f"{what}, in one of two files", "pairs", {"a.en": around(fault, ".txt"), "a.fr": around(
            b"d\n" * fault.count(b"\n"), ".txt")}, left_out)  # fmt: skip
    yield Hostile(
        "a lost line", "pairs", {"a.en": clean, "a.fr": clean[clean.index(b"\n") + 1 :]}, refused="has 499 lines"
    )
    more = {"a.en": clean, "a.fr": clean + b"\n" * (10**6 // size)}
    yield Hostile("10^6 lines more on one side", "pairs", more, refused=f"has {CLEAN + 10**6 // size} lines")
    yield Hostile("CRLF on one side", "pairs", {"a.en": clean, "a.fr": clean.replace(b"\n", b"\r\n")})
    yield Hostile("one side empty", "pairs", {"a.en": clean, "a.fr": b""}, refused="is empty")
    yield Hostile(
        "one side without text", "pairs", {"a.en": clean, "a.fr": b"\n" * CLEAN}, refused="holds no usable pair"
    )


def _packed(size: int) -> Iterator[Hostile]:
    """Files that are compressed, or should be."""
    clean = around(b"", ".tsv")
    whole = gzip.compress(clean)
    bomb = gzip.compress(clean + bytes(max(1_100_000, 10**8 // size)) + b"\n" + clean, 1)
    packed = partial(_one, kind="pairs", name="a.tsv.gz")
    yield packed("100 MB of NULs in 100 KB", bomb, "1 longer than")
    yield packed("cut off in the middle", whole[: len(whole) // 2], refused="is not a whole gzip file")
    yield packed("compressed, but for its name", clean, refused="is not a whole gzip file")
    yield packed("half of it is noise", whole[:99] + bytes(range(256)) * 9, refused="is not a whole gzip file")
    yield Hostile("compressed, and not named so", "pairs", {"a.tsv": whole}, refused="is compressed by gzip")


def _broken(size: int) -> Iterator[Hostile]:
    """Tables that end in the wrong place."""
    csv, jsonl = partial(_one, kind="pairs", name="a.csv"), partial(_one, kind="pairs", name="a.jsonl")
    clean = b"source,target\n" + around(b"", ".csv")
    yield csv("a quote that is never closed", clean + b'"' + clean * (4000 // size), refused="quote")
    yield csv("a field of a megabyte", clean + b'"' + b"x" * (10**6) + b'",y\n')
    yield csv("a thousand columns", clean + b"a," * 1000 + b"\n")
    yield csv("one column", clean.replace(b",", b";"), refused="has one column only")
    yield jsonl("brackets without end", around(b"[" * 10**6 + b"\n", ".jsonl"), refused="is not valid JSON")
    yield jsonl("a number of a million digits", around(b"9" * 10**6 + b"\n", ".jsonl"), refused="JSON")
    yield jsonl("half a character", around(b'{"source": "\\ud800", "target": "a"}\n', ".jsonl"), "1 not valid UTF-8")
    yield jsonl("another type", around(b'{"source": {}, "target": "a"}\n', ".jsonl"), refused="holds dict, not text")
    yield jsonl("a lost key", around(b'{"source": "a"}\n', ".jsonl"), refused="has no key 'target'")


GROUPS: dict[str, Callable[[int], Iterator[Hostile]]] = {
    "tab-separated": partial(_plain, ".tsv", "pairs"),
    "comma-separated": partial(_plain, ".csv", "pairs"),
    "JSON lines": partial(_plain, ".jsonl", "pairs"),
    "running text": partial(_plain, ".txt", "text"),
    "labelled": partial(_plain, ".label", "labels"),
    "two files": _parallel,
    "gzip": _packed,
    "broken tables": _broken,
}
"""Made by how large the large ones are: 1 for their full size, 100 for a hundredth of it."""


def notes_of(hostile: Hostile, folder: Path) -> list[str]:
    """Write the files, and make them ready for training; what is said of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in hostile.files.items():
        (folder / name).write_bytes(content)
    return prepared(hostile.kind, [str(folder / name) for name in hostile.files], folder / "tokens")


def prepared(kind: str, names: list[str], to: Path) -> list[str]:
    """Make these files ready for training; what is said of them."""
    texts = open_documents(names) if kind == "text" else open_corpus(names)
    learn = partial(learn_tokenizer, config=WORDS)
    make: Callable[..., Any] = {"pairs": prepare, "text": prepare_text}.get(kind, _labels)
    notes: list[str] = make(texts, None, WORDS, to, 1, lambda what, done: None, learn).notes
    return notes


def _labels(*given: Any) -> Any:
    from regard.text.batching.labelled import (
        prepare_labels,  # the only one that needs torch, which takes most of the memory
    )

    return prepare_labels(*given)


def verdict(hostile: Hostile, notes: list[str] | DataError) -> str:
    """What is wrong with what was said; nothing, if it is what must be."""
    if isinstance(notes, DataError):
        told = str(notes)
        named = any(name in told for name in hostile.files) and "\n" not in told
        return "" if hostile.refused and hostile.refused in told and named else f"refused: {told}"
    told = "; ".join(notes)
    if hostile.refused:
        return f"read: {told}"
    return "" if hostile.left_out in told and ("left out" in told) == bool(hostile.left_out) else f"said: {told}"
