"""Recurrent and convolutional models against the same models written plainly: runs bench/plain.py."""

import json
import subprocess
import sys
from typing import Any

from bench.contest import ROOT
from bench.result import Options, Result

SCRIPT = ROOT / "bench" / "plain.py"


def compare(options: Options) -> Result:
    """One row for each model: milliseconds a step, and how many times as fast as the plain one Regard trains it."""
    result = Result(
        "Recurrent and convolutional models",
        "milliseconds a step",
        "Training, against the same model with torch.nn.LSTM, GRU, RNN or Conv1d and CrossEntropyLoss in float32; best "
        "and median of the rounds.",
        table=[["", "plain", "Regard, float32", "Regard", "float32 is", "Regard is"]],
    )
    if not SCRIPT.exists():
        result.failed["bench/plain.py"] = "it is not there"
        return result
    command = [sys.executable, str(SCRIPT), "--rounds", str(options.rounds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    result.table += [_row(json.loads(line)) for line in done.stdout.splitlines()]
    if done.returncode:
        result.failed[SCRIPT.name] = done.stderr.strip().splitlines()[-1]
    return result


def _row(found: dict[str, Any]) -> list[str]:
    took, faster = found["milliseconds"], found["times_as_fast"]
    cells = [f"{took[name]['best']:.0f} / {took[name]['median']:.0f}" for name in ("plain", "float32", "auto")]
    return [found["model"], *cells, f"{faster['float32']:.2f} ×", f"{faster['auto']:.2f} ×"]
