"""kill -9 at random moments, the same command again each time: the result is byte for byte the uninterrupted one."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import QUICK, write_digits
from regard.training.log import CLOCK, read_log

KILLS = int(os.environ.get("REGARD_KILLS", "4"))
# Everything that is random or remembered is on: dropout, subword sampling, a moving average.
SETTINGS = {
    **QUICK,
    "train.steps": 300,
    "train.checkpoint_steps": 25,
    "train.validate_steps": 50,
    "train.ema": 0.9,
    "model.dropout": 0.3,
    "text.tokenizer": "bpe",
    "text.vocabulary": 60,
    "text.sampling": 0.1,
}


def command(data: list[str], to: Path) -> list[str]:
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "regard", "train", *data, "--to", str(to), *settings]


def test_kills_change_nothing(tmp_path: Path) -> None:
    data = write_digits(tmp_path, 400)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    began = time.monotonic()
    subprocess.run(command(data, whole), check=True, capture_output=True)
    duration = time.monotonic() - began
    moments, kills = random.Random(KILLS), 0
    for _ in range(KILLS):
        process = subprocess.Popen(command(data, killed), stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=moments.uniform(0.1, duration))
        except subprocess.TimeoutExpired:
            process.kill()
            kills += process.wait() == -signal.SIGKILL
    subprocess.run(command(data, killed), check=True, capture_output=True)
    assert kills > 0
    same_result(whole, killed)


def same_result(whole: Path, other: Path) -> None:
    files = ["model.safetensors", "tokenizer.model", "probe.jsonl"]
    files += [f"checkpoints/step-00000300/{name}.safetensors" for name in ("weights", "training")]
    for file in files:
        assert (whole / file).read_bytes() == (other / file).read_bytes(), file
    logs = [
        [{k: v for k, v in line.items() if k not in CLOCK} for line in read_log(f / "log.jsonl")]
        for f in (whole, other)
    ]
    assert logs[0] == logs[1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
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
