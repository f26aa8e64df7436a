"""How far gradients reach, against models in which it is known."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from conftest import VOCABULARY, small
from regard.config import read
from regard.experiments.compare.gradient_path import POSITIONS, SOURCE, fading
from regard.experiments.compare.plan import chosen
from regard.models import build
from regard.models.base import Output, Source, State, Writer

WIDTH = 8


class Hand(Writer):
    """A model made by hand: reads source and target in one row and makes of their vectors what `rule` says."""

    def __init__(self, rule: Any, *, scale: float = 1.0) -> None:
        super().__init__()
        self.anything = nn.Embedding(VOCABULARY, WIDTH)
        self.rule, self.scale = rule, scale

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        x_BJW = self.anything(torch.cat([source.ids_BS, target_BT], 1))
        return Output(self.scale * self.rule(x_BJW)[:, -target_BT.shape[1] :])

    def start(self, source: Source, *, attention: bool = False) -> State:
        raise AssertionError("it is never asked to write")

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, State]:
        raise AssertionError("it is never asked to write")


def linear(factor: float) -> Any:
    """h_t = factor h_(t-1) + x_t."""

    def rule(x_BJW: Tensor) -> Tensor:
        hidden = [x_BJW[:, 0]]
        for column in range(1, x_BJW.shape[1]):
            hidden.append(factor * hidden[-1] + x_BJW[:, column])
        return torch.stack(hidden, 1)

    return rule


def mean_so_far(x_BJW: Tensor) -> Tensor:
    """What attention does that looks at all words alike."""
    return x_BJW.cumsum(1) / torch.arange(1, x_BJW.shape[1] + 1)[:, None]


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1])
def test_a_linear_recurrence_passes_on_its_factor_to_the_power_of_the_distance(factor: float) -> None:
    found = fading(Hand(linear(factor)), VOCABULARY, distance=20, rows=2)
    assert found.target == pytest.approx([factor**k for k in range(21)], rel=1e-4)
    assert found.source == pytest.approx([factor ** (found.first + t) for t in range(21)], rel=1e-4)
    assert found.first == SOURCE - SOURCE // 2 == (SOURCE + 1) // 2, "the middle word is as far from either end"


def test_a_factor_of_the_whole_is_a_factor_of_the_gradient() -> None:
    once, thrice = (fading(Hand(linear(0.7), scale=scale), VOCABULARY, distance=5, rows=2) for scale in (1.0, 3.0))
    assert thrice.target == pytest.approx([3 * value for value in once.target])


def test_a_mean_over_all_words_does_not_fade_with_distance() -> None:
    found = fading(Hand(mean_so_far), VOCABULARY, distance=20, rows=2)
    # The last positions, of which this is the mean, have SOURCE + 20 words before them, or a few more.
    expected = math.sqrt(sum((SOURCE + 20 + n + 1) ** -2 for n in range(POSITIONS)) / POSITIONS)
    assert found.target == pytest.approx([expected] * 21)
    assert found.source == pytest.approx([1 / (SOURCE + t + 1) for t in range(21)])


def test_a_word_out_of_sight_has_no_gradient_at_all() -> None:
    model = build(small("conv", depth=2, kernel=3, decoder_depth=2).model, VOCABULARY)
    found = fading(model, VOCABULARY, rows=2)
    seen = 2 * (3 - 1)
    assert all(found.target[: seen + 1]) and not any(found.target[seen + 1 :])
    assert all(found.source), "by attention, the source is always in sight"


@pytest.mark.parametrize("name", chosen("all"))
def test_it_can_be_measured_in_every_model_that_writes(name: str) -> None:
    model = build(small(name).model, VOCABULARY)
    assert isinstance(model, Writer)
    found = fading(model, VOCABULARY, distance=9, rows=3)
    assert len(found.target) == len(found.source) == 10
    assert all(math.isfinite(value) for value in found.target + found.source)
    assert found.target[0] > 0 and all(found.source)
    again = fading(model, VOCABULARY, distance=9, rows=3)
    assert again == found, "same seed, same numbers"
    assert not any(part._forward_hooks for part in model.modules()), "the model is left as it was"
    assert all(parameter.grad is None for parameter in model.parameters())


def test_at_first_a_plain_recurrent_network_fades_and_attention_does_not() -> None:
    def fall(name: str) -> tuple[float, float]:
        torch.manual_seed(1)
        model = build(read({"model": {"name": name, "width": 64, "dropout": 0}}).model, VOCABULARY)
        assert isinstance(model, Writer)
        found = fading(model, VOCABULARY, distance=24, rows=4)
        return found.target[24] / found.target[1], found.source[24] / found.source[0]

    assert max(fall("rnn")) < 0.01
    assert min(fall("transformer")) > 0.5
    assert min(fall("lm")) > 0.25
    target, source = fall("bahdanau")
    assert source > 0.5 > target, "what it wrote it must remember; the source it looks at"


def test_a_model_with_few_positions_is_measured_as_far_as_they_go() -> None:
    model = build(small("lm", longest=SOURCE + POSITIONS + 4).model, VOCABULARY)
    assert isinstance(model, Writer)
    assert len(fading(model, VOCABULARY, rows=2).target) == 4 + 1
