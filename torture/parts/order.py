"""The order in which pairs are learned: killed again and again, the same pairs stand in the same updates."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from conftest import QUICK, write_digits
from torture.rows import Row

PAIRS, EPOCHS, KILLS, SECONDS = 4000, 3, 8, 600
WAYS = {
    "words, batches by length": {},
    "two batches an update": {"train.accumulate": 2},
    "subwords drawn anew in each epoch": {"text.tokenizer": "bpe", "text.vocabulary": 60, "text.sampling": 0.1},
}
# Writes down which pairs each update learned from, and kills itself after so many of them.
CHILD = """
import json, os, signal, sys
from regard.cli.main import main
from regard.training.trainer import Learner

plain, left = Learner.update, iter(range(int(sys.argv[2])))

def update(self, batches, step, rate):
    done = plain(self, batches, step, rate)
    with open(sys.argv[1], "a") as file:
        file.write(json.dumps([step, [number for batch in batches for number in batch.numbers]]) + "\\n")
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

Learner.update = update
sys.exit(main(sys.argv[3:]))
"""


def run(scratch: Path) -> Iterator[Row]:
    data = write_digits(scratch, PAIRS)
    for number, (what, settings) in enumerate(WAYS.items()):
        given = {
            **QUICK,
            "train.batch_tokens": 512,
            "train.checkpoint_steps": 7,
            "train.validate_steps": 50,
            **settings,
        }
        given |= {"train.steps": 10**6, "train.patience": 0, "train.average": 1, "model.width": 8, "model.inner": 8}
        yield same_order(scratch / str(number), data, given, what)


def same_order(folder: Path, data: list[str], settings: dict[str, object], what: str) -> Row:
    folder.mkdir()
    trained(folder, "trial", data, {**settings, "train.steps": 1}, 10**6)
    steps = EPOCHS * -(-batches(folder / "trial") // int(str(settings.get("train.accumulate", 1))))
    settings = {**settings, "train.steps": steps}
    trained(folder, "whole", data, settings, 10**6)
    moments, kills = random.Random(what), 0
    while trained(folder, "killed", data, settings, moments.randint(8, 2 * steps // KILLS)) == -signal.SIGKILL:
        kills += 1
    whole, killed = (ids_by_step(folder / f"{name}.ids") for name in ("whole", "killed"))
    ids = [number for step in sorted(whole) for (numbers,) in [whole[step]] for number in numbers]
    differ = sum(whole.get(step) != killed.get(step) for step in whole | killed)
    doubled = sum(len(set(epoch)) != len(epoch) for epoch in (ids[n * PAIRS : (n + 1) * PAIRS] for n in range(EPOCHS)))
    seen = f"{kills} kills, {steps} updates: {differ} differ, {doubled} of {EPOCHS} epochs with a pair lost or doubled"
    passed = not differ and not doubled and kills > 0 and len(ids) == EPOCHS * PAIRS
    return Row("T11", f"the order of pairs: {what}", len(ids), seen, passed)


def trained(folder: Path, name: str, data: list[str], settings: dict[str, object], updates: int) -> int:
    """One call of the command, which may be killed; its code."""
    given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-c", CHILD, str(folder / f"{name}.ids"), str(updates), "train", *data, "--valid", *data]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    ended = subprocess.run([*command, "--to", str(folder / name), *given], env=environment, timeout=SECONDS, **quiet)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr.decode()
    return ended.returncode


def batches(model: Path) -> int:
    """In an epoch."""
    from regard.folder.layout import CACHE, TOKENS, load_config
    from regard.text.batching.loader import Loader
    from regard.text.shards.pair_shards import Shards
    from regard.text.tokenizers.tokenizer import load_tokenizer

    config, _ = load_config(model)
    loader = Loader(Shards(model / CACHE / TOKENS / "train"), config.train.batch_tokens, config.train.seed)
    if config.text.sampling:
        loader.sample_subwords(load_tokenizer(model, config.text), config.text.sampling)
    return loader.count(0)


def ids_by_step(path: Path) -> dict[int, list[list[int]]]:
    """Which pairs each update learned from: one list, unless it was made again and learned from others."""
    found: dict[int, list[list[int]]] = {}
    for line in path.read_text().splitlines():
        step, ids = json.loads(line)
        if ids not in (lists := found.setdefault(step, [])):
            lists.append(ids)
    return found
