"""How good labels are, as pure functions over two lists: those that were guessed and those that are right."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.errors import DataError

_RESAMPLES, _SEED = 10_000, 12345


@dataclass(frozen=True)
class LabelReport:
    """What a classifier achieves on a test set."""

    texts: int
    accuracy: float
    interval: tuple[float, float]
    """Of the accuracy, at 95%."""
    f1: dict[str, float]
    """Of each label."""
    macro_f1: float
    matthews: float

    @classmethod
    def of(cls, guessed: Sequence[str], right: Sequence[str]) -> "LabelReport":
        """Measure everything."""
        scores = {label: f1(guessed, right, label) for label in sorted(set(right))}
        return cls(
            len(right),
            accuracy(guessed, right),
            accuracy_interval(guessed, right),
            scores,
            macro_f1(guessed, right),
            matthews(guessed, right),
        )

    def as_table(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For the terminal."""
        low, high = self.interval
        return [
            f"{'accuracy':<12}{self.accuracy:7.2f} % [{low:.2f}, {high:.2f}] at 95%, of {self.texts:,} texts",
            f"{'macro F1':<12}{self.macro_f1:7.2f} %",
            *(f"{'F1':<12}{score:7.2f} % for {label}" for label, score in self.f1.items()),
            f"{'Matthews':<12}{self.matthews:7.3f}",
        ]


def accuracy(guessed: Sequence[str], right: Sequence[str]) -> float:
    """Percent of labels that are right.

    >>> accuracy(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"])
    75.0
    """
    _check(guessed, right)
    return 100 * sum(map(str.__eq__, guessed, right)) / len(right)


def accuracy_interval(guessed: Sequence[str], right: Sequence[str], confidence: float = 0.95) -> tuple[float, float]:
    """Between which bounds the accuracy would lie, with that confidence, for another choice of texts (bootstrap).

    Texts drawn anew from these are right or wrong as by the throw of a coin, so that the throws are drawn at once.
    """
    share, count = accuracy(guessed, right) / 100, len(right)
    drawn = np.random.default_rng(_SEED).binomial(count, share, _RESAMPLES) * (100 / count)
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def f1(guessed: Sequence[str], right: Sequence[str], label: str) -> float:
    """Percent: the harmonic mean of how many texts guessed to have the label do, and of how many that do were found.

    >>> f1(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"], "cat")
    80.0
    """
    _check(guessed, right)
    both = sum(ours == theirs == label for ours, theirs in zip(guessed, right, strict=True))
    named = list(guessed).count(label) + list(right).count(label)
    return 200 * both / named if named else 0.0


def macro_f1(guessed: Sequence[str], right: Sequence[str]) -> float:
    """The mean of the labels' F1, each label counting the same, however rare it is."""
    labels = sorted({*guessed, *right})
    return sum(f1(guessed, right, label) for label in labels) / len(labels) if labels else f1(guessed, right, "")


def matthews(guessed: Sequence[str], right: Sequence[str]) -> float:
    """Matthews' correlation, for any number of labels (Gorodkin 2004): 1 if all are right, 0 if as good as chance.

    It is 0 too if all guesses, or all labels, are the same.
    """
    _check(guessed, right)
    ours, theirs, count = Counter(guessed), Counter(right), len(right)
    hits = sum(map(str.__eq__, guessed, right))
    agreement = hits * count - sum(ours[label] * theirs[label] for label in theirs)
    spread = math.prod(count**2 - sum(n**2 for n in counter.values()) for counter in (ours, theirs))
    return agreement / math.sqrt(spread) if spread else 0.0


def _check(guessed: Sequence[str], right: Sequence[str]) -> None:
    if len(guessed) != len(right):
        raise DataError(f"{len(guessed)} labels cannot be compared with {len(right)}. Give as many of each.")
    if not right:
        raise DataError("There are no labels to compare. Give at least one text with its label.")
