"""The training loop."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from regard.config import TrainConfig
from regard.errors import FolderError, TrainingError
from regard.folder import checkpoints as checkpoint
from regard.models.base import Model
from regard.text.batching.batch import Batch, Batches
from regard.text.batching.prefetch import ahead
from regard.training.distributed import Tensors
from regard.training.log import Log, NoLog
from regard.training.schedule import rate_at
from regard.training.trainer import Learner, NotFiniteError, Update
from regard.training.validation import Validation

LARGEST = 2**62
"""Of a count in a checkpoint, beyond what any training comes to."""


@dataclass
class TrainState:
    """Where training stands; saved with every checkpoint."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """The next batch to be read within the epoch."""
    tokens: int = 0
    seconds: float = 0.0
    metric: str = ""
    """What `best` is a value of (train.metric); empty where it was not yet kept."""
    best: float | None = None
    best_loss: float = 0.0
    """The loss of that validation, which decides between equal values; 0, so never beaten, where it was not yet kept."""
    best_step: int = 0
    validated_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    lowered: float = 1.0
    """What a plateau has multiplied the rate by."""
    plateau_stale: int = 0
    window: dict[str, float] = field(default_factory=dict)
    """Sums since the last line of the log."""
    log_bytes: int = 0
    seen_bytes: int = 0

    @classmethod
    def restored(cls, table: Mapping[str, Any], path: Path) -> Self:
        """What was saved; an error if it is not what a training can have saved."""
        fresh = asdict(cls())
        for name, value in table.items():
            if name == "window":
                fits = isinstance(value, dict) and all(_is_number(one) for one in value.values())
            elif name == "best":
                fits = value is None or _is_number(value)
            elif name == "metric":
                fits = isinstance(value, str)
            else:
                fits = name in fresh and _is_number(value, of=type(fresh[name])) and not value < 0
            if not fits:
                raise FolderError(
                    f"{path} cannot be used: {name} is {value!r:.100}. Delete {path.parent} to go on from an older one."
                )
        return cls(**table)

    def ended(self, config: TrainConfig) -> str | None:
        """Why training is over, if it is."""
        if self.step >= config.steps:
            return f"{config.steps:,} steps done (train.steps)"
        if config.max_minutes and self.seconds >= 60 * config.max_minutes:
            return f"{config.max_minutes:g} minutes used (train.max_minutes)"
        if config.patience and self.stale >= config.patience:
            return f"no better validation for {self.stale} times (train.patience)"
        return None


def _is_number(value: Any, of: type = float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if of is int else (int, float)):
        return False
    return abs(value) < LARGEST if of is int else abs(value) <= sys.float_info.max or not math.isfinite(value)


class Display:
    """What a person sees of the training; this one shows nothing."""

    def note(self, text: str) -> None:
        """Something worth knowing."""

    def training(self, state: TrainState, line: dict[str, Any]) -> None:
        """A line of the log."""

    def validation(self, state: TrainState, validation: Validation, *, best: bool) -> None:
        """A validation."""


@dataclass
class Loop:
    """Everything training works with."""

    learner: Learner
    loader: Batches[Batch]
    config: TrainConfig
    width: int
    checkpoints: Path
    log: Log | NoLog
    seen: Log | NoLog
    display: Display
    validate: Callable[[Model], Validation]
    watch: Callable[[Model], dict[str, Any]]
    """What to keep of a model at each validation, besides the samples."""
    keep_best: Callable[[Tensors], None]
    stop: Callable[[], bool] = lambda: False
    state: TrainState = field(default_factory=TrainState)
    _began: float = field(init=False, default=0.0)
    """The moment at which training would have begun, had it never been interrupted."""
    _saved: tuple[int, float] = field(init=False, default=(0, 0.0))
    """Step and seconds of the last checkpoint."""

    def run(self) -> str | None:
        """Train until the end, and say why it ended; None if it was stopped before, at a step that is saved."""
        state, config = self.state, self.config
        self._began = time.monotonic() - state.seconds
        self._saved = (state.step, state.seconds)
        if state.metric not in ("", config.metric):  # overridden: values of two metrics cannot be compared
            state.best, state.stale, state.plateau_stale = None, 0, 0
        state.metric = config.metric
        batches = self._batches()
        stopped = self._look_up()
        while True:
            # Also when a run is taken up again: it may have been interrupted before or in a validation.
            if not stopped and self._validation_due():
                self._validate()
            reason = state.ended(config)
            if reason or stopped:
                break
            if self._checkpoint_due():
                self.save()
            update = self._step([next(batches) for _ in range(config.accumulate)])
            stopped = self._look_up()
            self._note(update)
        if reason and state.validated_step != state.step:
            self._validate()
        self.save()
        return reason

    def _validation_due(self) -> bool:
        state = self.state
        return state.step % self.config.validate_steps == 0 and state.validated_step != state.step

    def save(self) -> None:
        """Checkpoint the present step, unless it is saved already; remove what an earlier run was kept from removing."""
        state = self.state
        if state.step == self._saved[0]:
            self._prune()
            return
        state.log_bytes, state.seen_bytes = self.log.sync(), self.seen.sync()
        weights, training = self.learner.best_weights(), self.learner.training_tensors()
        if self.learner.world.leads:
            self._refuse_spoilt({**weights, **training})
            checkpoint.save(self.checkpoints, state.step, weights, training, asdict(state))
        self._prune()
        self._saved = (state.step, state.seconds)

    def _prune(self) -> None:
        if self.learner.world.leads:
            checkpoint.prune(self.checkpoints, self.config.keep, self.config.checkpoint_steps)

    def _refuse_spoilt(self, tensors: Tensors) -> None:
        """The loss and the gradient of a step can be finite, and yet what it makes of the weights is not."""
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                state, config = self.state, self.config
                rate = rate_at(state.step, config, self.width, state.lowered)
                raise TrainingError(
                    f"Step {state.step} or one shortly before led to numbers that are not finite ({name}), which are not "
                    f"saved. Lower train.rate (it was {rate:.2g}) or set train.clip, with --override, and run the command "
                    "again: it goes on from the last checkpoint."
                )

    def _look_up(self) -> bool:
        """Whether to stop before the next step; and what time it is, by which all processes decide the same."""
        stopped, self.state.seconds = self.learner.world.agree(self.stop(), time.monotonic() - self._began)
        return stopped

    def _batches(self) -> Iterator[Batch]:
        """Batches from where the state stands, epoch after epoch; the state follows."""
        state = self.state
        while True:
            for batch in ahead(self.loader.batches(state.epoch, state.batch)):
                state.batch += 1
                yield batch
            state.epoch, state.batch = state.epoch + 1, 0

    def _step(self, batches: list[Batch]) -> Update:
        state, config = self.state, self.config
        rate = rate_at(state.step + 1, config, self.width, state.lowered)
        try:
            update = self.learner.update(batches, state.step + 1, rate)
        except NotFiniteError as error:
            shown = self.loader.places([number for batch in batches for number in batch.numbers])
            raise TrainingError(
                f"Step {state.step + 1} was not made, because its numbers are not finite ({error}); the weights are "
                f"untouched. Its batch was {shown}. Lower train.rate (it was "
                f"{rate:.2g}) or set train.clip, with --override, and run the command again."
            ) from None
        state.step += 1
        state.tokens += update.tokens
        window = state.window
        window["padding"] = window.get("padding", 0) + sum(batch.padding for batch in batches)
        window["places"] = window.get("places", 0) + sum(batch.places for batch in batches)
        return update

    def _note(self, update: Update) -> None:
        """Add the update to the window, and write the window to the log when it is full."""
        state, window = self.state, self.state.window
        for name, value in (
            ("loss", update.loss),
            ("tokens", update.tokens),
            ("gradient", update.gradient),
            ("steps", 1),
        ):
            window[name] = window.get(name, 0) + value
        if state.step % self.config.log_steps:
            return
        line = {
            "step": state.step,
            "epoch": state.epoch,
            "loss": round(window["loss"] / window["tokens"], 6),
            "rate": float(f"{rate_at(state.step, self.config, self.width, state.lowered):.6g}"),
            "gradient": round(window["gradient"] / window["steps"], 6),
            "tokens": state.tokens,
            "padding": round(window["padding"] / window["places"], 4),
            "tokens_per_second": round(window["tokens"] / max(1e-9, state.seconds - window.get("since", 0.0)), 1),
            "seconds": round(state.seconds, 2),
        }
        self.log.write(**line)
        self.display.training(state, line)
        state.window = {"since": state.seconds}

    def _validate(self) -> None:
        """The leader validates; where training stands after that, the others are told.

        What was learned is saved before, as much can happen in a validation, and what was found is added to it.
        """
        self.save()
        weights = self.learner.best_weights()
        try:
            vars(self.state).update(self.learner.world.told(lambda: self._validated(weights)))
        except TrainingError as error:
            saved = checkpoint.folder_of(self.checkpoints, self.state.step)
            raise TrainingError(
                f"{error} To go on from the checkpoint before, delete {saved}, and use --override."
            ) from None
        self.state.log_bytes, self.state.seen_bytes = self.log.sync(), self.seen.sync()
        if self.learner.world.leads:
            checkpoint.add_outcome(self.checkpoints, self.state.step, asdict(self.state))

    def _validated(self, weights: Tensors) -> dict[str, Any]:
        state, config = self.state, self.config
        before = time.monotonic()
        model = self.learner.model_with(weights)
        validation, seen = self.validate(model), self.watch(model)
        state.validated_step = state.step
        best = state.best is None or validation.better_than(state.best, state.best_loss, config.metric)
        if best:
            state.best, state.best_loss, state.best_step = validation.value(config.metric), validation.loss, state.step
            state.stale = state.plateau_stale = 0
            self.keep_best(weights)
        else:
            state.stale += 1
            state.plateau_stale += 1
            if state.plateau_stale >= config.plateau_patience:
                state.lowered, state.plateau_stale = state.lowered * config.plateau_factor, 0
        state.seconds = time.monotonic() - self._began
        # Validation is not training: the tokens of this window were not learned during it.
        state.window["since"] = state.window.get("since", 0.0) + time.monotonic() - before
        self.log.write(
            step=state.step,
            valid_loss=round(validation.loss, 6),
            valid_perplexity=round(validation.perplexity, 4),
            **{f"valid_{name}": round(score, 4) for name, score in validation.scores.items()},
            best=best,
            seconds=round(state.seconds, 2),
        )
        self.seen.write(step=state.step, samples=validation.samples, **seen)
        self.display.validation(state, validation, best=best)
        return vars(state)

    def _checkpoint_due(self) -> bool:
        minutes = self.config.checkpoint_minutes
        return self.state.step % self.config.checkpoint_steps == 0 or bool(
            minutes and self.state.seconds - self._saved[1] >= 60 * minutes
        )
