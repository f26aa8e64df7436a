"""One update: loss, gradient, clip, Adam. Everything that a step changes lives here, and is saved from here."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regard.config import TrainConfig
from regard.errors import TrainingError
from regard.models.interface import Model
from regard.text.batch import Batch
from regard.training.loss import Carried, Objective, pairs_loss
from regard.training.optim import MovingAverage, adam, optimizer_tensors, restore_optimizer, set_rate


@dataclass(frozen=True)
class Update:
    """What one update did."""

    loss: float
    """Summed over tokens."""
    tokens: int
    gradient: float
    """Length of the gradient of the mean loss, before clipping."""


class NotFiniteError(TrainingError):
    """A loss or gradient that is not a number; raised before the weights are touched."""


class Learner:
    """A model and what it needs to learn."""

    def __init__(
        self,
        model: Model,
        config: TrainConfig,
        device: torch.device,
        precision: torch.dtype,
        objective: Objective = pairs_loss,
    ) -> None:
        self.model = model.to(device)
        self.objective = objective
        self.carried: Carried = ()
        """What a recurrent language model remembers of the last batch."""
        self.config = config
        self.device = device
        self.precision = precision
        self.optimizer = adam(self.model, config)
        self.average = MovingAverage(self.model, config.ema) if config.ema else None

    def update(self, batches: Sequence[Batch], step: int, rate: float) -> Update:
        """Learn from these batches together. Randomness (dropout) is a function of (seed, step) alone."""
        self.model.train()
        torch.manual_seed(int(np.random.SeedSequence([self.config.seed, step]).generate_state(1)[0]))
        tokens = sum(batch.tokens for batch in batches)
        loss = 0.0
        for batch in batches:
            with self.computing():
                batch = batch.to(self.device)
                total, self.carried = self.objective(self.model, batch, self.config.smoothing, self.carried)
            (total / tokens).backward()  # type: ignore[no-untyped-call]
            loss += float(total.detach())
        gradient = self._clip()
        if not math.isfinite(loss) or not math.isfinite(gradient):
            self.optimizer.zero_grad()
            raise NotFiniteError(f"loss {loss / tokens:g}, gradient {gradient:g}")
        set_rate(self.optimizer, rate)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average:
            self.average.update(self.model, step)
        return Update(loss, tokens, gradient)

    def _clip(self) -> float:
        """Shorten a gradient that is too long, and leave any other untouched, which saves a pass; how long it was."""
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        length = get_total_norm([p.grad for p in parameters if p.grad is not None])
        if self.config.clip and length > self.config.clip:
            clip_grads_with_norm_(parameters, self.config.clip, length)
        return float(length)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Matrix products in the precision chosen for this device."""
        with torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32):
            yield

    @contextmanager
    def averaged(self) -> Iterator[Model]:
        """The model with its moving average in place of its weights, if there is one."""
        if self.average is None:
            yield self.model
            return
        own = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        try:
            self._put(self.average.weights)
            yield self.model
        finally:
            self._put(own)

    def best_weights(self) -> dict[str, Tensor]:
        """The weights to translate with: the moving average if there is one."""
        return self.average.weights if self.average else dict(self.model.named_parameters())

    def training_tensors(self) -> dict[str, Tensor]:
        """What is needed besides `best_weights` to go on training."""
        tensors = optimizer_tensors(self.optimizer, self.model)
        if self.average:
            tensors |= {f"weights.{name}": p for name, p in self.model.named_parameters()}
        return tensors | {f"carried.{number}": tensor for number, tensor in enumerate(self.carried)}

    def restore(self, weights: dict[str, Tensor], training: dict[str, Tensor]) -> None:
        """Put back what `best_weights` and `training_tensors` gave."""
        if self.average:
            for name, tensor in weights.items():
                self.average.weights[name].copy_(tensor)
            weights = {name: training[f"weights.{name}"] for name in weights}
        self._put(weights)
        kept = sorted(name for name in training if name.startswith("carried."))
        self.carried = tuple(training[name].to(self.device) for name in kept)
        restore_optimizer(self.optimizer, self.model, training)

    def _put(self, weights: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(weights[name])
