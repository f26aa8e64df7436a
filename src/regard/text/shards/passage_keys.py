"""Passages of running text, known again wherever they stand: so that what is validated on is not also trained on.

A passage is a few lines of a document: as many, from one of them on, as hold enough letters to be more than a phrase that
every text has. A shorter document is a passage as a whole.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from regard.text.plain_text import Line

LETTERS = 50  # of a passage, spaces apart
MOST_LINES = 64  # in which so few letters are no passage, so that very many empty lines need not be held
SHARE = 10  # of so many lines, at most one is lost to training as a copy
COMMON = 1000  # what begins more than one of so many lines is like a licence, and not validated on ...
MOST_COPIES = 10  # ... unless it is there no more often than this
TOLD_EVERY = 2000  # lines

Lines = Callable[[], Iterator[Line]]
"""Gives all lines anew at each call, always the same ones."""


class Beginning(NamedTuple):
    """The passage that begins with a line."""

    key: int | None
    """A hash of the passage, good for this process only; None if no passage begins here."""
    size: int
    """How many lines the passage has."""


def beginnings(lines: Iterator[Line]) -> Iterator[Beginning]:
    """Of each line."""
    return (beginning for _, beginning in marked(lines))


def marked(lines: Iterator[Line]) -> Iterator[tuple[Line, Beginning]]:
    """Each line with the passage that begins with it."""
    ahead: deque[Line] = deque()
    first = True
    while True:
        key, count = _passage(ahead, lines, whole=first)
        if not ahead:
            return
        line = ahead.popleft()
        yield line, Beginning(key, count)
        first = line.closes


def _passage(ahead: deque[Line], lines: Iterator[Line], *, whole: bool) -> tuple[int | None, int]:
    """The passage at the beginning of `ahead`, which is filled as far as is needed for it."""
    parts: list[str] = []
    letters = count = 0
    while count < MOST_LINES:
        if count == len(ahead):
            following = next(lines, None)
            if following is None:
                break
            ahead.append(following)
        line = ahead[count]
        count += 1
        if bare := line.text.split():
            parts.append(" ".join(bare))
            letters += sum(map(len, bare))
        elif count == 1 and not whole:
            break  # a passage does not begin with an empty line
        if letters >= LETTERS:
            return hash(tuple(parts)), count
        if line.closes:
            return (hash((None, *parts)), count) if whole and parts else (None, count)
    return None, count


@dataclass(frozen=True)
class Tail:
    """The last lines of a text, held out, but for some of them."""

    first: int
    """The place of the first of them, from 0."""
    without: Sequence[int] = ()
    """Places of lines that every part of the text has, so that they are not validated on."""

    def keys(self, lines: Lines) -> set[int]:
        """Of all passages that are held out."""
        without = set(self.without)
        held_out = enumerate(islice(beginnings(lines()), self.first, None), self.first)
        return {one.key for place, one in held_out if one.key is not None and place not in without}


def held_out(last: Sequence[Beginning], count: int, lines: Lines, told: Callable[[int], object]) -> Tail:
    """As many of the `last` of `count` lines as cost training no more than a tenth; a pass counts their copies."""
    totals = _totals(last, lines, told)
    common = {key for key, total in totals.items() if total > max(MOST_COPIES, count // COMMON)}
    without = _covered(last, common)
    if 2 * len(without) > len(last):  # the whole text is there many times over
        common, without = set(), set()
    seen, lost, most = set(common), 0, 0
    for size, one in enumerate(reversed(last), 1):
        if one.key is not None and one.key not in common:
            lost += -1 if one.key in seen else totals[one.key] - 1
            seen.add(one.key)
        if lost <= count // SHARE:
            most = size
    first = count - most
    return Tail(first, [place for place in sorted(count - len(last) + n for n in without) if place >= first])


def _totals(last: Sequence[Beginning], lines: Lines, told: Callable[[int], object]) -> dict[int, int]:
    """How often each of these passages occurs in the text."""
    totals = {one.key: 0 for one in last if one.key is not None}
    for number, one in enumerate(beginnings(lines())):
        if one.key in totals:
            totals[one.key] += 1
        if number % TOLD_EVERY == 0:
            told(number)
    return totals


def _covered(last: Sequence[Beginning], keys: set[int]) -> set[int]:
    """Which of the lines belong to passages with these keys."""
    starts = (n for n, one in enumerate(last) if one.key in keys)
    return {place for n in starts for place in range(n, min(len(last), n + last[n].size))}
