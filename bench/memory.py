"""The most memory that steps of a model held, against the tokens in a batch: it must grow in a straight line.

    python bench/memory.py --size base

Each size of batch has a process of its own. One JSON line for each, and a last one: megabytes that a further thousand
places of a batch, source and target together, cost between each two sizes. The first ones cost less: what small batches
hold on the way forth fits into what gradients take on the way back.
"""

import argparse
import itertools
import json
import resource
import subprocess
import sys

import torch
from plain import VOCABULARY, ours, pair_batches

from regard.config import SIZES, TrainConfig
from regard.config.models import MODEL_CONFIGS
from regard.device import keep_memory, pick_precision

TOKENS = (500, 1000, 2000, 4000, 8000)
STEPS = 3


def held() -> float:
    """The most memory this process has held so far, in megabytes."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def measure(model: str, size: str, tokens: int) -> None:
    """A few steps with batches of so many tokens; one JSON line."""
    kind = MODEL_CONFIGS[model]
    config = kind(**SIZES[kind][size])
    keep_memory()
    before = held()
    precision = pick_precision("auto", torch.device("cpu"))
    step = ours(config, precision, TrainConfig(), text=False)
    batches = pair_batches(tokens, STEPS)
    for number, batch in enumerate(batches, 1):
        step(number, batch)
    places = max(batch.places for batch in batches)
    line = {"model": model, "size": size, "vocabulary": VOCABULARY, "batch_tokens": tokens, "places": places}
    print(json.dumps({**line, "megabytes_before": before, "megabytes": held()}))


def main() -> None:
    """One process for each size of batch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="transformer")
    parser.add_argument("--size", default="base")
    parser.add_argument("--tokens", type=int, help="measure this one alone, here")
    chosen = parser.parse_args()
    if chosen.tokens:
        measure(chosen.model, chosen.size, chosen.tokens)
        return
    peaks = []
    for tokens in TOKENS:
        command = [sys.executable, __file__, "--model", chosen.model, "--size", chosen.size, "--tokens", str(tokens)]
        line = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(json.dumps(line), flush=True)
        peaks.append((line["places"], line["megabytes"]))
    slopes = [round(1000 * (b - a) / (n - m), 1) for (m, a), (n, b) in itertools.pairwise(peaks)]
    print(json.dumps({"megabytes_for_a_thousand_places": slopes}))


if __name__ == "__main__":
    main()
