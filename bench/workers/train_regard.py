"""Regard's training step, by the way that `regard train` takes."""

from typing import Any

import torch

from bench import sizes, worker
from bench.batches import torch_batches
from regard.config import read
from regard.models import build
from regard.system.allocator import keep_memory
from regard.system.device import pick_device, pick_precision
from regard.text.batching.batch import Pairs
from regard.training.losses.cross_entropy import pairs_loss
from regard.training.trainer import Learner


def prepare(settings: dict[str, Any]) -> Any:
    """A learner with a new model, and the batches."""
    keep_memory()
    batches, vocabulary = torch_batches(settings["batches"])
    pairs = [Pairs(*batch, numbers=list(range(len(batch.source)))) for batch in batches]
    config = read(
        {
            "model": {"name": "transformer", **settings["model"]},
            "train": {"smoothing": sizes.SMOOTHING, "clip": sizes.CLIP, "precision": settings["precision"]},
        }
    )
    torch.manual_seed(1)
    device = pick_device("cpu")
    precision = pick_precision(config.train.precision, device)
    learner = Learner(build(config.model, vocabulary), config.train, device, precision, pairs_loss)
    return lambda order: worker.timed_steps(
        lambda number: learner.update([pairs[number]], number + 1, sizes.RATE).tokens, len(pairs)
    )


if __name__ == "__main__":
    worker.serve(prepare)
