"""Muon (Jordan et al. 2024): a matrix moves by its gradient made orthogonal, so that it learns in all directions alike.

Adam weighs every number of a matrix by itself. What it moves by is mostly a few directions, those of the largest singular
values; Muon gives all of them the same length. It needs fewer updates, each of which takes a little longer.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

Dividing = Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]
"""(what computes each row by itself, rows) -> all of them computed, perhaps by several processes."""

MOMENTUM = 0.95
# A quintic polynomial that, five times over, takes any singular value from 0 to 1 near 1: as published.
QUINTIC = (3.4445, -4.7750, 2.0315)
# Adam's updates are about this long, as the root of their mean square: so the rates that suit Adam suit Muon.
AS_LONG = 0.2


def matrices(blocks: Sequence[nn.Module]) -> list[nn.Parameter]:
    """The weights of a model's blocks that turn vectors into vectors; not tables, of which each row is a vector of its own."""
    tables = {id(module.weight) for block in blocks for module in block.modules() if isinstance(module, nn.Embedding)}
    return [
        weight for block in blocks for weight in block.parameters() if weight.ndim == 2 and id(weight) not in tables
    ]


class Muon(torch.optim.AdamW):
    """Adam for all weights but some matrices, which Muon moves."""

    def __init__(
        self,
        weights: Sequence[nn.Parameter],
        matrices: Sequence[nn.Parameter],
        precision: torch.dtype,
        divided: Dividing,
        **adam: Any,
    ) -> None:
        super().__init__(weights, **adam)
        self.precision = precision
        self.divided = divided
        self._alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for matrix in matrices:
            self._alike[matrix.shape].append(matrix)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of all weights that have a gradient."""
        for some in self._alike.values():
            self._turn([matrix for matrix in some if matrix.grad is not None])
        super().step()  # passes over those that have none

    def _turn(self, some: list[Tensor]) -> None:
        """Move matrices of one shape, which are quicker together, and take their gradients from Adam."""
        if not some:
            return
        gradients = [matrix.grad for matrix in some if matrix.grad is not None]
        averages = [self._average(matrix) for matrix in some]
        torch._foreach_lerp_(averages, gradients, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(gradients, averages, MOMENTUM)  # Nesterov's
        turned = self.divided(lambda rows: orthogonal(rows, self.precision), torch.stack(ahead))
        moved = turned.to(some[0].dtype).unbind()
        (group,) = self.param_groups
        torch._foreach_mul_(some, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(some, moved, alpha=-group["lr"] * AS_LONG * math.sqrt(max(some[0].shape)))
        for matrix in some:
            matrix.grad = None

    def _average(self, matrix: Tensor) -> Tensor:
        """Of its gradients, under the names that Adam's own has, so that a checkpoint keeps either alike."""
        state = self.state[matrix]
        if not state:
            state |= {"step": torch.zeros(()), "exp_avg": torch.zeros_like(matrix)}
        average: Tensor = state["exp_avg"]
        return average


def alone(compute: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """What a process by itself has of this: nothing to divide."""
    return compute(rows)


def orthogonal(matrices_NRC: Tensor, precision: torch.dtype = torch.float32) -> Tensor:
    """Each with singular values near 1 in place of its own; its directions stay. By Newton and Schulz."""
    x = matrices_NRC.to(precision)
    tall = x.shape[1] > x.shape[2]
    x = x.mT.contiguous() if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    first, third, fifth = QUINTIC
    for _ in range(5):
        square = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=third, alpha=fifth), x, beta=first)
    return x.mT if tall else x
