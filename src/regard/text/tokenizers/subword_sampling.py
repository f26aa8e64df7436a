"""Cutting words into subwords at random, so that a model sees a word in more than one shape during training.

SentencePiece can do it too, but salts its random numbers anew in every process: a run could not be resumed byte for
byte. Here the randomness is the caller's. Without any, both ways give SentencePiece's own cut (the tests see to it).
"""

import math
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise
from random import Random

LONG = 256
"""Characters of a word from which a heap is worth it: nearly no word of a language."""

Scores = dict[str, float]
"""Pieces and their scores: minus the rank of a merge (BPE), or the log-probability of a piece (unigram)."""


class BpeDropout:
    """Provilkov et al. 2020, algorithm 1: byte-pair merging in which each possible merge is skipped at random."""

    def __init__(self, scores: Scores) -> None:
        self._scores = scores
        self._of_characters = lru_cache(maxsize=100_000)(self._pair_scores)

    def cut(self, word: str, amount: float, random: Random) -> list[str]:
        """Merge from single characters, each time the best merge that is not skipped, until all of them are."""
        if len(word) > LONG:
            return self._cut_long(word, amount, random)
        parts, scores = list(word), self._of_characters(word).copy()
        draw, score_of = random.random, self._scores.get
        while True:
            best, place = -math.inf, -1
            for i, score in enumerate(scores):
                if score > best and draw() >= amount:
                    best, place = score, i
            if place < 0:
                return parts
            merged = parts[place] = parts[place] + parts.pop(place + 1)
            # Only the merges on either side of this one have changed.
            del scores[place]
            if place > 0:
                scores[place - 1] = score_of(parts[place - 1] + merged, -math.inf)
            if place < len(scores):
                scores[place] = score_of(merged + parts[place + 1], -math.inf)

    def _cut_long(self, word: str, amount: float, random: Random) -> list[str]:
        """Merge by a heap, in which each merge is as likely to be skipped: to look at all for each one would be quadratic."""
        parts: list[str] = list(word)
        before, after = list(range(-1, len(word) - 1)), list(range(1, len(word) + 1))
        heap = [(-score, i, word[i : i + 2]) for i, score in enumerate(self._pair_scores(word)) if score > -math.inf]
        heapify(heap)
        skipped: list[tuple[float, int, str]] = []
        while heap:
            merge = heappop(heap)
            _, i, whole = merge
            right = after[i]
            if not parts[i] or right >= len(parts) or parts[i] + parts[right] != whole:
                continue  # a part of it was merged with another
            if random.random() < amount:
                skipped.append(merge)
                continue
            parts[i], parts[right], after[i] = whole, "", after[right]
            if after[i] < len(parts):
                before[after[i]] = i
            for left in (before[i], i):
                if left >= 0 and after[left] < len(parts):
                    pair = parts[left] + parts[after[left]]
                    if (score := self._scores.get(pair)) is not None:
                        heappush(heap, (-score, left, pair))
            for other in skipped:  # each has another chance
                heappush(heap, other)
            skipped.clear()
        return [part for part in parts if part]

    def _pair_scores(self, word: str) -> list[float]:
        """Of each merge of two characters."""
        return [self._scores.get(left + right, -math.inf) for left, right in pairwise(word)]


class UnigramSampling:
    """Kudo 2018: a cut is drawn in proportion to its probability to the power of alpha."""

    # Below the worst piece by so much that a character without a piece is used only where nothing else fits.
    UNKNOWN_PENALTY = 10.0

    def __init__(self, scores: Scores) -> None:
        self._scores = scores
        self._longest = max(map(len, scores), default=1)
        self._unknown = min(scores.values(), default=0.0) - self.UNKNOWN_PENALTY
        self._ends = lru_cache(maxsize=100_000)(self._forward)

    def cut(self, word: str, amount: float, random: Random) -> list[str]:
        """Walk back from the end of the word, drawing each piece among those that can end there."""
        pieces: list[str] = []
        choices = self._ends(word, amount)
        end = len(word)
        while end:
            lengths, weights = choices[end]
            length = random.choices(lengths, weights)[0] if len(lengths) > 1 else lengths[0]
            pieces.append(word[end - length : end])
            end -= length
        return pieces[::-1]

    def _forward(self, word: str, alpha: float) -> list[tuple[list[int], list[float]]]:
        """For each place of the word, the pieces that can end there, and how likely each is (forward filtering)."""
        total = [0.0]
        choices: list[tuple[list[int], list[float]]] = [([], [])]
        for end in range(1, len(word) + 1):
            lengths, logs = [], []
            for length in range(1, min(end, self._longest) + 1):
                score = self._scores.get(word[end - length : end], self._unknown if length == 1 else None)
                if score is not None:
                    lengths.append(length)
                    logs.append(total[end - length] + alpha * score)
            highest = max(logs)
            weights = [math.exp(log - highest) for log in logs]
            total.append(highest + math.log(sum(weights)))
            choices.append((lengths, weights))
        return choices
