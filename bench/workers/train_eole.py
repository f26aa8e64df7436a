"""eole's training step: its own model, loss and optimiser, as its trainer calls them. Its Transformer has the norm before."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

from bench import sizes, worker
from bench.batches import torch_batches

with warnings.catch_warnings():  # about extensions for GPUs
    warnings.simplefilter("ignore")
    from eole.config.run import TrainConfig
    from eole.inputters.inputter import build_vocab
    from eole.models.model import get_model_class
    from eole.transforms import get_specials
    from eole.utils.loss import LossCompute
    from eole.utils.optimizers import Optimizer

SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")


def prepare(settings: dict[str, Any]) -> Any:
    """A new model with its optimiser, and the batches."""
    batches, size = torch_batches(settings["batches"])
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        config = _config(Path(folder), settings["model"], size)
        vocabularies = build_vocab(config, get_specials(config, {}))
    model = get_model_class(config.model).for_training(config.model, vocabularies, config.training).train()
    measure = LossCompute.from_config(config, model, vocabularies)
    optimizer = Optimizer.from_config(model, config)
    renumbered = torch.arange(size)
    renumbered[: len(SPECIALS)] = torch.tensor([vocabularies["src"][special] for special in SPECIALS])

    def step(number: int) -> int:
        given = batches[number]
        batch = {
            "src": renumbered[given.source],
            "tgt": renumbered[given.target],
            "srclen": given.source_lengths,
            "cid": ["bench"] * len(given.source),
            "cid_line_number": list(range(len(given.source))),
        }
        optimizer.zero_grad(set_to_none=True)
        output, attention, estimate = model(batch["src"], batch["tgt"], batch["srclen"], with_align=False)
        loss, _, _ = measure(batch, output, attention, estim=estimate)
        optimizer.backward(loss / given.tokens)
        optimizer.step()
        return int(given.tokens)

    return lambda order: worker.timed_steps(step, len(batches))


def _config(folder: Path, shape: dict[str, Any], size: int) -> TrainConfig:
    """Its settings want files, though nothing but the vocabulary is read."""
    words = [*SPECIALS, *(f"w{number}" for number in range(size - len(SPECIALS)))]
    (folder / "vocabulary").write_text("\n".join(words) + "\n")
    (folder / "text").write_text("w1 w2\n")
    model = {
        "architecture": "transformer",
        "layers": shape["depth"],
        "heads": shape["heads"],
        "hidden_size": shape["width"],
        "transformer_ff": shape["inner"],
        "embeddings": {"word_vec_size": shape["width"], "position_encoding_type": "SinusoidalInterleaved"},
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "mlp_activation_fn": "relu",
    }
    training = {
        "dropout": [shape["dropout"]],
        "attention_dropout": [0.0],
        "label_smoothing": sizes.SMOOTHING,
        "optim": "adam",
        "learning_rate": sizes.RATE,
        "max_grad_norm": sizes.CLIP,
        "compute_dtype": "fp32",
        "use_amp": False,
        "model_path": str(folder / "model"),
    }
    text = str(folder / "text")
    return TrainConfig(
        data={"bench": {"path_src": text, "path_tgt": text}},
        src_vocab=str(folder / "vocabulary"),
        share_vocab=True,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        model=model,
        training=training,
    )


if __name__ == "__main__":
    worker.serve(prepare)
