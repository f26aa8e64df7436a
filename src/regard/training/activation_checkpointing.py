"""Blocks that remember nothing for the way back but what they were given, and compute the rest again when it is needed.

One block's activations are then held at a time, for about a third more time (Chen et al. 2016, arXiv 1604.06174). What
is dropped is the same both times, so that the weights learned are too, to the bit.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from regard.errors import ConfigError
from regard.models.base import Model


def recompute(model: Model) -> None:
    """Make the blocks of a model such. Names of weights stay as they are."""
    blocks = model.blocks()
    if not blocks:
        raise ConfigError(
            f"train.recompute works block by block, and a {type(model).__name__} has no blocks. Set train.recompute=false."
        )
    for block in blocks:
        block.forward = _forgetting(block.forward)


def _forgetting(forward: Callable[..., Any]) -> Callable[..., Any]:
    def forget(*given: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*given, **named)
        return checkpoint(forward, *given, use_reentrant=False, **named)

    return forget
