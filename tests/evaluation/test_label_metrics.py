"""Labels that were guessed against those that are right: by hand, and by the definitions."""

import math

import numpy as np
import pytest

from regard.errors import DataError
from regard.evaluation.label_metrics import accuracy, accuracy_interval, f1, macro_f1, matthews

# Ten texts: of five a, four were found; of three b, one; of two c, two; and what was missed went astray.
RIGHT = list("aaaaabbbcc")
GUESSED = list("aaaabbaccc")


def test_by_hand() -> None:
    assert accuracy(GUESSED, RIGHT) == 70.0
    assert f1(GUESSED, RIGHT, "a") == pytest.approx(100 * 2 * (4 / 5) * (4 / 5) / (4 / 5 + 4 / 5))
    assert f1(GUESSED, RIGHT, "b") == pytest.approx(100 * 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert f1(GUESSED, RIGHT, "c") == pytest.approx(100 * 2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert macro_f1(GUESSED, RIGHT) == pytest.approx(100 * (0.8 + 0.4 + 0.8) / 3)
    # 7 hits of 10; guessed 5 a, 2 b, 3 c; right 5 a, 3 b, 2 c.
    assert matthews(GUESSED, RIGHT) == pytest.approx((70 - 25 - 6 - 6) / math.sqrt((100 - 38) * (100 - 38)))


def test_two_labels_have_matthews_own_formula() -> None:
    random = np.random.default_rng(1)
    right, guessed = random.integers(0, 2, 200), random.integers(0, 2, 200)
    guessed[:120] = right[:120]
    (tn, fp), (fn, tp) = [[int(((right == r) & (guessed == g)).sum()) for g in (0, 1)] for r in (0, 1)]
    expected = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert matthews([*map(str, guessed)], [*map(str, right)]) == pytest.approx(expected)


def test_matthews_is_the_correlation_of_the_labels_over_all_pairs() -> None:
    """Gorodkin's definition: covariance of the indicators, summed over labels, over the root of both variances."""

    def centred(labels: list[str]) -> np.ndarray:
        table = np.array([[label == each for each in "abc"] for label in labels], dtype=float)
        return table - table.mean(0)

    ours, theirs = centred(GUESSED), centred(RIGHT)
    expected = (ours * theirs).sum() / math.sqrt((ours**2).sum() * (theirs**2).sum())
    assert matthews(GUESSED, RIGHT) == pytest.approx(expected)


def test_all_right_all_wrong_and_always_the_same() -> None:
    assert (accuracy(RIGHT, RIGHT), macro_f1(RIGHT, RIGHT), matthews(RIGHT, RIGHT)) == (100.0, 100.0, 1.0)
    assert matthews(list("ab"), list("ba")) == -1.0
    assert matthews(["a"] * 10, RIGHT) == 0.0
    assert f1(GUESSED, RIGHT, "nobody has it") == 0.0


def test_the_interval_is_that_of_resampled_texts() -> None:
    right = ["a"] * 400
    guessed = ["a"] * 340 + ["b"] * 60
    low, high = accuracy_interval(guessed, right)
    random, hits = np.random.default_rng(7), np.array([True] * 340 + [False] * 60)
    drawn = [100 * random.choice(hits, 400).mean() for _ in range(4000)]
    assert (low, high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.5)
    assert accuracy_interval(guessed, right) == (low, high)
    assert accuracy_interval(right, right) == (100.0, 100.0)


def test_lists_that_do_not_match_are_refused() -> None:
    for measure in (accuracy, macro_f1, matthews, accuracy_interval):
        with pytest.raises(DataError):
            measure(["a"], ["a", "b"])
        with pytest.raises(DataError):
            measure([], [])
