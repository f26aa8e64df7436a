"""Joey NMT's training step: its own model, loss, batch, clipper and optimiser, as its trainer calls them."""

from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_gradient_clipper, build_optimizer
from joeynmt.config import _check_special_symbols
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary

from bench import sizes, worker
from bench.batches import torch_batches


def prepare(settings: dict[str, Any]) -> Any:
    """A new model with its optimiser, and the batches."""
    batches, size = torch_batches(settings["batches"])
    specials = SimpleNamespace(**_check_special_symbols({}))
    vocabulary = Vocabulary([f"w{number}" for number in range(size - 4)], specials)
    torch.manual_seed(1)
    model = build_model(_config(settings["model"]), vocabulary, vocabulary).train()
    model.loss_function = ("crossentropy", sizes.SMOOTHING)
    optimizer = build_optimizer(
        {"optimizer": "adam", "learning_rate": sizes.RATE, "adam_betas": (0.9, 0.98)}, model.parameters()
    )
    clip = build_gradient_clipper({"clip_grad_val": None, "clip_grad_norm": sizes.CLIP})

    def step(number: int) -> int:
        given = batches[number]
        source, target = _renumbered(given.source), _renumbered(given.target)
        nothing, rows = None, torch.arange(len(source))
        batch = Batch(
            source, given.source_lengths, nothing, target, nothing, rows, torch.device("cpu"),
            pad_index=vocabulary.pad_index, eos_index=vocabulary.eos_index,
        )  # fmt: skip
        batch.sort_by_src_length()
        loss, _, _, _ = model(return_type="loss", **vars(batch))
        batch.normalize(loss, normalization="tokens").backward()
        clip(parameters=model.parameters())
        optimizer.step()
        model.zero_grad()
        return int(batch.ntokens)

    return lambda order: worker.timed_steps(step, len(batches))


def _config(shape: dict[str, Any]) -> dict[str, Any]:
    side = {
        "type": "transformer",
        "num_layers": shape["depth"],
        "num_heads": shape["heads"],
        "hidden_size": shape["width"],
        "ff_size": shape["inner"],
        "dropout": shape["dropout"],
        "layer_norm": "post",
        "embeddings": {"embedding_dim": shape["width"], "scale": True, "dropout": shape["dropout"]},
    }
    return {"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}


def _renumbered(ids: torch.Tensor) -> torch.Tensor:
    """Joey NMT has the unknown word first and padding second; ours is the other way round."""
    return torch.where(ids == sizes.PAD, sizes.UNKNOWN, torch.where(ids == sizes.UNKNOWN, sizes.PAD, ids))


if __name__ == "__main__":
    worker.serve(prepare)
