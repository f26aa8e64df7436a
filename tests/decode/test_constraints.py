"""What may be written next."""

import math

import pytest
import torch

from regard.config import DecodeConfig
from regard.decode.constraints import Rules, log_probabilities
from regard.decode.hypothesis import length_penalty
from regard.errors import TrainingError
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, UNKNOWN
from toys import batch

V = 8
WORDS = [4, 5, 6, 7]


def allowed(
    written: list[int], prefix: list[int] | None = None, source: list[int] = WORDS, **settings: int
) -> list[int]:
    rules = Rules(DecodeConfig(**settings), batch(source), [prefix] if prefix else [])
    return left(rules, torch.tensor([written], dtype=torch.long), torch.tensor([0]))[0]


def left(rules: Rules, written_RT: torch.Tensor, sentence_R: torch.Tensor) -> list[list[int]]:
    """The words each row may write; their scores must be as they were."""
    before_RV = torch.randn(len(written_RT), V)
    after_RV = rules.forbid_(before_RV.clone(), written_RT, sentence_R)
    may_RV = after_RV.isfinite()
    assert torch.equal(after_RV[may_RV], before_RV[may_RV])
    return [row.nonzero()[:, 0].tolist() for row in may_RV]


def test_padding_begin_and_unknown_are_never_written():
    assert allowed([]) == allowed([5, 5, 6]) == [END, *WORDS]


@pytest.mark.parametrize(("length", "expected"), [(0, WORDS), (1, WORDS), (2, [END, *WORDS])])
def test_no_text_ends_before_the_least_length(length, expected):
    assert allowed(WORDS[:length], min_length=2) == expected


@pytest.mark.parametrize(
    ("settings", "prefix", "limit"),
    [({"max_length": 3}, [], 3), ({}, [], 54), ({"max_length": 2}, [4] * 5, 5), ({"min_length": 60}, [], 60)],
)
def test_at_the_limit_only_the_end_may_follow(settings, prefix, limit):
    assert allowed([5] * limit, prefix, **settings) == [END]
    assert allowed([5] * (limit - 1), prefix, **settings) != [END]


def test_a_prefix_is_forced_word_by_word_even_an_unknown_one_and_then_writing_is_free():
    prefix = [5, UNKNOWN, 5]
    for position, word in enumerate(prefix):
        assert allowed(prefix[:position], prefix, no_repeat=1, min_length=5) == [word]
    assert allowed(prefix, prefix) == [END, *WORDS]


def test_each_sentence_has_its_own_prefix_and_limit():
    rules = Rules(DecodeConfig(), batch([4], [4] * 10), [[6], []])
    assert rules.limit_B.tolist() == [51, 60]
    rows = left(rules, torch.zeros(3, 0, dtype=torch.long), torch.tensor([1, 0, 1]))
    assert rows == [[END, *WORDS], [6], [END, *WORDS]]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_repeat_forbids_exactly_the_words_that_would_repeat(n):
    written = torch.randint(4, V, (50, 7), generator=torch.Generator().manual_seed(n))
    rules = Rules(DecodeConfig(no_repeat=n, min_length=1), batch(WORDS))
    for text, may in zip(written.tolist(), left(rules, written, torch.zeros(50).long()), strict=True):
        grams = {tuple(text[i : i + n]) for i in range(len(text) - n + 1)}
        free = [word for word in WORDS if (*text[len(text) - n + 1 :], word) not in grams]
        assert may == [END, *free]


def test_an_unknown_word_is_the_last_resort_and_an_early_end_the_very_last():
    assert allowed(WORDS, no_repeat=1, min_length=9) == [UNKNOWN]
    assert allowed([*WORDS, UNKNOWN], no_repeat=1, min_length=9) == [END]
    assert PAD not in allowed(WORDS, no_repeat=1) and BEGIN not in allowed(WORDS, no_repeat=1)


@pytest.mark.parametrize(("length", "alpha", "penalty"), [(1, 0.6, 1.0), (13, 1.0, 3.0), (7, 2.0, 4.0), (30, 0.0, 1.0)])
def test_the_length_penalty_worked_by_hand(length, alpha, penalty):
    assert math.isclose(length_penalty(length, alpha), penalty)


def test_scores_that_are_not_numbers_are_refused():
    logits = torch.zeros(3, V)
    logits[1, 6] = math.nan
    with pytest.raises(TrainingError, match="NaN"):
        log_probabilities(logits)
