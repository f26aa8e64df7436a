"""Two processes that train together, many times over: none may end by a signal that nobody sent."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from safetensors.torch import load_file
from test_distributed import children, distance

from conftest import QUICK, write_digits
from killed import differences
from regard.training.log import read_log
from torture.rows import Row

TRIALS, KILLS = 100, 10
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
    os.environ |= {"PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "1"}
    yield by_themselves(data, scratch)
    yield one_killed(data, scratch)
    yield one_two_one(data, scratch)


def by_themselves(data: list[str], scratch: Path) -> Row:
    whole = 0
    for trial in range(TRIALS):
        arguments = command(data, scratch / f"{trial}", *KINDS[trial % len(KINDS)])
        done = subprocess.run(arguments, capture_output=True, text=True)
        fine = done.returncode == 0 and "Fatal Python error" not in done.stderr
        whole += fine
        if not fine:
            print(f"trial {trial}, exit code {done.returncode}:\n{done.stderr}", file=sys.stderr, flush=True)
    what = "two processes train together: DDP, FSDP2, a recurrent model, Muon"
    seen = f"{whole} ended by themselves, {TRIALS - whole} by a signal or an error"
    return Row("T15", what, TRIALS, seen, whole == TRIALS)


def one_killed(data: list[str], scratch: Path) -> Row:
    """One of two is killed at a random moment: torch's launcher begins both again, from the last checkpoint."""
    moments, same, kills = random.Random(KILLS), 0, 0
    longer = ("--set", "train.steps=200", "--max-restarts", "3")
    subprocess.run(command(data, scratch / "whole", *longer), check=True, capture_output=True)
    for trial in range(KILLS):
        to = scratch / f"killed{trial}"
        with subprocess.Popen(command(data, to, *longer), stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("step"):
                    break
            time.sleep(moments.uniform(0, 1))
            if ranks := children(process.pid):
                os.kill(moments.choice(ranks), signal.SIGKILL)
                kills += 1
            process.stderr.read()
        same += process.returncode == 0 and not differences(scratch / "whole", to)
    what = "one of two processes killed, with --max-restarts 3"
    return Row("T15", what, KILLS, f"{kills} killed, {same} results equal to the uninterrupted one", same == KILLS)


def one_two_one(data: list[str], scratch: Path) -> Row:
    """A third of the steps by one process, a third by two, a third by one again, against one process all the time."""
    alone = ("--set", "model.dropout=0", "--set", "train.epsilon=1e-6", "--set", "train.rate=0.003", "--processes", "1")
    runs: dict[str, list[tuple[int, tuple[str, ...]]]] = {"alone": [(60, ())]}
    for name, several in (("DDP", ("--processes", "2")), ("FSDP2", ("--processes", "2", "--shard"))):
        runs[name] = [(20, ()), (40, several), (60, ())]
    logs = []
    for name, parts in runs.items():
        for steps, more in parts:
            arguments = command(data, scratch / name, *alone, "--set", f"train.steps={steps}", *more)
            subprocess.run(arguments, check=True, capture_output=True)
        logs.append([line for line in read_log(scratch / name / "log.jsonl") if "rate" in line])
    whole, *others = logs
    read = all([line["tokens"] for line in whole] == [line["tokens"] for line in other] for other in others)
    apart = [abs(one["loss"] / line["loss"] - 1) for other in others for one, line in zip(whole, other, strict=True)]
    kept = [load_file(scratch / name / "checkpoints/step-00000060/weights.safetensors") for name in runs]
    far = max(distance(kept[0], other) for other in kept[1:])
    what = "one process, then two (DDP; FSDP2), then one again, 60 steps"
    seen = f"{'as many tokens after each step' if read else 'OTHER TEXTS'}; losses, logged to "
    seen += f"six decimals, differ by {max(apart):.0e} at most, and the weights by {far:.0e} of their length"
    return Row("T14", what, len(others), seen, read and max(apart) <= 1e-5)
