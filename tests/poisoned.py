"""Numbers that are not finite, put where a training must notice them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.folder.checkpoints import load_tensors
from regard.training.losses.cross_entropy import Loss
from regard.training.trainer import Learner

PLACES = ("loss", "last loss", "gradient")
"""Of every batch of the step, of the last one alone, or one number of one gradient."""


@contextmanager
def poisoned(step: int, place: str, value: float) -> Iterator[list[Learner]]:
    """In that step of any training, such a number is there; who met it, before and after which weights."""
    original, met = Learner.update, []

    def update(self: Learner, batches: Any, number: int, rate: float) -> Any:
        if number != step:
            return original(self, batches, number, rate)
        met.append(self)
        before = state_of(self)
        compute, given = self.compute, iter(range(len(batches), 0, -1))

        def spoilt(*arguments: Any) -> Loss:
            loss, left = compute(*arguments), next(given)
            return loss._replace(total=loss.total * value if place == "loss" or left == 1 else loss.total)

        def spoil(gradient: Tensor) -> Tensor:
            gradient = gradient.clone()
            gradient.view(-1)[-1] = value
            return gradient

        weight = next(iter(self.model.parameters()))
        hook = weight.register_hook(spoil) if place == "gradient" else None
        if not hook:
            self.compute = spoilt
        try:
            return original(self, batches, number, rate)
        finally:
            self.compute = compute
            if hook:
                hook.remove()
            after = state_of(self)
            assert before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Learner, "update", update)
        yield met


def state_of(learner: Learner) -> dict[str, Tensor]:
    """Copies of all that an update changes."""
    parts = {**learner.best_weights(), **{f"training {key}": t for key, t in learner.training_tensors().items()}}
    return {key: tensor.detach().clone() for key, tensor in parts.items() if "carried" not in key}


def not_finite(folder: Path) -> list[str]:
    """Files below a folder in which a number is not."""
    files = folder.rglob("*.safetensors")
    return [path.name for path in files if not all(t.isfinite().all() for t in load_tensors(path).values())]
