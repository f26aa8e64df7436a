"""One update: loss, gradient, clip, optimizer. Everything that a step changes lives here, and is saved from here."""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regard.config import TrainConfig
from regard.errors import ConfigError, FolderError, TrainingError
from regard.models.base import Model
from regard.text.batching.batch import Batch
from regard.training.activation_checkpointing import recompute
from regard.training.distributed import Tensors, World, whole
from regard.training.losses.cross_entropy import Carried, Objective, pairs_loss
from regard.training.optimizers import MovingAverage, optimizer_of, optimizer_tensors, restore_optimizer, set_rate


@dataclass(frozen=True)
class Update:
    """What one update did."""

    loss: float
    """Summed over tokens, those of all processes."""
    tokens: int
    gradient: float
    """Length of the gradient of the mean loss, before clipping."""


class NotFiniteError(TrainingError):
    """A loss or gradient that is not a number; raised before the weights are touched."""


class Learner:
    """A model and what it needs to learn, alone or together with other processes."""

    def __init__(
        self,
        model: Model,
        config: TrainConfig,
        device: torch.device,
        precision: torch.dtype,
        objective: Objective = pairs_loss,
        world: World | None = None,
    ) -> None:
        self.world = world or World()
        if self.world.shard and config.optimizer == "muon":
            raise ConfigError(
                "train.optimizer=muon needs whole matrices, but --shard spreads them over processes. "
                "Leave --shard away, or use train.optimizer=adam."
            )
        self.model = model.to(device)
        # What the leader validates, where the model itself has other weights, or only a part of them.
        apart = self.world.leads and (self.world.shard or config.ema)
        self._solo = copy.deepcopy(self.model) if apart else self.model
        if config.recompute:
            recompute(self.model)
        self.objective = objective
        self.compute = self.world.compute(self.model, objective, self.model.blocks())
        self.carried: Carried = ()
        """What a recurrent language model remembers of the last batch."""
        self._rows = 0  # of it that are ours
        self.config = config
        self.device = device
        self.precision = precision
        self.optimizer = optimizer_of(self.model, config, self.model.blocks(), precision, self.world.divided)
        self.average = MovingAverage(self.model, config.ema) if config.ema else None

    def update(self, batches: Sequence[Batch], step: int, rate: float) -> Update:
        """Learn from these batches together. Randomness (dropout) is a function of (seed, step) and the process alone."""
        world = self.world
        self.model.train()
        seeds = world.seed(self.config.seed, step)
        torch.manual_seed(int(np.random.SeedSequence(seeds).generate_state(1)[0]))
        tokens = int(world.total(sum(batch.tokens for batch in batches)))
        loss = 0.0
        for number, batch in enumerate(batches, 1):
            with world.summing(self.compute, last=number == len(batches)):
                with self.computing():
                    total, self.carried = self.compute(batch.to(self.device), self.config.smoothing, self.carried)
                # Gradients are averaged over processes, and should be over all tokens.
                (total / (tokens / world.size)).backward()  # type: ignore[no-untyped-call]
            loss += float(total.detach())
            self._rows = len(batch.numbers)
        loss, gradient = world.total(loss), self._clip()
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
        found = float(whole(length))
        if self.config.clip and found > self.config.clip:
            clip_grads_with_norm_(parameters, self.config.clip, length)
        return found

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Matrix products in the precision chosen for this device."""
        with torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32):
            yield

    def model_with(self, weights: Tensors) -> Model:
        """The model with its `best_weights`, for the leader to use alone."""
        if self._solo is not self.model:
            _fill(self._solo, weights)
        return self._solo

    def best_weights(self) -> Tensors:
        """The weights to translate with: the moving average if there is one. All processes must ask."""
        return self.world.whole(self.average.weights if self.average else dict(self.model.named_parameters()))

    def training_tensors(self) -> Tensors:
        """What is needed besides `best_weights` to go on training. All processes must ask."""
        tensors = optimizer_tensors(self.optimizer, self.model)
        if self.average:
            tensors |= {f"weights.{name}": p for name, p in self.model.named_parameters()}
        carried = [self.world.join_rows(part, self._rows) for part in self.carried]
        return {**self.world.whole(tensors), **{f"carried.{number}": tensor for number, tensor in enumerate(carried)}}

    def check(self, training: Tensors, path: Path) -> None:
        """Refuse what `training_tensors` cannot have given for this model."""
        shapes = {name: tuple(parameter.shape) for name, parameter in self.model.named_parameters()}
        expected: dict[str, tuple[int, ...]] = {f"adam.step.{name}": () for name in shapes}
        for kind in ("adam.exp_avg.", "adam.exp_avg_sq.", "weights."):
            expected |= {kind + name: shape for name, shape in shapes.items()}
        # Kept beside a moving average, which --override may begin; then the best weights are those that learned.
        averaged = {f"weights.{name}" for name in shapes}
        if not averaged & set(training):
            averaged = set()
        # Muon keeps one average of a matrix, Adam two; of a weight that never had a gradient nothing is kept.
        began = {name for name in shapes if f"adam.step.{name}" in training}
        needed = averaged | {f"adam.exp_avg.{name}" for name in began}
        if self.config.optimizer == "adam":
            needed |= {f"adam.exp_avg_sq.{name}" for name in began}
        for name in sorted(set(training) | needed):
            tensor = training.get(name)
            fits = tensor is not None and tensor.is_floating_point()
            if name.startswith("carried.") and name[8:].isdecimal():
                fits = fits and tensor.ndim == 3  # type: ignore[union-attr]
            else:
                fits = fits and tuple(tensor.shape) == expected.get(name)  # type: ignore[union-attr]
            if not fits:
                raise FolderError(
                    f"{path} does not fit the model: {name} is missing, or not what it was. "
                    f"Delete {path.parent} to go on from an older checkpoint."
                )

    def restore(self, weights: Tensors, training: Tensors) -> None:
        """Put back what `best_weights` and `training_tensors` gave."""
        part = self.world.part
        if self.average:
            for name, average in self.average.weights.items():
                average.copy_(part(weights[name], average))
        # Where there was no average, the weights that were the best are those that learned.
        weights = {name: training.get(f"weights.{name}", tensor) for name, tensor in weights.items()}
        parameters = dict(self.model.named_parameters())
        _fill(self.model, {name: part(weights[name], parameter) for name, parameter in parameters.items()})
        restore_optimizer(self.optimizer, self.model, training, part)
        kept = sorted(name for name in training if name.startswith("carried."))
        self.carried = tuple(self.world.part_rows(training[name].to(self.device)) for name in kept)
        rows = range(training[kept[0]].shape[1] if kept else 0)
        self._rows = len(rows[self.world.share.block(len(rows))])


def _fill(model: Model, weights: Tensors) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
