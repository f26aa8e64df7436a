"""What a person sees of the training: a live bar in a terminal, plain lines anywhere else. All on stderr."""

import sys
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from regard.config import TrainConfig
from regard.training.loop import Display, TrainState
from regard.training.validation import SCORES, Validation

BLOCKS = "▁▂▃▄▅▆▇█"
SHOWN = 140  # characters of a sample translation


def sparkline(values: list[float], width: int = 24) -> str:
    """The last values as a row of bars.

    >>> sparkline([3, 2, 1])
    '█▄▁'
    """
    values = values[-width:]
    if not values:
        return ""
    low, high = min(values), max(values)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0
    return "".join(BLOCKS[int((value - low) * scale)] for value in values)


def scores(validation: Validation) -> str:
    """What was measured besides the loss."""
    digits = {"bits_per_byte": 3}
    return "  ".join(f"{SCORES[name]} {value:.{digits.get(name, 1)}f}" for name, value in validation.scores.items())


def shortened(text: str) -> str:
    """On one line, and not too long: a model that has learned little can go on and on."""
    text = " ⏎ ".join(text.split("\n"))
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def open_display(config: TrainConfig) -> "Lines | Bar":
    """A bar if stderr is a terminal, else lines."""
    return Bar(config) if sys.stderr.isatty() else Lines()


class Lines(Display):
    """One plain line for each event."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        pass

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def counting(self, what: str, done: int, total: int) -> None:
        """How far something has come that must be done before training."""
        self.note(f"{what}: {done:,} of {total:,}")

    def training(self, state: TrainState, line: dict[str, Any]) -> None:
        self.note(
            f"step {line['step']:,}  epoch {line['epoch'] + 1}  loss {line['loss']:.3f}  rate {line['rate']:.2g}  "
            f"{line['tokens_per_second']:,.0f} tokens/s  {line['seconds']:,.0f} s"
        )

    def validation(self, state: TrainState, validation: Validation, *, best: bool) -> None:
        self.note(
            f"step {state.step:,}  validation: loss {validation.loss:.3f}  perplexity {validation.perplexity:.2f}  "
            f"{scores(validation)}{'  best so far' if best else ''}"
        )
        for sample in validation.samples:
            for mark, text in zip(("  ", "→ ", "= "), sample, strict=True):
                if text:
                    self.note(f"  {mark}{shortened(text)}")


class Bar(Lines):
    """A progress bar with the time left, speed, the loss and its recent course, and the best validation."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._losses: list[float] = []
        self._best = ""
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[news]}"),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("training", total=1.0, news="", visible=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        self._progress.console.print(escape(text), highlight=False)

    def counting(self, what: str, done: int, total: int) -> None:
        described = f"{what}: {done:,} of {total:,}"
        self._progress.update(self._task, completed=done / max(1, total), description=described, visible=True)

    def training(self, state: TrainState, line: dict[str, Any]) -> None:
        self._losses.append(line["loss"])
        # Whichever budget is used up first is the one to show.
        done = state.step / self._config.steps
        if self._config.max_minutes:
            done = max(done, state.seconds / (60 * self._config.max_minutes))
        news = (
            f"loss {line['loss']:.3f} {sparkline(self._losses)} {line['tokens_per_second']:,.0f} tokens/s{self._best}"
        )
        self._progress.update(
            self._task, completed=min(1.0, done), description=f"step {state.step:,}", news=news, visible=True
        )

    def validation(self, state: TrainState, validation: Validation, *, best: bool) -> None:
        if best:
            self._best = f"  best {validation.loss:.3f} {scores(validation).partition('  ')[0]} at {state.step:,}"
        super().validation(state, validation, best=best)
