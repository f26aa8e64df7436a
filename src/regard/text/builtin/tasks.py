"""Built-in tasks whose right answer is computed: copy, reverse, sort, addition, numbers, dates.

They need no file and no ear for language, and their sources can be made as long as one likes: `long` holds sources
longer than any in training, so that a score on it tells whether a model learned the rule or only the lengths it saw;
and a number for a split, such as 80, holds sources of that length alone.
A source belongs to the split (train, valid, test) on which its hash falls, so what is held out is never learned from.
"""

import re
import string
import zlib
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from random import Random
from typing import NamedTuple

from regard.errors import DataError
from regard.text.formats import near, shown
from regard.text.pair import Pair

COUNTS = {"train": 20_000, "valid": 500, "test": 500, "long": 200}
EXACT = 200  # pairs of one length; fewer, where there are no more
HASHED = ("train", "valid", "test")
PATIENCE = 10_000  # fruitless draws in a row after which a split is held to be exhausted

UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

# ----------------------------------------------------------------------------------------------- drawing and answering


def symbols(alphabet: str, rng: Random, length: int) -> str:
    """As many symbols, with spaces between them: "3 a 7"."""
    return " ".join(rng.choices(alphabet, k=length))


def numeral(rng: Random, length: int) -> str:
    """A number of as many digits; only zero itself begins with a zero."""
    return str(rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length))


def addition(rng: Random, length: int) -> str:
    """Two numbers to add, in `length` symbols, the plus sign counted: "1 2 + 9"."""
    first = rng.randrange(1, length - 1)
    return " ".join(f"{numeral(rng, first)}+{numeral(rng, length - 1 - first)}")


def add(source: str) -> str:
    """The sum, digit by digit.

    >>> add("1 2 + 9")
    '2 1'
    """
    first, second = source.replace(" ", "").split("+")
    return " ".join(str(int(first) + int(second)))


def in_words(number: int) -> str:
    """A number below a million, as it is read out in British English.

    >>> in_words(4071)
    'four thousand and seventy-one'
    """
    if not 0 <= number < 1_000_000:
        raise DataError(f"{number} cannot be put in words. Give a whole number from 0 to 999,999.")
    if number < 20:
        return (UNITS + TEENS)[number]
    if number < 100:
        tens, unit = divmod(number, 10)
        return f"{TENS[tens]}-{UNITS[unit]}" if unit else TENS[tens]
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    head, rest = divmod(number, size)
    said = f"{in_words(head)} {name}"
    if not rest:
        return said
    return f"{said} {'and ' if rest < 100 else ''}{in_words(rest)}"


def day(rng: Random, _length: int) -> str:
    """A date as computers write it: "2026-11-15". All are of one length, for the years have four digits."""
    return date.fromordinal(rng.randint(date(1000, 1, 1).toordinal(), date(2999, 12, 31).toordinal())).isoformat()


def written_out(source: str) -> str:
    """The same date as people write it.

    >>> written_out("2026-11-05")
    '5 November 2026'
    """
    year, month, number = source.split("-")
    return f"{int(number)} {MONTHS[int(month) - 1]} {year}"


# ----------------------------------------------------------------------------------------------------------- the tasks


class Rule(NamedTuple):
    """One task: how a source of some length is drawn, what its answer is, and the lengths of each split."""

    draw: Callable[[Random, int], str]
    answer: Callable[[str], str]
    lengths: Mapping[str, range]


def _between(shortest: int, longest: int) -> dict[str, range]:
    return dict.fromkeys(HASHED, range(shortest, longest + 1))


LONG = {"long": range(41, 401)}

# A length counts the symbols of the source (digits, for numbers), so that `long` is beyond every trained position.
TASKS: dict[str, Rule] = {
    "copy": Rule(partial(symbols, string.digits + string.ascii_lowercase), str, _between(1, 40) | LONG),
    "reverse": Rule(
        partial(symbols, string.digits + string.ascii_lowercase), lambda source: source[::-1], _between(1, 40) | LONG
    ),
    "sort": Rule(
        partial(symbols, string.digits), lambda source: " ".join(sorted(source.split())), _between(1, 40) | LONG
    ),
    "addition": Rule(addition, add, _between(3, 40) | LONG),  # the shortest sum is "1 + 1"
    "numbers": Rule(numeral, lambda source: in_words(int(source)), _between(1, 6)),
    "dates": Rule(day, written_out, _between(10, 10)),
}


def split_of(source: str) -> str:
    """The split that a source of a trained length belongs to: 90% train, 5% valid, 5% test."""
    return {0: "test", 1: "valid"}.get(zlib.crc32(source.encode()) % 20, "train")


def pairs(task: str, split: str, count: int, seed: int = 0) -> list[Pair]:
    """`count` distinct pairs of a task, the same for the same seed everywhere.

    Lengths are drawn evenly. There are few short sources, though: those that have come already, or belong to another
    split, are drawn again with a new length, so the shortest lengths are rarer than the others.
    """
    rule, lengths = _checked(task, split, count)
    rng = Random(f"{task} {split} {seed}")
    # What is longer than all training needs no hash to be held out.
    part = split if split in HASHED else "test" if lengths[0] in rule.lengths["test"] else ""
    found: dict[str, Pair] = {}
    fruitless = 0
    while len(found) < count:
        source = rule.draw(rng, rng.choice(lengths))
        if source in found or (part and split_of(source) != part):
            fruitless += 1
            if fruitless > PATIENCE:
                if split not in rule.lengths and found:
                    break  # there are few short sources
                raise DataError(f"{task} gave out at {len(found):,} distinct pairs of {count:,}. Ask for fewer.")
            continue
        found[source] = Pair(source, rule.answer(source))
        fruitless = 0
    return list(found.values())


def lengths_of(task: str, split: str) -> range:
    """How long the sources of a split are; a number for a split is the only length in it."""
    if task not in TASKS:
        raise DataError(f"There is no task {shown(task)}.{near(task, TASKS)} Known: {', '.join(TASKS)}.")
    known = TASKS[task].lengths
    if split in known:
        return known[split]
    if re.fullmatch("[1-9][0-9]{0,8}", split) and any(int(split) in lengths for lengths in known.values()):
        return range(int(split), int(split) + 1)
    low, high = min(lengths[0] for lengths in known.values()), max(lengths[-1] for lengths in known.values())
    exact = f"{low}" if low == high else f"a length from {low} to {high}"
    raise DataError(f"{task} has no split {shown(split)}.{near(split, known)} Known: {', '.join(known)}, or {exact}.")


def _checked(task: str, split: str, count: int) -> tuple[Rule, range]:
    lengths = lengths_of(task, split)
    if count < 0:
        raise DataError(f"Cannot make {count} pairs of {task}. Ask for none or more.")
    return TASKS[task], lengths
