"""Validation: it lives with any text, and what a run has learned is safe before it begins."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from conftest import QUICK, SMALL, write_digits
from regard.config import parse_set, read
from regard.errors import DataError
from regard.folder import checkpoints
from regard.training import loop
from regard.training.log import CLOCK, read_log
from regard.training.loop import Display, Loop
from regard.training.run import train

PLAIN = {key: value for key, value in QUICK.items() if not key.startswith("model.")}
SHORT = {**PLAIN, "train.steps": 4, "train.validate_steps": 2, "train.checkpoint_steps": 100}
LONG = 1500  # more than a model reads, if nobody says how much that is


class Notes(Display):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def trained(name: str, folder: Path, data: list[str], valid: list[str], **settings: Any) -> list[str]:
    """What a short training of a small model says."""
    chosen = SHORT | {"model.name": name} | {f"model.{key}": value for key, value in SMALL[name].items()}
    chosen |= {key.replace("__", "."): value for key, value in settings.items()}
    notes, config = Notes(), read(parse_set(f"{key}={value}" for key, value in chosen.items()))
    assert train(data, folder / "model", config, valid=valid, display=notes).step == 4
    return notes.notes


def longer(data: list[str], *lines: tuple[str, str]) -> list[str]:
    """The same files with more lines."""
    for path, more in zip(data, zip(*lines, strict=True), strict=True):
        Path(path).write_text(Path(path).read_text() + "".join(f"{line}\n" for line in more))
    return data


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("transformer", {}),
        ("transformer", {"model__positions": "learned", "model__longest": 32}),
        ("conv", {}),
        ("seq2seq", {}),
        ("universal", {}),
        ("lm", {}),
        ("rnn", {}),
    ],
)
def test_pairs_too_long_to_validate_on_are_left_out_and_counted(
    name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    valid = longer(write_digits(tmp_path, 9, "valid"), ("1 " * LONG, "one"), ("1", "one " * LONG), ("2 " * 40, "two"))
    told = trained(name, tmp_path, write_digits(tmp_path), valid, text__longest=15, text__kind="pairs", **settings)
    limited = settings or name in ("conv",)
    out = 3 if limited else 2
    assert [note for note in told if note.startswith(f"left out {out} of 12 validation pairs")]
    assert sum("validation pairs" in note for note in told) == 1


def test_pairs_as_long_as_those_learned_from_are_validated_on(tmp_path: Path) -> None:
    long = ("1 " * LONG, "one " * LONG)
    data, valid = longer(write_digits(tmp_path, 20), long), longer(write_digits(tmp_path, 3, "valid"), long)
    told = trained("rnn", tmp_path, data, valid, text__longest=LONG, text__kind="pairs")
    assert not any("left out" in note for note in told)


def test_if_no_pair_can_be_validated_on_training_does_not_begin(tmp_path: Path) -> None:
    valid = [tmp_path / "valid.num", tmp_path / "valid.en"]
    for path in valid:
        path.write_text("1 " * LONG + "\n")
    with pytest.raises(DataError, match=r"no pair to validate on.*--valid"):
        trained("transformer", tmp_path, write_digits(tmp_path), [str(path) for path in valid])


@pytest.mark.parametrize("name", ["lm", "lstm", "memory", "bert"])
def test_running_text_of_any_length_is_validated_on(name: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three . four five .\n" * 100)
    valid = tmp_path / "valid.txt"
    valid.write_text("one two.\n" + "one " * LONG + "\n")
    other = {"model__next_sentence": "false"} if name == "bert" else {}
    trained(name, tmp_path, [str(text)], [str(valid)], text__longest=20, **other)


def test_of_a_long_text_to_label_the_beginning_is_read_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, valid = tmp_path / "labels.tsv", tmp_path / "valid.tsv"
    table.write_text("one two\tyes\nthree four\tno\n" * 50)
    valid.write_text("one two\tyes\n" + "three " * LONG + "\tno\n")
    told = trained("classifier", tmp_path, [str(table)], [str(valid)], text__longest=20)
    assert [note for note in told if "validation text" in note] == [
        "1 of 2 validation texts have more than 30 tokens; only their beginnings are read"
    ]
    assert not caplog.records


def test_subwords_cut_at_random_never_make_a_pair_longer_than_is_let_in(tmp_path: Path) -> None:
    data = longer(write_digits(tmp_path), ("111", "one one one"))
    settings = {"text__tokenizer": "bpe", "text__vocabulary": 60, "text__sampling": 0.9, "text__longest": 8}
    trained("transformer", tmp_path, data, data, model__positions="learned", model__longest=9, **settings)


# What was learned is safe before validation begins, and what validation found, after it.


class Killed(BaseException):
    """As sudden as a kill: nothing in the training catches it."""


def killing(call: Callable[..., Any], at: int, *, after: bool) -> Callable[..., Any]:
    """The same function, killed in its call number `at`, before it does anything or when all is done."""
    calls = 0

    def killed(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        made = call(*arguments, **named) if after or calls != at else None
        if calls == at:
            raise Killed
        return made

    return killed


def run(folder: Path, to: str, **settings: Any) -> Any:
    given = {**QUICK, "train.checkpoint_steps": 1000, "train.average": 1, **settings}
    return regard.train(write_digits(folder, 120), folder / to, settings=given)


def same(folder: Path, one: str, other: str) -> None:
    for file in ("model.safetensors", "probe.jsonl", "checkpoints/step-00000040/training.safetensors"):
        assert (folder / one / file).read_bytes() == (folder / other / file).read_bytes(), file
    logs = [
        [
            {key: value for key, value in line.items() if key not in CLOCK}
            for line in read_log(folder / to / "log.jsonl")
        ]
        for to in (one, other)
    ]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("after", [False, True], ids=["at its beginning", "when it is told"])
@pytest.mark.parametrize("validation", [1, 2])
def test_a_run_killed_while_it_validates_has_its_step_and_goes_on_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validation: int, after: bool
) -> None:
    run(tmp_path, "whole")
    monkeypatch.setattr(Loop, "_validated", killing(Loop._validated, validation, after=after))
    with pytest.raises(Killed):
        run(tmp_path, "killed")
    assert max(checkpoints.steps(tmp_path / "killed" / "checkpoints")) == 20 * validation
    made: list[int] = []
    update = loop.Learner.update
    monkeypatch.setattr(loop.Learner, "update", lambda *given: made.append(given[2]) or update(*given))
    run(tmp_path, "killed")
    assert made == list(range(20 * validation + 1, 41))
    same(tmp_path, "whole", "killed")


def test_what_validation_found_is_saved_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"train.rate": 1e-30, "train.patience": 2, "train.validate_steps": 5, "train.metric": "bleu"}
    reason = run(tmp_path, "whole", **settings).reason
    monkeypatch.setattr(loop.checkpoint, "add_outcome", killing(checkpoints.add_outcome, 3, after=True))
    with pytest.raises(Killed):
        run(tmp_path, "killed", **settings)
    kept = checkpoints.load_state(tmp_path / "killed" / "checkpoints", 15)
    assert (kept["stale"], kept["best_step"], kept["validated_step"]) == (2, 5, 15)
    monkeypatch.setattr(Loop, "_validated", None)  # nothing is left to validate but the end
    assert run(tmp_path, "killed", **settings).reason == reason


def test_a_kill_in_a_validation_changes_nothing(tmp_path: Path) -> None:
    """A real one, while texts are scored."""
    run(tmp_path, "whole")
    data = [str(tmp_path / "train.num"), str(tmp_path / "train.en")]
    settings = {**QUICK, "train.checkpoint_steps": 1000, "train.average": 1}
    kills = (
        "import os, regard; from regard.evaluation import metrics\n"
        "metrics.bleu = lambda *_, **__: os.kill(os.getpid(), 9)\n"
        f"regard.train({data!r}, {str(tmp_path / 'killed')!r}, settings={settings!r})"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", kills], env=environment, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert checkpoints.steps(tmp_path / "killed" / "checkpoints") == [20]
    run(tmp_path, "killed")
    same(tmp_path, "whole", "killed")
