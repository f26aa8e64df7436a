"""Two processes that train together, many times over: none may end by a signal that nobody sent."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from conftest import QUICK, write_digits
from torture.rows import Row

TRIALS = 100
SETTINGS = {**QUICK, "train.validate_steps": 10, "train.checkpoint_steps": 10, "train.ema": 0.9}
LSTM = {"model.width": 32, "model.depth": 1, "model.dropout": 0.1}
KINDS: list[tuple[str, ...]] = [(), ("--shard",), ("--model", "lstm"), ("--set", "train.optimizer=muon")]


def command(data: list[str], to: Path, *options: str) -> list[str]:
    """A short training by two processes."""
    settings = SETTINGS if "lstm" not in options else {k: v for k, v in SETTINGS.items() if "model." not in k} | LSTM
    chosen = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "regard", "train", *data, "--to", str(to), *chosen, "--processes", "2", *options]


def run(scratch: Path) -> Iterator[Row]:
    data = write_digits(scratch, 400)
    # If a process is ended, its stacks are told.
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "1"}
    whole = 0
    for trial in range(TRIALS):
        arguments = command(data, scratch / f"{trial}", *KINDS[trial % len(KINDS)])
        done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
        fine = done.returncode == 0 and "Fatal Python error" not in done.stderr
        whole += fine
        if not fine:
            print(f"trial {trial}, exit code {done.returncode}:\n{done.stderr}", file=sys.stderr, flush=True)
    what = "two processes train together: DDP, FSDP2, a recurrent model, Muon"
    yield Row(
        "T15", what, TRIALS, f"{whole} ended by themselves, {TRIALS - whole} by a signal or an error", whole == TRIALS
    )
