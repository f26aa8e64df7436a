"""Every model that writes learns to copy and to reverse short strings it has never seen, without one mistake."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from conftest import WRITERS
from regard.config import DecodeConfig, TrainConfig, read
from regard.decode.sampling import greedy
from regard.models import build
from regard.models.base import Source, Writer
from regard.text.batching.batch import make_pairs, pad
from regard.training.trainer import Learner

SYMBOLS = range(4, 10)
STRINGS = [list(ids) for length in (1, 2, 3, 4) for ids in product(SYMBOLS, repeat=length)]
STEPS, LOOK = 1500, 50
WIDE: dict[str, dict[str, Any]] = {
    "rnn": {"width": 128, "depth": 1},
    "lstm": {"width": 128, "depth": 1},
    "gru": {"width": 128, "depth": 1},
    "seq2seq": {"width": 96, "depth": 1},
    "bahdanau": {"width": 64, "depth": 1},
    "luong": {"width": 64, "depth": 1},
    "conv": {"width": 64, "depth": 2},
    "transformer": {"width": 64, "heads": 4, "depth": 1, "inner": 128, "norm": "before"},
    "universal": {"width": 64, "heads": 4, "depth": 2, "inner": 128, "norm": "before"},
    "lm": {"width": 64, "heads": 4, "depth": 2, "inner": 128},
    "memory": {"width": 64, "heads": 4, "depth": 3, "inner": 128, "block": 8, "kernel": 2},
}
RATES = {"rnn": 0.001, "conv": 0.004}
SOON = ("lstm", "bahdanau", "conv", "transformer", "lm")
"""One of each family; the others are tried where tests may take minutes."""


def written(model: Writer, strings: list[list[int]]) -> list[list[int]]:
    model.eval()
    found = greedy(model, Source(*pad(strings)), DecodeConfig(max_length=8))
    return [hypotheses[0].ids for hypotheses in found]


@pytest.mark.parametrize("task", ["copy", pytest.param("reverse", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", [name if name in SOON else pytest.param(name, marks=pytest.mark.long) for name in WRITERS]
)
def test_it_learns_the_rule(name: str, task: str) -> None:
    random = np.random.default_rng(1)
    order = random.permutation(len(STRINGS))
    unseen, seen = ([STRINGS[n] for n in part] for part in (order[:150], order[150:]))
    answer = (lambda ids: ids) if task == "copy" else (lambda ids: ids[::-1])
    model = build(read({"model": {"name": name, **WIDE[name], "dropout": 0.0}}).model, 10)
    learner = Learner(model, TrainConfig(smoothing=0.0), torch.device("cpu"), torch.float32)
    rate = RATES.get(name, 0.003)
    for step in range(1, STEPS + 1):
        chosen = [seen[n] for n in random.integers(len(seen), size=128)]
        batch = make_pairs(chosen, [answer(ids) for ids in chosen], list(range(128)))
        learner.update([batch], step, rate * min(1, step / 50) * min(1, (STEPS - step) / 500))
        if step % LOOK == 0 and written(model, unseen) == [answer(ids) for ids in unseen]:
            return
    pytest.fail(f"after {STEPS} steps it still makes mistakes")
