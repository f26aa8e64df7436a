"""Signals that ask a training to stop: all of them end it soon, what was learned is saved, and it goes on to the same bytes."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from test_distributed import children

from conftest import QUICK, write_digits
from killed import differences
from torture.rows import Row

TRIALS, STEPS, LIMIT = 50, 400, 30.0
SETTINGS = {**QUICK, "train.steps": STEPS, "train.validate_steps": 100, "train.checkpoint_steps": 100, "train.ema": 0.9}


class Kind(NamedTuple):
    """What is sent, to whom, and the exit code that a training then has, if it was not just at its end."""

    name: str
    sent: tuple[signal.Signals, ...]
    code: int
    processes: int = 1
    to_one: bool = False


TERM, INT, USR1 = signal.SIGTERM, signal.SIGINT, signal.SIGUSR1
KINDS = [
    Kind("SIGTERM", (TERM,), 143), Kind("SIGINT", (INT,), 130), Kind("SIGUSR1", (USR1,), 138),
    Kind("SIGTERM twice", (TERM, TERM), -15), Kind("SIGTERM to two processes", (TERM,), 143, 2),
    Kind("SIGUSR1 to two processes", (USR1,), 138, 2), Kind("SIGTERM to one of two", (TERM,), 0, 2, True),
]  # fmt: skip


def run(scratch: Path) -> Iterator[Row]:
    data, chance = write_digits(scratch, 400), random.Random(TRIALS)
    for processes in (1, 2):
        subprocess.run(command(data, scratch / f"whole{processes}", processes), check=True, capture_output=True)
    seconds, ended, same, strange = [], 0, 0, Counter[str]()
    for trial in range(TRIALS):
        kind, to = KINDS[trial % len(KINDS)], scratch / f"{trial}"
        code, took = stopped(command(data, to, kind.processes), kind, chance.uniform(0, 1))
        seconds.append(took)
        ended += code in (kind.code, 0) or code == 128 + kind.sent[0]
        strange[f"{kind.name}: {code}"] += code not in (kind.code, 0, 128 + kind.sent[0])
        subprocess.run(command(data, to, kind.processes), check=True, capture_output=True)
        same += not differences(scratch / f"whole{kind.processes}", to)
    wrong = "".join(f", {what} ({count})" for what, count in strange.items() if count)
    what = ", ".join(kind.name for kind in KINDS)
    seen = (
        f"{ended} ended as documented{wrong}, after {max(seconds):.1f} s at most; {same} gone on with to the same bytes"
    )
    yield Row("T8, T9", what, TRIALS, seen, ended == same == TRIALS and max(seconds) < LIMIT)


def command(data: list[str], to: Path, processes: int) -> list[str]:
    chosen = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    several = ["--processes", str(processes)] if processes > 1 else []
    return [sys.executable, "-m", "regard", "train", *data, "--to", str(to), *chosen, *several]


def stopped(arguments: list[str], kind: Kind, wait: float) -> tuple[int, float]:
    """The exit code of a training that gets these signals at a random moment, and how long it took to end."""
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("step"):
                break
        time.sleep(wait)
        whom = children(process.pid)[-1] if kind.to_one else process.pid
        began = time.monotonic()
        for number in kind.sent:
            os.kill(whom, number)
            time.sleep(0.001)
        process.stderr.read()
        return process.wait(), time.monotonic() - began
