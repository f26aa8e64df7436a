"""Muon: what makes an update orthogonal, and which weights it moves."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from conftest import small
from regard.config import TrainConfig
from regard.errors import ConfigError
from regard.models import build
from regard.text.batching.batch import make_pairs
from regard.training.distributed import Group
from regard.training.muon import matrices, orthogonal
from regard.training.optimizers import optimizer_of, set_rate
from regard.training.trainer import Learner


@pytest.mark.parametrize("shape", [(16, 40), (40, 16), (24, 24)])
def test_singular_values_come_near_one_and_directions_stay(shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    some = torch.randn(3, *shape)
    u, _, v = torch.linalg.svd(some, full_matrices=False)
    turned = u.mT @ orthogonal(some) @ v.mT
    lengths = turned.diagonal(dim1=1, dim2=2)
    assert lengths.min() > 0.3 and lengths.max() < 1.3  # of the smallest ones a square matrix has some near 0
    assert_close(turned, torch.diag_embed(lengths), atol=1e-4, rtol=0)


def test_an_update_is_that_of_torchs_own_muon() -> None:
    torch.manual_seed(2)
    ours = nn.Sequential(nn.Linear(12, 20, bias=False), nn.Linear(20, 12, bias=False), nn.Linear(12, 20, bias=False))
    theirs = nn.Sequential(*(nn.Linear(layer.in_features, layer.out_features, bias=False) for layer in ours))
    theirs.load_state_dict(ours.state_dict())
    one = optimizer_of(ours, TrainConfig(optimizer="muon", weight_decay=0.1), [ours], torch.bfloat16)
    other = torch.optim.Muon(
        theirs.parameters(), lr=0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    set_rate(one, 0.01)
    for step in range(3):
        for model, optimizer in ((ours, one), (theirs, other)):
            torch.manual_seed(step)
            for weight in model.parameters():
                weight.grad = torch.randn_like(weight)
            optimizer.step()
    for our, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(our, their, atol=1e-3, rtol=0)  # bfloat16, whose sums differ; an update has numbers of 0.002 or so


def test_only_matrices_of_blocks_are_turned() -> None:
    model = build(small("transformer").model, 12)
    turned = {id(weight) for weight in matrices(model.blocks())}
    names = {name for name, weight in model.named_parameters() if id(weight) in turned}
    assert names and all(name.endswith("weight") and ("layers" in name) for name in names)
    assert not any("norm" in name or "relative" in name or "embedding" in name for name in names)


def test_every_model_with_blocks_learns_with_it() -> None:
    torch.manual_seed(1)
    batch = make_pairs([[5, 6, 7], [6, 7]], [[8, 9], [9, 8, 7]], [0, 1])
    for name in ("transformer", "universal", "lm", "memory"):
        learner = Learner(
            build(small(name).model, 12), TrainConfig(optimizer="muon"), torch.device("cpu"), torch.float32
        )
        losses = [learner.update([batch], step, 0.01).loss for step in range(1, 30)]
        assert losses[-1] < losses[0] / 2, name


def test_models_without_blocks_say_so() -> None:
    with pytest.raises(ConfigError, match=r"train\.optimizer=adam"):
        Learner(build(small("seq2seq").model, 12), TrainConfig(optimizer="muon"), torch.device("cpu"), torch.float32)


def test_weights_that_are_spread_say_so() -> None:
    spread: Any = Group(None, 0, 2, shard=True)  # type: ignore[arg-type]
    config = TrainConfig(optimizer="muon")
    with pytest.raises(ConfigError, match="--shard"):
        Learner(build(small("transformer").model, 12), config, torch.device("cpu"), torch.float32, world=spread)
