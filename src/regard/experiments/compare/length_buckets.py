"""Test sentences by the length of their source: a model that forgets does worse the longer a sentence is."""

from collections.abc import Sequence
from statistics import median_low
from typing import NamedTuple

PARTS = 5


class Bucket(NamedTuple):
    """Sentences of like lengths."""

    shortest: int
    longest: int
    """In tokens."""
    numbers: list[int]
    """Which sentences of the test set."""


def halves(lengths: Sequence[int]) -> tuple[int, list[Bucket]]:
    """The median length, and the sentences up to it and above it; only one bucket if none is above.

    >>> halves([2, 9, 4, 7])
    (4, [Bucket(shortest=2, longest=4, numbers=[0, 2]), Bucket(shortest=7, longest=9, numbers=[1, 3])])
    """
    middle = median_low(lengths)
    return middle, _buckets(lengths, [middle])


def quantiles(lengths: Sequence[int], parts: int = PARTS) -> list[Bucket]:
    """About equally many sentences in each bucket, all sentences of one length in the same one; so there may be fewer.

    >>> [(b.shortest, b.longest) for b in quantiles([1, 1, 1, 2, 3, 4, 5, 6], parts=3)]
    [(1, 1), (2, 3), (4, 6)]
    """
    ordered = sorted(lengths)
    return _buckets(lengths, sorted({ordered[max(0, len(ordered) * part // parts - 1)] for part in range(1, parts)}))


def _buckets(lengths: Sequence[int], bounds: list[int]) -> list[Bucket]:
    """Sentences up to the first bound, up to the second, and so on, and those above the last; no bucket is empty."""
    found: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    for number, length in enumerate(lengths):
        found[sum(length > bound for bound in bounds)].append(number)
    return [Bucket(min(lengths[n] for n in b), max(lengths[n] for n in b), b) for b in found if b]
