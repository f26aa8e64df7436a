"""Recurrent and convolutional models against the same models as a good tutorial would write them.

    python bench/plain.py lstm bahdanau --size tiny

For each model, three contestants take turns with the same batches, each in a process of its own, as whoever trains one
would have it: the plain model with its own loop in float32, and Regard's learner in float32 and in the precision it
chooses. One JSON line for each model: milliseconds a step, best and median of the rounds, and how many times as fast as
the plain one Regard is.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import plain_models
import torch
from plain_models import PAD
from torch import Tensor, nn

from regard.config import SIZES, TrainConfig
from regard.config.models import MODEL_CONFIGS, PREFERENCES
from regard.models import build
from regard.system.allocator import keep_memory
from regard.system.device import pick_precision
from regard.text.batching.batch import Batch, Pairs, make_pairs
from regard.text.batching.loader import plan
from regard.text.batching.passages import Passages
from regard.training.losses.cross_entropy import pairs_loss, passages_loss
from regard.training.trainer import Learner

VOCABULARY = 10_000
LANGUAGE_MODELS = ("rnn", "lstm", "gru")
RATE = 1e-3
CONTESTANTS = ("plain", "float32", "auto")
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


def _words(random: np.random.Generator, lengths: Iterable[int]) -> list[Any]:
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


def contestant(kind: str, name: str, chosen: argparse.Namespace) -> Step:
    """The update that this process is to time."""
    config, train = settings(name, chosen.size)
    if kind == "plain":
        return theirs(name, config, train)
    keep_memory()  # as `regard train` does before anything else
    precision = torch.float32 if kind == "float32" else pick_precision("auto", torch.device("cpu"))
    return ours(config, precision, train, text=name in LANGUAGE_MODELS)


def settings(name: str, size: str) -> tuple[Any, TrainConfig]:
    """Of a model, and of its training."""
    kind = MODEL_CONFIGS[name]
    return kind(**SIZES[kind][size]), TrainConfig(**PREFERENCES.get(kind, {}).get("train", {}))


def work(kind: str, name: str, chosen: argparse.Namespace) -> None:
    """Run a round for each line that comes in, and write how many seconds a step took."""
    text = name in LANGUAGE_MODELS
    batches = (
        passage_batches(chosen.tokens, chosen.batches, chosen.length)
        if text
        else pair_batches(chosen.tokens, chosen.batches)
    )
    step, number = contestant(kind, name, chosen), 0
    for _ in sys.stdin:
        before = time.perf_counter()
        for batch in batches:
            number += 1
            step(number, batch)
        print((time.perf_counter() - before) / len(batches), flush=True)


def race(name: str, chosen: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds a step of each contestant in each round; they take turns, and the first round does not count."""
    same = [f"--{key}={getattr(chosen, key)}" for key in ("size", "tokens", "length", "batches")]
    workers = {
        kind: subprocess.Popen(
            [sys.executable, __file__, name, *same, f"--contestant={kind}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in CONTESTANTS
    }
    seconds: dict[str, list[float]] = {kind: [] for kind in CONTESTANTS}
    for _ in range(chosen.rounds + 1):
        for kind, worker in workers.items():
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
            seconds[kind].append(float(worker.stdout.readline()))
    for worker in workers.values():
        worker.communicate()
    return {kind: values[1:] for kind, values in seconds.items()}


def compare(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """One model's line."""
    seconds = race(name, chosen)
    middle = {kind: statistics.median(values) for kind, values in seconds.items()}
    milliseconds = {
        kind: {"best": round(1000 * min(values), 1), "median": round(1000 * middle[kind], 1)}
        for kind, values in seconds.items()
    }
    shape = {"passage": chosen.length} if name in LANGUAGE_MODELS else {}
    auto = pick_precision("auto", torch.device("cpu"))
    return {
        "model": name,
        "size": chosen.size,
        "batch_tokens": chosen.tokens,
        **shape,
        "auto": str(auto).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "milliseconds": milliseconds,
        "times_as_fast": {kind: round(middle["plain"] / middle[kind], 2) for kind in CONTESTANTS[1:]},
    }


def main() -> None:
    """Compare the models named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(plain_models.PLAIN), help="all of them unless named")
    parser.add_argument("--size", default="tiny", help="tiny, small or base")
    parser.add_argument("--tokens", type=int, default=4096, help="in a batch")
    parser.add_argument("--length", type=int, default=64, help="tokens of a passage, for language models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=6, help="in each round")
    parser.add_argument("--contestant", choices=CONTESTANTS, help="be this one, and run a round for each line read")
    chosen = parser.parse_args()
    for name in chosen.models:
        if chosen.contestant:
            work(chosen.contestant, name, chosen)
        else:
            print(json.dumps(compare(name, chosen)), flush=True)


if __name__ == "__main__":
    main()
