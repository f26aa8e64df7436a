"""Recurrent and convolutional models against the same models as a good tutorial would write them.

    python bench/plain.py lstm bahdanau --size tiny

For each model, three contestants take turns with the same batches: the plain model with its own loop in float32, and
Regard's learner in float32 and in the precision it chooses. One JSON line for each model: milliseconds a step, best and
median of the rounds, and how many times as fast as the plain one Regard is.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plain_models
import torch
from plain_models import PAD
from torch import Tensor, nn

from regard.config import SIZES, TrainConfig
from regard.config.models import MODEL_CONFIGS, PREFERENCES
from regard.device import keep_memory, pick_precision
from regard.models import build
from regard.text.batch import Batch, Pairs, make_pairs
from regard.text.loader import plan
from regard.text.passages import Passages
from regard.training.learner import Learner
from regard.training.loss import pairs_loss, passages_loss

VOCABULARY = 10_000
LANGUAGE_MODELS = ("rnn", "lstm", "gru")
RATE = 1e-3
Step = Callable[[int, Any], None]


def pair_batches(tokens: int, count: int, pairs: int = 29_000) -> list[Batch]:
    """Some batches of pairs as long as image captions are: 14 tokens on average, few of more than 30."""
    random = np.random.default_rng(1)
    sources = np.clip(np.round(random.lognormal(2.57, 0.33, pairs)), 3, 60).astype(int)
    targets = np.clip(np.round(sources * random.normal(1.0, 0.18, pairs)), 3, 60).astype(int)
    planned = plan(sources, targets, tokens, seed=1, epoch=0)
    chosen = [planned.numbers(batch) for batch in range(count)]
    return [make_pairs(_words(random, sources[n]), _words(random, targets[n]), n.tolist()) for n in chosen]


def passage_batches(tokens: int, count: int, length: int) -> list[Batch]:
    """Passages of running text, each going on where the last one ended."""
    random = np.random.default_rng(1)
    rows = tokens // length
    ids = [torch.from_numpy(np.array(_words(random, [length + 1] * rows))) for _ in range(count)]
    return [Passages(ids_BT, fresh=number == 0, numbers=list(range(rows))) for number, ids_BT in enumerate(ids)]


def _words(random: np.random.Generator, lengths: Sequence[int]) -> list[Any]:
    """Ids of which a few are frequent and most are rare, as words are."""
    return [np.minimum(random.zipf(1.2, n) + 3, VOCABULARY - 1) for n in lengths]


def ours(config: Any, precision: torch.dtype, train: TrainConfig, *, text: bool) -> Step:
    """Regard's update, as `regard train` calls it."""
    torch.manual_seed(1)
    model = build(config, VOCABULARY)
    learner = Learner(model, train, torch.device("cpu"), precision, passages_loss if text else pairs_loss)

    def step(number: int, batch: Any) -> None:
        learner.update([batch], number, RATE)

    return step


def theirs(name: str, config: Any, train: TrainConfig) -> Step:
    """The plain model's update: the loop of any tutorial."""
    torch.manual_seed(1)
    model = plain_models.PLAIN[name](config, VOCABULARY).train()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=train.smoothing)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    carried: Any = None

    def step(number: int, batch: Any) -> None:
        nonlocal carried
        if isinstance(batch, Pairs):
            labels_BT = batch.target_BT[:, 1:]
            scores_BTV = model(batch.source_BS, batch.source_lengths_B, batch.target_BT[:, :-1])
        else:
            labels_BT = batch.ids_BT[:, 1:]
            scores_BTV, carried = model(batch.ids_BT[:, :-1], None if batch.fresh else carried)
        loss: Tensor = criterion(scores_BTV.flatten(0, 1), labels_BT.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), train.clip)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    return step


def race(steps: dict[str, Step], batches: list[Batch], rounds: int) -> dict[str, list[float]]:
    """Seconds a step of each contestant in each round; they take turns, and the first round does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    number = 0
    for _ in range(rounds + 1):
        for name, step in steps.items():
            before = time.perf_counter()
            for offset, batch in enumerate(batches):
                step(number + offset + 1, batch)
            seconds[name].append((time.perf_counter() - before) / len(batches))
        number += len(batches)
    return {name: values[1:] for name, values in seconds.items()}


def compare(name: str, size: str, tokens: int, length: int, rounds: int, count: int) -> dict[str, Any]:
    """One model's line."""
    kind = MODEL_CONFIGS[name]
    config = kind(**SIZES[kind][size])
    text = name in LANGUAGE_MODELS
    train = TrainConfig(**PREFERENCES.get(kind, {}).get("train", {}))
    batches = passage_batches(tokens, count, length) if text else pair_batches(tokens, count)
    auto = pick_precision("auto", torch.device("cpu"))
    steps = {
        "plain": theirs(name, config, train),
        "float32": ours(config, torch.float32, train, text=text),
        "auto": ours(config, auto, train, text=text),
    }
    seconds = race(steps, batches, rounds)
    milliseconds = {
        name: {"best": round(1000 * min(values), 1), "median": round(1000 * statistics.median(values), 1)}
        for name, values in seconds.items()
    }
    faster = {
        name: round(statistics.median(seconds["plain"]) / statistics.median(seconds[name]), 2)
        for name in ("float32", "auto")
    }
    shape = {"passage": length} if text else {}
    return {"model": name, "size": size, "batch_tokens": tokens, **shape, "auto": str(auto).removeprefix("torch."),
            "threads": torch.get_num_threads(), "milliseconds": milliseconds, "times_as_fast": faster}  # fmt: skip


def main() -> None:
    """Compare the models named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(plain_models.PLAIN), help="all of them unless named")
    parser.add_argument("--size", default="tiny", help="tiny, small or base")
    parser.add_argument("--tokens", type=int, default=4096, help="in a batch")
    parser.add_argument("--length", type=int, default=64, help="tokens of a passage, for language models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=6, help="in each round")
    chosen = parser.parse_args()
    keep_memory()
    for name in chosen.models:
        print(json.dumps(compare(name, chosen.size, chosen.tokens, chosen.length, chosen.rounds, chosen.batches)))


if __name__ == "__main__":
    main()
