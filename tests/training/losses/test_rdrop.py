"""R-Drop: the loss of the paper, exactly, for whatever model; and only where it makes sense."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import regard
from conftest import QUICK, WRITERS, small, write_digits
from regard.errors import ConfigError
from regard.models import build
from regard.text.batching.batch import make_pairs
from regard.text.batching.labelled import Labelled
from regard.training.losses import label_smoothing
from regard.training.losses.cross_entropy import pairs_loss, twice
from regard.training.losses.rdrop import agreement_loss, divergences
from regard.training.tasks.classification import twice as labels_twice

ALPHA, SMOOTHING = 5.0, 0.1


def plain(first: torch.Tensor, second: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Half of equation 4 of the paper, word by word in torch's own functions."""
    losses = [F.cross_entropy(s, target, reduction="sum", label_smoothing=SMOOTHING) for s in (first, second)]
    p, q = first.log_softmax(1), second.log_softmax(1)
    both = F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(q, p, reduction="sum", log_target=True)
    return (sum(losses, torch.zeros(())) + ALPHA * both / 2) / 2


@pytest.mark.parametrize("rows", [1, 7])
def test_the_loss_and_its_gradients_equal_the_plain_ones(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_smoothing, "_ROWS", 3)
    tensors = [torch.randn(size, 6, requires_grad=True) for size in (rows, rows, 11)]
    first, second, weight = tensors
    target = torch.randint(11, (rows,))
    ours = 2 * agreement_loss(first, second, weight, target, SMOOTHING, ALPHA)
    double = [tensor.detach().double().requires_grad_() for tensor in tensors]
    theirs = 2 * plain(double[0] @ double[2].T, double[1] @ double[2].T, target)
    assert_close(ours.double(), theirs, atol=1e-5, rtol=1e-5)
    for a, b in zip(torch.autograd.grad(ours, tensors), torch.autograd.grad(theirs, double), strict=True):
        assert_close(a.double(), b, atol=1e-5, rtol=1e-5)


def test_two_passes_that_agree_cost_what_one_costs() -> None:
    hidden, weight, target = torch.randn(5, 6), torch.randn(9, 6), torch.randint(9, (5,))
    same = agreement_loss(hidden, hidden, weight, target, SMOOTHING, ALPHA)
    assert_close(same, label_smoothing.smoothed_cross_entropy(hidden, weight, target, SMOOTHING))


def test_the_divergence_is_that_of_kullback_and_leibler() -> None:
    first, second = torch.randn(4, 9), torch.randn(4, 9)
    p, q = first.log_softmax(1), second.log_softmax(1)
    theirs = (p.exp() * (p - q)).sum(1) + (q.exp() * (q - p)).sum(1)
    assert_close(divergences(first, second), theirs)


def test_bfloat16_stays_close_to_float32() -> None:
    first, second, weight = (torch.randn(size, 16, requires_grad=True) for size in (8, 8, 30))
    target = torch.randint(30, (8,))
    full = agreement_loss(first, second, weight, target, SMOOTHING, ALPHA)
    with torch.autocast("cpu", torch.bfloat16):
        half = agreement_loss(first, second, weight, target, SMOOTHING, ALPHA)
    assert_close(half, full, rtol=0.02, atol=0.0)
    exact, rounded = (torch.autograd.grad(loss, weight)[0] for loss in (full, half))
    assert (exact - rounded).norm() < 0.03 * exact.norm()


BATCH = make_pairs([[5, 6, 7], [6, 7], [9]], [[8, 9], [9, 8, 7], [5]], [0, 1, 2])


@pytest.mark.parametrize("name", WRITERS)
def test_without_dropout_every_model_has_the_loss_and_gradient_of_one_pass(name: str) -> None:
    model = build(small(name).model, 12).train()
    for objective in (pairs_loss, twice(ALPHA)):
        objective(model, BATCH, SMOOTHING, ()).total.backward()
    doubled = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    pairs_loss(model, BATCH, SMOOTHING).total.backward()
    once = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    for both, one in zip(doubled, once, strict=True):
        assert_close(both, 2 * one, atol=1e-4, rtol=1e-3)


def test_dropout_makes_the_passes_disagree_and_validation_has_none() -> None:
    model = build(small("transformer", dropout=0.3).model, 12).train()

    def loss(alpha: float) -> float:
        torch.manual_seed(3)
        return float(twice(alpha)(model, BATCH, SMOOTHING, ()).total.detach())

    assert loss(5.0) > loss(0.0) + 0.01
    model.eval()
    assert loss(5.0) == float(pairs_loss(model, BATCH, SMOOTHING).total.detach())


def test_labels_have_the_same_loss() -> None:
    model = build(small("classifier", dropout=0.3).model, 12, 3).train()
    batch = Labelled(
        ids_BT=torch.tensor([[2, 5, 6], [2, 7, 0]]),
        lengths_B=torch.tensor([3, 2]),
        labels_B=torch.tensor([1, 2]),
        numbers=[0, 1],
    )
    torch.manual_seed(3)
    ours = labels_twice(ALPHA)(model, batch, SMOOTHING, ()).total
    torch.manual_seed(3)
    hidden = model(torch.cat([batch.ids_BT] * 2), torch.cat([batch.lengths_B] * 2)).hidden_BTW
    assert_close(ours, plain(*model.label(hidden).chunk(2), batch.labels_B))


def refused(tmp_path: Path, data: Any, model: str, **settings: Any) -> str:
    with pytest.raises(ConfigError) as told:
        regard.train(data, tmp_path / "model", model=model, settings={"train.rdrop": 5, **settings})
    return str(told.value)


def test_what_cannot_use_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("It was a dark night.\n" * 20)
    assert "pairs or labels" in refused(tmp_path, tmp_path / "book.txt", "lm")
    assert "model.dropout is 0" in refused(tmp_path, write_digits(tmp_path, 20), "transformer", **{"model.dropout": 0})


def test_a_whole_run_learns_with_it(tmp_path: Path) -> None:
    settings = {**QUICK, "train.rdrop": 2, "train.steps": 60}
    outcome = regard.train(write_digits(tmp_path, 120), tmp_path / "model", settings=settings)
    assert outcome.validation is not None and outcome.validation.loss < 2.2  # one of ten words or an end: 2.4
