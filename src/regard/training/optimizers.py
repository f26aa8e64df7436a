"""Optimizers, and the learning rate as a pure function of the step: plot it, test it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import TrainConfig
from regard.errors import ConfigError
from regard.training.muon import Dividing, Muon, alone, matrices


def optimizer_of(
    model: nn.Module,
    config: TrainConfig,
    blocks: Sequence[nn.Module] = (),
    precision: torch.dtype = torch.float32,
    divided: Dividing = alone,
) -> torch.optim.Optimizer:
    """Adam as in section 5.3 of the paper, in one fused pass over all weights; or Muon for the matrices of these blocks."""
    weights = list(model.parameters())
    adam: dict[str, Any] = {
        "lr": 0.0,
        "betas": (config.beta1, config.beta2),
        "eps": config.epsilon,
        "weight_decay": config.weight_decay,
        "fused": True,
    }
    if config.optimizer == "adam":
        return torch.optim.AdamW(weights, **adam)
    turned = matrices(blocks)
    if not turned:
        raise ConfigError(
            f"train.optimizer={config.optimizer} moves the matrices of a Transformer's blocks, and this model has none. "
            "Use train.optimizer=adam."
        )
    return Muon(weights, turned, precision, divided, **adam)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate of the next update."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """All that Adam remembers, under names made of its own and the parameters'."""
    return {
        f"adam.{kind}.{name}": tensor
        for name, parameter in model.named_parameters()
        for kind, tensor in optimizer.state[parameter].items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    part: Callable[[Tensor, Tensor], Tensor] = lambda tensor, like: tensor,
) -> None:
    """Put back what `optimizer_tensors` gave; `part` takes, of a whole tensor, what this process holds of a parameter."""
    state = {
        number: {
            kind: tensors[key] if kind == "step" else part(tensors[key], parameter)
            for kind in ("step", "exp_avg", "exp_avg_sq")
            if (key := f"adam.{kind}.{name}") in tensors
        }
        for number, (name, parameter) in enumerate(model.named_parameters())
    }
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class MovingAverage:
    """An exponential moving average of the weights. It moves faster at first, while it has seen few steps."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(self, model: nn.Module, step: int) -> None:
        """Move towards the weights after `step`."""
        decay = min(self.decay, (1 + step) / (10 + step))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.weights.values()), list(model.parameters()), 1 - decay)
