"""Texts as a caller gives them: one, or several in any iterable. Every public function that takes text begins here.

A lone surrogate (half a character, as from a command line that is not UTF-8) can be read and written by nobody: it becomes
U+FFFD. Anything but text is refused by the name of its argument.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from regard.errors import ArgumentError, DataError

T = TypeVar("T")
MOST_THREADS = 1024
_SURROGATE = re.compile("[\ud800-\udfff]")


class Texts(NamedTuple):
    """Texts that were given, and whether it was one by itself.

    To a type checker every string is an iterable of strings too; of a function's overloads, the one for a string wins.
    """

    texts: list[str]
    alone: bool

    def answer(self, results: list[T]) -> T | list[T]:
        """One result for one text, else all of them."""
        return results[0] if self.alone else results


def mended(text: str) -> str:
    """The text with U+FFFD for each surrogate that has no partner; two that belong together become their character.

    >>> mended("caf\\udce9 \\ud83d\\ude00")
    'caf\ufffd \U0001f600'
    """
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def text_of(given: str, name: str) -> str:
    """One text; `name` is the argument's, for the message if it is none."""
    if not isinstance(given, str):
        raise ArgumentError(f"{name} must be a string, not {_shown(given)}. Give one text.")
    return mended(given)


def texts_of(given: str | Iterable[str], name: str) -> Texts:
    """One text or several, from any iterable, which is read to its end."""
    return Texts(list(each_text(given, name)), isinstance(given, str))


def pairs_of(sources: str | Iterable[str], targets: str | Iterable[str]) -> tuple[Texts, Texts]:
    """One source with its target, or several sources with as many targets."""
    given, beside = texts_of(sources, "sources"), texts_of(targets, "targets")
    if given.alone != beside.alone:
        counts = ["is one text" if some.alone else f"are {len(some.texts)}" for some in (given, beside)]
        raise ArgumentError(f"sources {counts[0]} and targets {counts[1]}. Give one of both, or a list of both.")
    if len(given.texts) != len(beside.texts):
        raise DataError(f"{len(given.texts)} sources but {len(beside.texts)} targets. Give as many of each.")
    return given, beside


def each_text(given: str | Iterable[str], name: str) -> Iterator[str]:
    """One text or several, each checked when it is its turn; what holds no texts at all is refused at once."""
    if isinstance(given, str):
        return iter([mended(given)])
    return (_item(one, name, number) for number, one in enumerate(_iterable(given, name, "string")))


def paths_of(given: str | Path | Iterable[str | Path], name: str) -> list[str]:
    """The names of one file or folder, or of several."""
    if isinstance(given, str | Path):
        return [str(given)]
    found = list(_iterable(given, name, "path"))
    for number, one in enumerate(found):
        if not isinstance(one, str | Path):
            raise ArgumentError(
                f"{name}[{number}] must be a path, not {_shown(one)}. Give the name of a file or folder."
            )
    return [str(one) for one in found]


def word_of(given: str | int | None, name: str = "word") -> str | int | None:
    """A word by its spelling or its token's number, or none."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    if not isinstance(given, str):
        raise ArgumentError(f"{name} must be a string or a token's number, not {_shown(given)}. Name one word.")
    return mended(given)


def path_of(given: str | Path, name: str) -> Path:
    """One file or folder."""
    if not isinstance(given, str | Path):
        raise ArgumentError(f"{name} must be a path, not {_shown(given)}. Give the name of a file or folder.")
    return Path(given)


def threads_of(given: int) -> int:
    """How many threads; 0 = as many as there are cores."""
    if not 0 <= whole_number(given, "threads") <= MOST_THREADS:
        raise ArgumentError(f"threads {given} must lie between 0 (as many as there are cores) and {MOST_THREADS:,}.")
    return given


def whole_number(given: int, name: str) -> int:
    """A whole number, however large."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise ArgumentError(f"{name} must be a whole number, not {_shown(given)}.")
    return given


def _iterable(given: Iterable[T], name: str, kind: str) -> Iterator[T]:
    # The keys of a mapping are hardly what is meant, and bytes are numbers.
    if isinstance(given, bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        raise ArgumentError(f"{name} must be a {kind} or a list of them, not {_shown(given)}. Give one or several.")
    return iter(given)


def _item(given: str, name: str, number: int) -> str:
    if not isinstance(given, str):
        raise ArgumentError(f"{name}[{number}] must be a string, not {_shown(given)}. Leave it out, or give its text.")
    return mended(given)


def _shown(given: object) -> str:
    if given is None:
        return "None"
    try:
        value = repr(given)
    except Exception:  # whatever it is, the message is about its type
        return type(given).__name__
    return f"{value if len(value) <= 40 else value[:40] + '…'} ({type(given).__name__})"
