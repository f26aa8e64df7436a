"""How memory and time of a training step grow with the text, the batch and the model; every point is a fresh process."""

import json
import subprocess
import sys

from bench.contest import ROOT
from bench.result import Options, Result
from bench.sizes import BASE, BASE_VOCABULARY

USUAL = {"length": 32, "tokens": 2048, "width": 256, "depth": 3, "vocabulary": 8000}
GROWING = {
    "length": [16, 64, 256, 1024, 2048],
    "tokens": [512, 1024, 2048, 4096, 8192],
    "width": [64, 128, 256, 512, 768],
    "depth": [1, 2, 3, 4, 6],
    "vocabulary": [2000, 8000, 16_000, 32_000, 64_000],
}
ONE_TEXT = [512, 1024, 2048, 4096, 8192]


def grow(options: Options) -> Result:
    """One thing grows at a time; the others stay as usual."""
    usual = ", ".join(f"{name} {value:,}" for name, value in USUAL.items())
    result = Result(
        "How memory and time grow",
        "",
        f"One training step of a Transformer in the precision Regard chooses, inner width 4 times the width, 4 heads; "
        f"unless it is what grows: {usual}. *Tokens* are those of the batch on each side. *One text* is a batch of a "
        "single pair of that length (width 64, one layer): were the weights of attention held, its memory would grow with "
        "the square.",
    )
    result.curves = {
        name: [{"at": value, **_point(USUAL | {name: value})} for value in values] for name, values in GROWING.items()
    }
    base = {"length": 32, "width": BASE["width"], "depth": BASE["depth"], "vocabulary": BASE_VOCABULARY}
    result.curves["tokens of Transformer-base"] = [
        {"at": tokens, **_point(base | {"tokens": tokens})} for tokens in GROWING["tokens"]
    ]
    small = USUAL | {"width": 64, "depth": 1}
    result.curves["one text"] = [
        {"at": length, **_point(small | {"length": length, "tokens": length})} for length in ONE_TEXT
    ]
    return result


def _point(shape: dict[str, int]) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.workers.step", json.dumps(shape)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
