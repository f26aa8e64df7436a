"""A model's blocks: what training may recompute, or spread over devices, one at a time."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from conftest import SMALL, VARIANTS, VOCABULARY, small
from regard.models import build
from regard.models.base import Model, Reader, Source

CASES = [(name, variant) for name in SMALL for variant in VARIANTS[name]]
RECURRENT = {"rnn", "lstm", "gru", "seq2seq", "bahdanau", "luong"}


class Uses(TorchDispatchMode):
    """Which block was running when an operation used the weights of one."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.owner = {place(weight): block for block in blocks for weight in block.parameters()}
        self.running: list[nn.Module] = []
        self.entered: list[nn.Module] = []
        self.wrong: list[str] = []
        for block in blocks:
            block.register_forward_pre_hook(self.enter)
            block.register_forward_hook(self.leave)

    def enter(self, block: nn.Module, _given: Any) -> None:
        self.running.append(block)
        self.entered.append(block)

    def leave(self, block: nn.Module, _given: Any, _made: Any) -> None:
        assert self.running.pop() is block

    def __torch_dispatch__(self, operation: Any, _types: Any, given: Any = (), named: Any = None) -> Any:
        for tensor in tree_leaves((given, named)):
            owner = self.owner.get(place(tensor)) if isinstance(tensor, Tensor) else None
            if owner is not None and self.running != [owner]:
                self.wrong.append(f"{operation} while {len(self.running)} blocks ran")
        return operation(*given, **(named or {}))


def place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def run(model: Model) -> Tensor:
    """A training step's way forward."""
    model.train()
    ids_BT, lengths_B = torch.randint(4, VOCABULARY, (3, 6)), torch.tensor([6, 4, 5])
    output = model(ids_BT, lengths_B) if isinstance(model, Reader) else model(Source(ids_BT, lengths_B), ids_BT)
    return output.hidden_BTW.square().sum() + (0 if output.extra_loss is None else output.extra_loss)


@pytest.mark.parametrize(("name", "variant"), CASES, ids=str)
def test_every_block_is_called_once_in_its_order_and_nothing_else_uses_its_weights(
    name: str, variant: dict[str, Any]
) -> None:
    model = build(small(name, **variant).model, VOCABULARY)
    blocks = model.blocks()
    assert (name in RECURRENT) == (not blocks)
    with Uses(blocks) as uses:
        run(model)
    assert uses.entered == blocks
    assert not uses.wrong


def test_a_use_outside_of_the_block_would_be_seen() -> None:
    model = build(small("transformer").model, VOCABULARY)
    with Uses(model.blocks()) as uses:
        model.decoder.layers[1].remember(torch.zeros(1, 2, 16), None)  # type: ignore[attr-defined]
    assert uses.wrong
