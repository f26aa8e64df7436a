"""Rates as pure functions, Adam, and the moving average."""

import math
from typing import Literal

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.config import TrainConfig
from regard.training.optimizers import MovingAverage, optimizer_of, optimizer_tensors, restore_optimizer, set_rate
from regard.training.schedule import rate_at


@pytest.mark.parametrize("step", [1, 399, 400, 401, 5000])
def test_the_papers_schedule_is_its_equation(step: int) -> None:
    config = TrainConfig(schedule="paper", warm_up=400)
    assert rate_at(step, config, width=64) == pytest.approx(64**-0.5 * min(step**-0.5, step * 400**-1.5))


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine", "plateau", "constant"])
def test_every_schedule_rises_to_its_peak(schedule: str) -> None:
    config = TrainConfig(schedule=schedule, rate=0.01, warm_up=10, steps=110)  # type: ignore[arg-type]
    rates = [rate_at(step, config, width=64) for step in range(1, 111)]
    assert rates[:10] == pytest.approx([0.001 * step for step in range(1, 11)])
    assert max(rates) == pytest.approx(0.01)


def test_after_the_peak_each_schedule_goes_its_way() -> None:
    def last(schedule: str, lowered: float = 1.0) -> float:
        config = TrainConfig(schedule=schedule, rate=0.01, warm_up=10, steps=1000)  # type: ignore[arg-type]
        return rate_at(1000, config, 64, lowered)

    assert last("inverse_sqrt") == pytest.approx(0.01 * math.sqrt(10 / 1000))
    assert last("cosine") == pytest.approx(0, abs=1e-12)
    assert last("plateau", lowered=0.25) == pytest.approx(0.0025)
    assert last("constant") == pytest.approx(0.01)


def test_adam_makes_the_step_of_its_equations() -> None:
    config = TrainConfig(beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.1)
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(2.0)
    optimizer = optimizer_of(model, config)
    set_rate(optimizer, 0.5)
    model.weight.grad = torch.tensor([[3.0]])
    optimizer.step()
    # First step: both averages are corrected to the gradient itself, so Adam moves by the rate; decay is decoupled.
    assert model.weight.item() == pytest.approx(2.0 * (1 - 0.5 * 0.1) - 0.5)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_restored_optimizer_goes_on_as_the_old_one(optimizer: Literal["adam", "muon"]) -> None:
    config = TrainConfig(optimizer=optimizer)

    def one(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        model(torch.ones(2, 3)).pow(2).sum().backward()
        set_rate(optimizer, 0.1)
        optimizer.step()

    first = nn.Linear(3, 2)
    old = optimizer_of(first, config, [first])
    one(first, old)
    second = nn.Linear(3, 2)
    second.load_state_dict(first.state_dict())
    new = optimizer_of(second, config, [second])
    restore_optimizer(new, second, {k: v.clone() for k, v in optimizer_tensors(old, first).items()})
    one(first, old)
    one(second, new)
    assert second.weight.equal(first.weight) and second.bias.equal(first.bias)


def test_the_moving_average_is_the_recurrence() -> None:
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(0.0)
    average, expected = MovingAverage(model, decay=0.9), 0.0
    for step in range(1, 200):
        model.weight.data.fill_(float(step))
        average.update(model, step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    assert_close(average.weights["weight"], torch.tensor([[expected]]))
