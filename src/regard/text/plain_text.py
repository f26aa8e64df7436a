"""Where running text comes from: files, JSON lines, standard input, or the one built in. For models of language.

Text is read line by line, so that a book or a thousand of them never lie in memory; each line says whether its
document ends with it.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from regard.errors import DataError
from regard.text.corpus import TABLES, Skips, keep_stdin, open_file
from regard.text.formats import Fault, Reason, TextFile, explained, near, shown

BUILTIN = {f"builtin:python{split}": split.removeprefix("/") or "train" for split in ("", "/valid", "/test")}


class Line(NamedTuple):
    """A line of a document, with its line feed if another one follows."""

    text: str
    closes: bool
    """Whether the document ends here."""


class Documents(ABC):
    """Running text that can be read again and again, in the same order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = ""
        """The fingerprint, once it was computed, or told by whoever did."""
        self.skipped = Skips(unit="line")

    @abstractmethod
    def lines(self) -> Iterator[Line]:
        """All lines of all documents. A complete pass leaves what it left out in `skipped`."""

    def fingerprint(self) -> str:
        """A hash that changes when the content does; a large text is read for it only once."""
        self.known = self.known or self.hashed()
        return self.known

    @abstractmethod
    def hashed(self) -> str:
        """The hash, computed from the content."""


def open_documents(
    names: Sequence[str], *, unit: str = "file", columns: str = "", spool: Path | None = None
) -> Documents:
    """The text that these names, as typed by the user, stand for.

    `unit` is what counts as one document of a plain file: the whole file, a paragraph (up to a blank line), or a line.
    """
    for name in names:
        if name.startswith("builtin:"):
            if name not in BUILTIN:
                raise DataError(f"There is no text {shown(name)}.{near(name, BUILTIN)} Known: {', '.join(BUILTIN)}.")
            if len(names) > 1:
                raise DataError(f"{shown(name)} is a text by itself. Give it alone.")
            return Manual(name, BUILTIN[name])
    if list(names) == ["-"]:
        if spool is None:
            raise DataError("Standard input (-) cannot be read twice. Save it to a file, and name that.")
        if not spool.exists():
            keep_stdin(spool)
        return Files([TextFile("stdin", spool)], unit, columns)
    return Files([open_file(name) for name in names], unit, columns)


class Files(Documents):
    """Text from files: plain, or one JSON object a line."""

    def __init__(self, files: Sequence[TextFile], unit: str, key: str = "") -> None:
        super().__init__(" + ".join(file.name for file in files))
        self.files, self.unit, self.key = tuple(files), unit, key or "text"
        for file in files:
            if _ending(file.name) in set(TABLES) - {".jsonl"}:
                raise DataError(f"{file.name} is a table. Give plain text, or JSON lines with a key {self.key!r}.")

    def lines(self) -> Iterator[Line]:
        skips, usable = Skips(unit="line"), 0
        for file in self.files:
            documents = self._json(file, skips) if _ending(file.name) == ".jsonl" else self._plain(file, skips)
            for line in documents:
                usable += bool(line.text.strip())
                yield line
        self.skipped = skips
        if not usable:
            raise DataError(f"{self.name} holds no text. Check how it was made, or give another file.")

    def hashed(self) -> str:
        whole = hashlib.blake2b(f"{self.unit} {self.key}".encode(), digest_size=16)
        for file in self.files:
            with explained(file.name), file.path.open("rb") as stream:
                whole.update(hashlib.file_digest(stream, hashlib.blake2b).digest())
        return whole.hexdigest()

    def _plain(self, file: TextFile, skips: Skips) -> Iterator[Line]:
        texts = _usable(file, skips)
        if self.unit == "line":
            return (Line(text, closes=True) for text in texts if text.strip())
        return _joined(texts, (lambda text: not text.strip()) if self.unit == "paragraph" else (lambda _: False))

    def _json(self, file: TextFile, skips: Skips) -> Iterator[Line]:
        for number, text in enumerate(_usable(file, skips), 1):
            place = f"{file.name}:{number}"
            try:
                table = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{place} is not valid JSON ({error}). Put one whole object on each line.") from None
            if not isinstance(table, dict) or not isinstance(table.get(self.key), str):
                raise DataError(
                    f"{place} has no text under the key {self.key!r}. Name the key that holds the text with --columns."
                )
            yield from of_document(table[self.key])


class Manual(Documents):
    """Python's own manual, as its `help()` knows it: some hundred topics of English prose, in every installation.

    Another version of Python has slightly other topics. Every tenth is for validation, and every tenth for testing.
    """

    def __init__(self, name: str, split: str) -> None:
        super().__init__(name)
        self.split = split

    def lines(self) -> Iterator[Line]:
        for topic in self._topics:
            yield from of_document(topic)

    def hashed(self) -> str:
        return hashlib.blake2b("\0".join(self._topics).encode(), digest_size=16).hexdigest()

    @cached_property
    def _topics(self) -> list[str]:
        from pydoc_data.topics import topics

        places = {"valid": {0}, "test": {1}}.get(self.split, set(range(2, 10)))
        return [topics[name].strip() for number, name in enumerate(sorted(topics)) if number % 10 in places]


def of_document(text: str) -> Iterator[Line]:
    """The lines of one document.

    >>> list(of_document("one\\ntwo"))
    [Line(text='one\\n', closes=False), Line(text='two', closes=True)]
    """
    return _joined(text.split("\n"), lambda _: False)


def _joined(texts: Iterable[str], parts: Callable[[str], bool]) -> Iterator[Line]:
    """Lines, each of which is told only once it is known whether another one follows it in its document."""
    held: str | None = None
    for text in texts:
        ends = parts(text)
        if held is not None:
            yield Line(held, closes=True) if ends else Line(held + "\n", closes=False)
        held = None if ends else text
    if held is not None:
        yield Line(held, closes=True)


def _usable(file: TextFile, skips: Skips) -> Iterator[str]:
    for number, (text, fault) in enumerate(file.lines(), 1):
        if fault in (Reason.LONG, Reason.ENCODING, Reason.NUL):
            skips.add(Fault(fault, f"{file.name}:{number}"))
        else:
            yield text


def _ending(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix
