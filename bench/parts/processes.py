"""Two processes with one thread each beside one process with two: the same run of `regard train`, gone on with in turns."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import inputs
from bench.contest import ContestError, race
from bench.result import Options, Result
from regard.training.log import read_log

STEPS = 30
"""Of a turn; its first window of the log counts the start, and is left out."""
WINDOW = 5
OURS = "two processes"


class Run:
    """A training that goes on for some steps at each turn."""

    def __init__(self, name: str, data: list[str], folder: Path, *options: str) -> None:
        self.name, self._folder, self._steps = name, folder / name.replace(" ", "-"), 0
        settings = {"text.vocabulary": 10_000, "train.batch_tokens": inputs.BATCH_TOKENS, "train.log_steps": WINDOW}
        settings |= {"train.validate_steps": 10**9, "train.validate_sentences": 1, "train.average": 1}
        chosen = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        self._command = [sys.executable, "-m", "regard", "train", *data, "--to", str(self._folder), *chosen, *options]

    def go(self, **order: Any) -> dict[str, Any]:
        """Some more steps."""
        self._steps += STEPS
        alone = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
        done = subprocess.run([*self._command, "--steps", str(self._steps)], capture_output=True, text=True, env=alone)
        if done.returncode:
            raise ContestError(done.stderr.strip().splitlines()[-1])
        lines = [line for line in read_log(self._folder / "log.jsonl") if "tokens_per_second" in line]
        counted = [line for line in lines if line["step"] > self._steps - STEPS + WINDOW]
        tokens = counted[-1]["tokens"] - lines[lines.index(counted[0]) - 1]["tokens"]
        before = [0, *(line["tokens"] for line in lines)]
        took = [(line["tokens"] - before[lines.index(line)]) / line["tokens_per_second"] for line in counted]
        return {"amount": tokens, "seconds": sum(took)}


def compare(options: Options) -> Result:
    """All gradients sent (DDP), and the weights spread too (FSDP2)."""
    tok = options.data / "tok"
    there = (tok / "train.en.gz").exists()
    data = [str(tok / f"train.{side}.gz") for side in ("en", "de")] if there else ["builtin:en-fr"]
    result = Result(
        "Two processes on one machine",
        "target words a second",
        f"`regard train` of Transformer-Tiny on {'Multi30k English to German' if there else 'the built-in corpus'}, the same "
        f"batches of {inputs.BATCH_TOKENS:,} tokens for all. Each process has as many threads as there are cores for it.",
        ours=OURS,
    )
    with tempfile.TemporaryDirectory() as made:
        runs = [
            Run("one process", data, Path(made)),
            Run(OURS, data, Path(made), "--processes", "2"),
            Run("two processes, --shard", data, Path(made), "--processes", "2", "--shard"),
        ]
        result.lines = race(runs, options.rounds, options.seconds)
    return result
