"""Blocks that forget: the same weights to the bit, from less memory."""

from typing import Any

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from conftest import SMALL, VOCABULARY, small
from regard.config import TrainConfig
from regard.errors import ConfigError
from regard.models import build
from regard.models.base import Reader
from regard.text.batching.batch import Pairs, make_pairs
from regard.training.losses.cross_entropy import Loss, Objective, pairs_loss
from regard.training.trainer import Learner

WITH_BLOCKS = ["conv", "transformer", "universal", "lm", "memory", "bert", "classifier"]


def batch() -> Pairs:
    rows = torch.randint(4, VOCABULARY, (6, 20), generator=torch.Generator().manual_seed(1)).tolist()
    return make_pairs([row[: 5 + n] for n, row in enumerate(rows)], [row[10:] for row in rows], list(range(6)))


def read_loss(model: Reader, given: Pairs, _smoothing: float, _carried: Any) -> Loss:
    return Loss(model(given.source_BS, given.source_lengths_B).hidden_BTW.square().sum())


def learner(name: str, *, recompute: bool, precision: torch.dtype = torch.float32) -> Learner:
    torch.manual_seed(1)
    model = build(small(name, dropout=0.2, **({"depth": 4} if SMALL[name]["depth"] > 1 else {})).model, VOCABULARY)
    objective: Objective = read_loss if isinstance(model, Reader) else pairs_loss
    return Learner(model, TrainConfig(recompute=recompute), torch.device("cpu"), precision, objective)


def bytes_kept(of: Learner) -> int:
    held: dict[int, int] = {}

    def hold(tensor: torch.Tensor) -> torch.Tensor:
        held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(hold, lambda tensor: tensor):
        _loss = of.objective(of.model.train(), batch(), 0.1, ())
    own = {weight.untyped_storage().data_ptr() for weight in of.model.parameters()}
    return sum(size for place, size in held.items() if place not in own)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", WITH_BLOCKS)
def test_recomputing_changes_no_bit_of_the_weights(name: str, precision: torch.dtype) -> None:
    keeping, forgetting = (learner(name, recompute=choice, precision=precision) for choice in (False, True))
    for step in (1, 2, 3):
        assert keeping.update([batch()], step, 0.01) == forgetting.update([batch()], step, 0.01)
    kept, forgot = keeping.best_weights(), forgetting.best_weights()
    assert list(kept) == list(forgot)
    assert all(torch.equal(kept[key], forgot[key]) for key in kept)


@pytest.mark.parametrize("name", WITH_BLOCKS)
def test_less_is_kept_for_the_way_back(name: str) -> None:
    keeping, forgetting = (bytes_kept(learner(name, recompute=choice)) for choice in (False, True))
    assert forgetting < (0.5 if name != "conv" else 0.7) * keeping


def test_what_has_no_blocks_says_so() -> None:
    with pytest.raises(ConfigError, match=r"train\.recompute=false"):
        learner("luong", recompute=True)
