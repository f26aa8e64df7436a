"""IBM Model 1: the probabilities Brown et al. define, and a likelihood that never falls."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from regard.text import alignment
from regard.text.alignment import NO_WORD, Lexicon, learn_lexicon

A, B, X, Y = 5, 6, 7, 8
RANDOM = np.random.default_rng(0)
PAIRS = [(RANDOM.integers(4, 12, 1 + i % 5), RANDOM.integers(20, 30, i % 4)) for i in range(40)]


def pair(source: list[int], target: list[int]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    return np.array(source, np.uint16), np.array(target, np.uint16)


def table(lexicon: Lexicon) -> dict[tuple[int, int], float]:
    keys = zip(lexicon.source_K.tolist(), lexicon.target_K.tolist(), strict=True)
    return dict(zip(keys, lexicon.probability_K.tolist(), strict=True))


def test_two_rounds_give_what_a_pencil_gives() -> None:
    pairs = [pair([A, B], [X, Y]), pair([A], [X])]
    # At first, a third of x and of y for A, B and no word; and half of the other x for A and no word.
    first = {(A, X): 5 / 7, (A, Y): 2 / 7, (B, X): 1 / 2, (B, Y): 1 / 2, (NO_WORD, X): 5 / 7, (NO_WORD, Y): 2 / 7}
    assert table(learn_lexicon(pairs, rounds=1)) == pytest.approx(first)
    # Then A has 10/27 + 1/2 of x and 4/15 of y, and B has 7/27 of x and 7/15 of y.
    second = table(learn_lexicon(pairs, rounds=2))
    assert second[A, X] == pytest.approx(235 / 307)
    assert second[B, Y] == pytest.approx(9 / 14)


def log_likelihood(lexicon: Lexicon) -> float:
    probability = table(lexicon)
    total = 0.0
    for source, target in PAIRS:
        origins = [NO_WORD, *source.tolist()]
        for word in target.tolist():
            total += np.log(sum(probability[origin, word] for origin in origins) / len(origins))
    return total


def test_the_text_becomes_likelier_every_round() -> None:
    found = [log_likelihood(learn_lexicon(PAIRS, rounds=rounds)) for rounds in range(1, 8)]
    assert all(later > earlier for earlier, later in itertools.pairwise(found))


def test_the_translations_of_a_word_share_a_probability_of_one() -> None:
    lexicon = learn_lexicon(PAIRS)
    total = np.bincount(lexicon.source_K, lexicon.probability_K)
    np.testing.assert_allclose(total[total > 0], 1.0)


def test_it_does_not_matter_how_many_links_are_counted_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = table(learn_lexicon(PAIRS))
    monkeypatch.setattr(alignment, "_LINKS_AT_A_TIME", 7)
    assert table(learn_lexicon(PAIRS)) == pytest.approx(whole)


def test_more_pairs_than_fit_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_LINKS_AT_A_TIME", 1)
    monkeypatch.setattr(alignment, "MOST_LINKS", 10)
    pairs = iter([pair([A], [X])] * 100)
    learn_lexicon(pairs)
    assert len(list(pairs)) == 95


def test_no_pairs_teach_nothing() -> None:
    assert table(learn_lexicon([])) == {}
    assert table(learn_lexicon([pair([A], [])])) == {}
