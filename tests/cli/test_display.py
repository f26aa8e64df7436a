"""What a person sees of the training."""

import io
from typing import Any

import pytest
from rich.console import Console

from regard.cli import display
from regard.config import TrainConfig
from regard.training.loop import TrainState
from regard.training.validation import Sample, Validation

LINE: dict[str, Any] = {
    "step": 50, "epoch": 0, "loss": 4.5, "rate": 0.001, "tokens_per_second": 1234.5, "seconds": 9.0, "tokens": 1, "padding": 0.0,
}  # fmt: skip
SAMPLE = Sample("a [b] source", "what was [red]written", "its target")
VALIDATION = Validation(1.5, {"bleu": 33.3, "chrf": 55.5}, [SAMPLE])


def show(shown: Any) -> None:
    state = TrainState(step=50, seconds=9.0)
    with shown:
        shown.note("a note with [brackets]")
        shown.training(state, LINE)
        shown.training(state, {**LINE, "loss": 3.5})
        shown.validation(state, VALIDATION, best=True)
        shown.training(state, {**LINE, "loss": 2.5})


def test_plain_lines_say_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    show(display.Lines())
    printed = capsys.readouterr()
    assert printed.out == ""
    for part in ("[brackets]", "step 50", "loss 4.500", "1,234 tokens/s", "BLEU 33.3", "best so far", "[red]written"):
        assert part in printed.err


def test_a_terminal_gets_a_bar_with_the_course_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(
        display, "Console", lambda **_: Console(file=terminal, force_terminal=True, width=160, color_system=None)
    )
    show(display.Bar(TrainConfig(steps=100, max_minutes=1)))
    for part in ("50%", "█", "1,234 tokens/s", "best 1.500 BLEU 33.3 at 50", "[red]written"):
        assert part in terminal.getvalue()


def test_what_comes_before_training_is_counted_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    display.Lines().counting("reading", 1500, 6000)
    assert capsys.readouterr().err == "reading: 1,500 of 6,000\n"
    terminal = io.StringIO()
    monkeypatch.setattr(display, "Console", lambda **_: Console(file=terminal, force_terminal=True, width=160))
    with display.Bar(TrainConfig()) as bar:
        bar.counting("reading", 1500, 6000)
    assert "reading: 1,500 of 6,000" in terminal.getvalue() and "25%" in terminal.getvalue()


def test_a_bar_is_only_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, kind in ((True, display.Bar), (False, display.Lines)):
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        assert type(display.open_display(TrainConfig())) is kind
