"""One training step of a Transformer of any shape in a fresh process: its time, and the most memory it ever had."""

import json
import resource
import sys
import time
from typing import Any

import numpy as np
import torch

from bench.sizes import END, RATE
from regard.config import read
from regard.models import build
from regard.system.allocator import keep_memory
from regard.system.device import pick_precision
from regard.text.batching.batch import Pairs, make_pairs
from regard.training.losses.cross_entropy import pairs_loss
from regard.training.trainer import Learner


def measure(shape: dict[str, Any]) -> dict[str, float]:
    """Seconds a target word of the better of two steps, megabytes of the process before the first and at most."""
    keep_memory()
    torch.manual_seed(1)
    model = {"name": "transformer", "width": shape["width"], "inner": 4 * shape["width"], "depth": shape["depth"]}
    config = read({"model": {**model, "heads": 4, "dropout": 0.1}})
    device = torch.device("cpu")
    learner = Learner(
        build(config.model, shape["vocabulary"]), config.train, device, pick_precision("auto", device), pairs_loss
    )
    before = _megabytes()
    batch = _batch(shape["length"], shape["tokens"], shape["vocabulary"])
    seconds = []
    for number in (1, 2):
        began = time.perf_counter()
        learner.update([batch], number, RATE)
        seconds.append(time.perf_counter() - began)
    return {"seconds": min(seconds) / batch.tokens, "before": before, "most": _megabytes()}


def _batch(length: int, tokens: int, vocabulary: int) -> Pairs:
    random = np.random.Generator(np.random.PCG64(1))
    rows = max(1, tokens // length)
    sides = [[random.integers(END + 1, vocabulary, length - 1) for _ in range(rows)] for _ in range(2)]
    return make_pairs(sides[0], sides[1], list(range(rows)))


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
