"""Very many pairs in order of length, and cut into batches: in little more memory than the order itself takes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]

AT_A_TIME = 1 << 18
"""Pairs looked at together: what is computed of them is forgotten before the next come."""
BATCHES_AT_A_TIME = 1 << 10
DIGIT_BITS = 16


def shuffled(count: int, random: np.random.Generator) -> Numbers:
    """All numbers below `count` in random order, as narrow as they can be; the same ones that `permutation` gives."""
    order: Numbers = np.arange(count, dtype=np.int32 if count <= 2**31 else np.int64)
    random.shuffle(order)
    return order


def by_length(order: Numbers, source_lengths: Numbers, target_lengths: Numbers) -> Numbers:
    """The same pairs by the longer side, then by target, then by source; what is equal stays in the order given.

    All three lengths are one number (`_rank`), sorted digit by digit from the last one. Each digit is 16 bits, so that
    one is enough where no side is longer than 255 tokens. The order that was given is used up.
    """
    longest = int(max(source_lengths.max(initial=0), target_lengths.max(initial=0)))
    bits = int(_rank(np.array([longest]), np.array([longest]))[0]).bit_length()
    spare = np.empty_like(order)
    for shift in range(0, bits, DIGIT_BITS):

        def digits(pairs: slice | Numbers, shift: int = shift) -> npt.NDArray[np.uint16]:
            return (_rank(source_lengths[pairs], target_lengths[pairs]) >> shift).astype(np.uint16)

        _sort_by(digits, order, spare)
        order, spare = spare, order
    return order


def counts_of(source_lengths: Numbers, target_lengths: Numbers) -> npt.NDArray[np.int64]:
    """How many pairs there are of each length of the longer side."""
    longest = int(max(source_lengths.max(initial=0), target_lengths.max(initial=0)))
    counts = np.zeros(longest + 1, np.int64)
    for part in _parts(len(source_lengths)):
        counts += np.bincount(np.maximum(source_lengths[part], target_lengths[part]), minlength=len(counts))
    return counts


def cut(counts: npt.NDArray[np.int64], batch_tokens: int) -> Iterator[tuple[int, int]]:
    """Where batches begin and end in an order by length, with so many pairs of each length.

    A batch takes the number of its pairs times its longest, which comes last, its end counted.
    """
    start = end = before = 0
    for length in np.flatnonzero(counts).tolist():
        before, end = end, end + int(counts[length])
        most = batch_tokens // (length + 1)
        if start < before and start + most <= before:  # no pair of this length fits to those before it
            yield start, before
            start = before
        size = max(1, most)
        while start + size < end:
            yield start, start + size
            start += size
    if start < end:
        yield start, end


def largest(lengths: Numbers, order: Numbers, starts: npt.NDArray[np.int64]) -> Numbers:
    """The largest of the lengths in each batch; batches begin at these places in the order."""
    found = np.empty(len(starts), lengths.dtype)
    ends = np.append(starts[1:], len(order))
    for first in range(0, len(starts), BATCHES_AT_A_TIME):
        some = slice(first, first + BATCHES_AT_A_TIME)
        pairs = order[starts[first] : ends[some][-1]]
        found[some] = np.maximum.reduceat(lengths[pairs], starts[some] - starts[first])
    return found


def _rank(source_lengths: Numbers, target_lengths: Numbers) -> npt.NDArray[np.int64]:
    """Where a pair's lengths (longer, target, source) stand among all there can be.

    Before the pairs whose longer side has n tokens come n * n others. Of these, first those with shorter targets, each
    with a source of n, and then those with a target of n, by source.
    """
    source, target = source_lengths.astype(np.int64), target_lengths.astype(np.int64)
    longer = np.maximum(source, target)
    rank: npt.NDArray[np.int64] = longer * longer + np.where(target < longer, target, longer + source)
    return rank


def _sort_by(digits: Callable[[slice | Numbers], npt.NDArray[np.uint16]], order: Numbers, into: Numbers) -> None:
    """Counting sort: how many have each digit tells where those of the next one begin."""
    counts = np.zeros(1 << DIGIT_BITS, np.int64)
    for part in _parts(len(order)):
        counts += np.bincount(digits(part), minlength=len(counts))
    begin = np.cumsum(counts) - counts
    for part in _parts(len(order)):
        pairs = order[part]
        digit = digits(pairs)
        places = np.argsort(digit, kind="stable")
        counts = np.bincount(digit, minlength=len(counts))
        first = np.cumsum(counts) - counts
        into[(begin - first)[digit[places]] + np.arange(len(pairs))] = pairs[places]
        begin += counts


def _parts(count: int) -> Iterator[slice]:
    return (slice(start, start + AT_A_TIME) for start in range(0, count, AT_A_TIME))
