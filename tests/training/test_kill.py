"""kill -9 at random moments, the same again each time: the result is byte for byte the uninterrupted one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import QUICK, SMALL, write_digits
from killed import differences, killed, training_of

KILLS = int(os.environ.get("REGARD_KILLS", "2"))


# One of each task and of each way to remember; the others take half a minute more.
SOON = ("lstm", "transformer", "bert", "classifier")
NAMES = [name if name in SOON else pytest.param(name, marks=pytest.mark.long) for name in SMALL]


@pytest.mark.parametrize("name", NAMES)
def test_kills_change_nothing(name: str, tmp_path: Path) -> None:
    training = training_of(name, tmp_path, steps=18)
    for result in killed(training, tmp_path, KILLS, seed=KILLS):
        assert not differences(tmp_path / "whole", result)


def command(data: list[str], to: Path) -> list[str]:
    settings = [part for key, value in QUICK.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "regard", "train", *data, "--to", str(to), *settings]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_a_polite_signal_saves_and_tells_how_to_go_on(tmp_path: Path, number: int, code: int) -> None:
    data, to = write_digits(tmp_path, 400), tmp_path / "model"
    arguments = [*command(data, to), "--steps", "100000"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("step"):
                break
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait() == code
    assert "Saved at step" in rest and f"regard train {data[0]}" in rest
    assert list((to / "checkpoints").glob("step-*"))
