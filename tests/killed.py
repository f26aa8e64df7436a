"""Trainings that are killed at random moments: each a process of its own, forked from one that has torch already."""

import multiprocessing
import random
import signal
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from conftest import QUICK, SMALL, write_digits
from regard.training.log import CLOCK, read_log

NAMED = ("README.md", ".lock", "state.json", "validated.json", "manifest.json")
"""Files that hold the folder's name, the process's number or seconds, which may differ."""
PROCESSES = multiprocessing.get_context("forkserver")
# What a training imports, some of it not before its first step.
PROCESSES.set_forkserver_preload(
    ["regard.training.run", "regard.api", "regard.training.tasks", "torch._dynamo", "sacrebleu", "sentencepiece"]
)
TEXT = ("rnn", "lstm", "gru", "lm", "bert")


class Training(NamedTuple):
    """What is learned, and how."""

    data: list[str]
    settings: dict[str, Any]


def training_of(name: str, folder: Path, steps: int) -> Training:
    """A short training of a small model in which whatever is random or remembered is on."""
    chosen = {key: value for key, value in QUICK.items() if not key.startswith("model.")}
    chosen |= {
        "model.name": name,
        **{f"model.{key}": value for key, value in SMALL[name].items()},
        "model.dropout": 0.3,
    }
    chosen |= {"train.steps": steps, "train.ema": 0.9, "text.longest": 15}
    chosen |= {"train.checkpoint_steps": max(1, steps // 6), "train.validate_steps": max(1, steps // 3)}
    if name in TEXT:
        text = folder / "text.txt"
        text.write_text("".join(f"one {n % 7} two . three {n % 5} four .\n\n" for n in range(600)))
        return Training([str(text)], chosen | {"text.document": "paragraph"})
    if name == "classifier":
        table = folder / "labels.tsv"
        table.write_text("".join(f"one {n % 7} two {n % 5}\t{'even' if n % 2 else 'odd'}\n" for n in range(400)))
        return Training([str(table)], chosen)
    sampling = {"text.tokenizer": "bpe", "text.vocabulary": 60, "text.sampling": 0.1}
    return Training(write_digits(folder, 400), chosen | {"text.kind": "pairs", **sampling})


def work(training: Training, to: str) -> None:
    """Of one process: train, or go on."""
    import regard

    regard.train(training.data, to, settings=training.settings)


def begun(training: Training, to: Path) -> BaseProcess:
    """A process that trains."""
    process = PROCESSES.Process(target=work, args=(training, str(to)))
    process.start()
    return process


def finished(training: Training, to: Path) -> float:
    """How many seconds a training took that nobody kills."""
    began = time.monotonic()
    process = begun(training, to)
    process.join()
    assert process.exitcode == 0
    return time.monotonic() - began


def killed(training: Training, to: Path, kills: int, seed: int) -> Iterator[Path]:
    """Each result of a training that is killed and begun again, until there were so many kills.

    The moments are random, within the time that a whole training takes, in the folder `whole` beside.
    """
    ready = PROCESSES.Process(target=int)  # the first one waits until everything is imported
    ready.start()
    ready.join()
    duration = finished(training, to / "whole")
    moments = random.Random(seed)
    number = 0
    while kills:
        folder = to / f"{number}"
        process = begun(training, folder)
        process.join(moments.uniform(0, duration))
        process.kill()  # nothing, if it has ended
        process.join()
        if process.exitcode == -signal.SIGKILL:
            kills -= 1
        else:
            assert process.exitcode == 0
            yield folder
            number += 1
    finished(training, to / f"{number}")
    yield to / f"{number}"


def differences(whole: Path, other: Path) -> list[str]:
    """Files in which two results differ, clocks and the folder's own name aside, or that only one of them has.

    What a killed process was just writing, under a temporary name, is no result.
    """
    one, two = (_contents(folder) for folder in (whole, other))
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))


def _contents(folder: Path) -> dict[str, object]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".tmp")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in found}
    contents: dict[str, object] = {name: None if Path(name).name in NAMED else files[name] for name in files}
    log = read_log(folder / "log.jsonl")
    contents["log.jsonl"] = [{key: value for key, value in line.items() if key not in CLOCK} for line in log]
    return contents
