"""Which word translates which, learned from sentence pairs alone: IBM Model 1 (Brown et al. 1993, section 4.2).

Every target word has come from one source word of its sentence, or from none. Nobody has seen from which; so it is
shared out among all in proportion to how likely each of them is to give that word (E), and from these shares the
likelihoods are counted anew (M), again and again. The likelihood of the whole text only grows by it.

Shape letters: L links, a target position and a source position of the same sentence · T target positions ·
K different pairs of a source word and a target word.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.text.tokenizers.tokenizer import PAD

Ids = npt.NDArray[Any]

NO_WORD = PAD
"""Stands before every source: where target words come from that translate nothing."""
_LINKS_AT_A_TIME = 1 << 21
# These take about a gigabyte; they are those of a hundred thousand pairs of 25 words.
MOST_LINKS = 1 << 26


class Lexicon(NamedTuple):
    """The probability of a target word, given the source word it came from; only of pairs that have met."""

    source_K: npt.NDArray[np.int64]
    target_K: npt.NDArray[np.int64]
    probability_K: npt.NDArray[np.float64]


class _Part(NamedTuple):
    """The links of some sentences, those of a target position in a row."""

    key_L: npt.NDArray[np.int32]
    first_T: npt.NDArray[np.int64]


def learn_lexicon(pairs: Iterable[tuple[Ids, Ids]], rounds: int = 5) -> Lexicon:
    """Source and target ids of each pair -> the lexicon, after some rounds from one that prefers nothing.

    Of pairs with more than MOST_LINKS links only the first are used; who has more gives them in random order.
    """
    parts: list[_Part] = []
    # Pairs of words as one number, source above target.
    packed: list[npt.NDArray[np.int64]] = []
    links = 0
    for sources, targets in _in_parts(pairs):
        packed_L, first_T = _links(sources, targets)
        unique, key_L = np.unique(packed_L, return_inverse=True)
        parts.append(_Part(key_L.astype(np.int32), first_T))
        packed.append(unique)
        links += len(packed_L)
        if links >= MOST_LINKS:
            break
    packed_K = _merged(packed)
    parts = [
        _Part(_renumbered(part.key_L, own, packed_K), part.first_T) for part, own in zip(parts, packed, strict=True)
    ]
    source_K, target_K = packed_K >> 32, packed_K & 0xFFFFFFFF
    probability_K = np.ones(len(packed_K))
    for _ in range(rounds):
        probability_K = _count(parts, source_K, probability_K)
    return Lexicon(source_K, target_K, probability_K)


def _in_parts(pairs: Iterable[tuple[Ids, Ids]]) -> Iterator[tuple[list[Ids], list[Ids]]]:
    sources: list[Ids] = []
    targets: list[Ids] = []
    links = 0
    for source, target in pairs:
        sources.append(np.concatenate([[NO_WORD], source]))
        targets.append(np.asarray(target))
        links += (len(source) + 1) * len(target)
        if links >= _LINKS_AT_A_TIME:
            yield sources, targets
            sources, targets, links = [], [], 0
    if links:
        yield sources, targets


def _links(sources: list[Ids], targets: list[Ids]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The packed words of every link, and where the links of each target position begin."""
    lengths = np.array([len(source) for source in sources])
    sentence_T = np.repeat(np.arange(len(targets)), [len(target) for target in targets])
    links_T = lengths[sentence_T]
    first_T = np.cumsum(links_T) - links_T
    place_L = np.arange(links_T.sum()) - np.repeat(first_T, links_T)
    begins_T = (np.cumsum(lengths) - lengths)[sentence_T]
    source_L = np.concatenate(sources).astype(np.int64)[np.repeat(begins_T, links_T) + place_L]
    target_L = np.repeat(np.concatenate(targets).astype(np.int64), links_T)
    return source_L << 32 | target_L, first_T


def _merged(packed: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """All numbers, in order and once. np.unique would hash them, which takes ten times as long as to sort them."""
    merged = np.concatenate(packed) if packed else np.empty(0, np.int64)
    merged.sort()
    once: npt.NDArray[np.int64] = merged[np.diff(merged, prepend=-1) > 0]
    return once


def _renumbered(key_L: npt.NDArray[np.int32], own: Ids, packed_K: Ids) -> npt.NDArray[np.int32]:
    numbers: npt.NDArray[np.int32] = np.searchsorted(packed_K, own).astype(np.int32)[key_L]
    return numbers


def _count(parts: list[_Part], source_K: Ids, probability_K: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """One round: share out every target word among its links, and count the shares."""
    count_K = np.zeros(len(probability_K))
    for key_L, first_T in parts:
        share_L = probability_K[key_L]
        whole_T = np.add.reduceat(share_L, first_T)
        share_L /= np.repeat(whole_T, np.diff(first_T, append=len(key_L)))
        count_K += np.bincount(key_L, share_L, minlength=len(count_K))
    total = np.bincount(source_K, count_K)
    return count_K / total[source_K]
