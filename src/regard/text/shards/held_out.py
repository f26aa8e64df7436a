"""Which pairs are held out for validation when no other text is given, so that nothing of them occurs in training.

Whatever shares its source or its target with a pair that is held out is not trained on. Rare pairs are therefore taken
first, and no more of them than cost training a tenth of the pairs. Only of what may be held out are hashes kept, so that
memory does not grow with the text.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from regard.config import TextConfig
from regard.errors import DataError
from regard.text.pair import Pair
from regard.text.shards.reservoir import Reservoir

SPARE = 20_000  # pairs drawn beside twice as many as are wanted, so that there are rare ones among them
SHARE = 10  # of so many pairs, at most one is held out, and at most one is lost to training as a copy
MOST = 2  # of so many pairs, at most one is lost when only one pair can be held out
TOO_COMMON = 100  # who shares one side with more than one of so many pairs is not held out: it may be a label
TOLD_EVERY = 2000  # pairs
LOOKED_AT = 100_000  # pairs given to validate on that are looked for among those to train on

Pairs = Callable[[], Iterator[Pair]]
"""Gives all pairs anew at each call, always the same ones."""
Told = Callable[[int], object]
"""Is told now and then how many pairs have been read."""


class Keys(NamedTuple):
    """Hashes of what must not occur in training; good for this process only."""

    source: int
    target: int


KeysOf = Callable[[Pair], Keys]


def both_sides(pair: Pair) -> Keys:
    """Of a text and its translation: neither may occur."""
    return Keys(hash(pair.source), hash(pair.target))


def text_alone(pair: Pair) -> Keys:
    """Of a text and its label: the label occurs everywhere."""
    return Keys(hash(pair.source), hash(pair.source))


@dataclass(frozen=True)
class HeldOut:
    """Some pairs: their places among all, from 0, and the hashes of their sides."""

    keys_of: KeysOf
    numbers: set[int] = field(default_factory=set)
    sources: set[int] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)

    def add(self, keys: Keys) -> None:
        """One more pair."""
        self.sources.add(keys.source)
        self.targets.add(keys.target)

    def has_like(self, pair: Pair) -> bool:
        """Whether this pair has its source or its target in common with one of them."""
        keys = self.keys_of(pair)
        return keys.source in self.sources or keys.target in self.targets


def taken_up(pairs: Pairs, numbers: Iterable[int], keys_of: KeysOf) -> HeldOut:
    """The pairs at these places, which another process chose."""
    held_out = HeldOut(keys_of, set(numbers))
    for number, pair in enumerate(islice(pairs(), max(held_out.numbers, default=-1) + 1)):
        if number in held_out.numbers:
            held_out.add(keys_of(pair))
    return held_out


def given(pairs: Pairs, keys_of: KeysOf) -> HeldOut:
    """The pairs of a text to validate on, or the first of very many, to look for them in another text."""
    found = HeldOut(keys_of)
    for pair in islice(pairs(), LOOKED_AT):
        found.add(keys_of(pair))
    return found


class Draw:
    """Chooses the pairs to hold out in two passes: one draws some, one counts how many others are like them."""

    def __init__(self, config: TextConfig, seed: int, keys_of: KeysOf) -> None:
        self._wanted, self._keys_of, self._random = config.held_out, keys_of, random.Random(f"held out {seed}")
        self._drawn = Reservoir[tuple[int, Keys]](2 * config.held_out + SPARE, self._random)

    def offer(self, pair: Pair) -> None:
        """The next pair of the first pass."""
        self._drawn.offer((self._drawn.offered, self._keys_of(pair)))

    def chosen(self, name: str, pairs: Pairs, told: Told) -> tuple[HeldOut, str]:
        """The pairs to hold out, the rarest of those drawn; and a note on how many they are."""
        count = self._drawn.offered
        size = min(self._wanted, count // SHARE)
        if not size:
            raise DataError(f"{name} has only {count} pairs, too few to hold some out for validation. Give --valid.")
        drawn = self._drawn.kept
        self._random.shuffle(drawn)
        likes = self._likes([keys for _, keys in drawn], pairs, told)
        held_out, taken, lost = HeldOut(self._keys_of), set[Keys](), 0
        for (copies, sharing), (number, keys) in sorted(zip(likes, drawn, strict=True), key=lambda one: sum(one[0])):
            if keys in taken or sharing > max(1, count // TOO_COMMON):
                continue
            lost += copies + sharing
            # Of a text that has little but copies, one pair is held out, if most of the text remains.
            if len(taken) == size or lost > count // (SHARE if taken else MOST):
                break
            taken.add(keys)
            held_out.numbers.add(number)
            held_out.add(keys)
        if not taken:
            raise DataError(
                f"No pair of {name} can be held out for validation: too many others have the same source or target, "
                "and would be lost to training. Give --valid."
            )
        note = f"held out {len(taken):,} of {count:,} pairs for validation, as no --valid was given"
        return held_out, note if len(
            taken
        ) == size else f"{note}; too many are copies of each other to hold out more: give --valid"

    def _likes(self, drawn: list[Keys], pairs: Pairs, told: Told) -> list[tuple[int, int]]:
        """Of each: how many other pairs are copies of it, and how many share one side only."""
        sources = dict.fromkeys((keys.source for keys in drawn), 0)
        targets = dict.fromkeys((keys.target for keys in drawn), 0)
        both = dict.fromkeys(drawn, 0)
        for number, pair in enumerate(pairs()):
            keys = self._keys_of(pair)
            in_sources, in_targets = keys.source in sources, keys.target in targets
            if in_sources:
                sources[keys.source] += 1
            if in_targets:
                targets[keys.target] += 1
            if in_sources and in_targets and keys in both:
                both[keys] += 1
            if number % TOLD_EVERY == 0:
                told(number)
        return [(both[one] - 1, sources[one.source] + targets[one.target] - 2 * both[one]) for one in drawn]


def hold_out(name: str, pairs: Pairs, config: TextConfig, seed: int, keys_of: KeysOf = both_sides) -> HeldOut:
    """The pairs to hold out, in two passes over all."""
    draw = Draw(config, seed, keys_of)
    for pair in pairs():
        draw.offer(pair)
    return draw.chosen(name, pairs, lambda _: None)[0]


def lost(count: int, what: str = "source or target", unit: str = "pair") -> str:
    """A note on what is not trained on because of what is held out."""
    return f"left out {count:,} {unit}{'s' * (count != 1)} whose {what} is held out too"


def kept(count: int, valid: str, what: str = "source or target", unit: str = "pair") -> str:
    """A note on what is trained on though it is also in a text that was given to validate on."""
    return (
        f"{count:,} {unit}{'s' * (count != 1)} to train on: the {what} is in {valid} too; scores there may be too good"
    )
