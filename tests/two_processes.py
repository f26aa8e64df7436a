"""What each of several processes does for test_distributed: trains models on the same batches, and keeps their weights.

python -m torch.distributed.run --nproc-per-node 2 two_processes.py FOLDER shard transformer lstm
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from conftest import SMALL
from regard.config import TrainConfig, read
from regard.models import build
from regard.text.batching.batch import Batch, Batches
from regard.text.batching.labelled import LabelledLoader
from regard.text.batching.loader import Loader
from regard.text.batching.masking import MaskedLoader
from regard.text.batching.passages import PassageLoader
from regard.text.batching.rank_split import Share
from regard.text.shards.pair_shards import Shards, ShardWriter, Tokenised, gathered
from regard.text.shards.token_stream import Stream
from regard.text.tokenizers.tokenizer import BEGIN, END, Listed
from regard.training.distributed import Tensors, World, joined
from regard.training.losses.cross_entropy import Objective, pairs_loss, passages_loss
from regard.training.tasks.classification import labels_loss
from regard.training.tasks.masked_lm import masked_loss
from regard.training.trainer import Learner

STEPS, LABELS, TEXT = 50, 3, ("rnn", "lstm", "gru", "lm")
WORDS = Listed("words", ["<mask>", *(f"\u2581{letter}" for letter in "abcdefghijklmnopqrstuvwxyz.")])


def pairs(folder: Path, labels: bool) -> Shards:
    """Pairs of random words, or texts with a label; the first process to need them writes them."""
    random = np.random.default_rng(1)
    writer = ShardWriter(folder, WORDS.size)
    for line in range(1, 201):
        source = random.integers(6, WORDS.size, random.integers(2, 12)).tolist()
        target = (
            [int(random.integers(LABELS))]
            if labels
            else random.integers(6, WORDS.size, random.integers(2, 12)).tolist()
        )
        writer.add(gathered([Tokenised(line, source, target, None)]))
    writer.close()
    return Shards(folder)


def text() -> Stream:
    """Some documents of sentences, each with a full stop."""
    random, ids = np.random.default_rng(2), []
    for _ in range(20):
        sentences = [random.integers(6, WORDS.size - 1, random.integers(3, 9)).tolist() for _ in range(20)]
        ids += [BEGIN, *(i for sentence in sentences for i in [*sentence, WORDS.size - 1]), END]
    return Stream(np.array(ids), bytes=3000)


def work(name: str, folder: Path, share: Share) -> tuple[Batches[Batch], Objective]:
    """What a model of this name learns from; the recurrent ones carry their state on."""
    if name == "classifier":
        return LabelledLoader(pairs(folder, labels=True), 30, 120, 1, share), labels_loss
    if name == "bert":
        loader = MaskedLoader(text().ids, WORDS, longest=30, batch_tokens=240, seed=1, our_share=share)
        return loader, masked_loss
    if name in TEXT:
        return PassageLoader(text(), 12, 120, 1, carried=name != "lm", share=share), passages_loss
    return Loader(pairs(folder, labels=False), 120, 1, share), pairs_loss


def begun(name: str, objective: Objective, world: World, seed: int = 1) -> Learner:
    """A learner in float32 and without dropout."""
    torch.manual_seed(seed)
    model = build(
        read({"model": {"name": name, **SMALL[name]}}).model, WORDS.size, LABELS if name == "classifier" else 0
    )
    # Adam divides by how large a gradient usually is: where that is nothing but rounding, epsilon must be more.
    config = TrainConfig(smoothing=0.1, epsilon=1e-6, ema=0.5)
    return Learner(model, config, torch.device("cpu"), torch.float32, objective, world)


def trained(name: str, folder: Path, world: World) -> Learner:
    """The learner after some steps."""
    loader, objective = work(name, folder / f"{name}-{world.rank}", world.share)
    learner, batches = begun(name, objective, world), endless(loader)
    for step in range(1, STEPS + 1):
        learner.update([next(batches), next(batches)], step, 1e-3)
    return learner


def saved(learner: Learner, stem: Path) -> None:
    """What a checkpoint holds, by the process that leads."""
    kept = {"weights": learner.best_weights(), "training": learner.training_tensors()}
    learner.world.told(lambda: [store(part, stem.with_suffix(f".{name}")) for name, part in kept.items()])


def store(tensors: Tensors, path: Path) -> None:
    safetensors.torch.save_file({key: tensor.detach().contiguous() for key, tensor in tensors.items()}, path)


def taken_up(name: str, stem: Path, world: World) -> Learner:
    """Another learner that goes on from what was saved."""
    learner = begun(name, pairs_loss, world, seed=2)
    learner.restore(*(safetensors.torch.load_file(stem.with_suffix(f".{part}")) for part in ("weights", "training")))
    return learner


def endless(loader: Batches[Any]) -> Iterator[Any]:
    epoch = 0
    while True:
        yield from loader.batches(epoch)
        epoch += 1


if __name__ == "__main__":
    to, kind, *names = sys.argv[1:]
    torch.set_num_threads(1)
    with joined(shard=kind == "shard") as world:
        for name in names:
            saved(trained(name, Path(to) / kind, world), Path(to) / name)
            saved(taken_up(name, Path(to) / name, world), Path(to) / f"{name}-again")
