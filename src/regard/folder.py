"""The model folder: everything that is needed to translate raw text, and nothing that can execute.

config.json · model.safetensors · tokenizer.model (or .json) · README.md · log.jsonl · probe.jsonl · checkpoints/ ·
cache/
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
from torch import Tensor

from regard import storage
from regard.checkpoint import load_tensors
from regard.config import Config, as_table, read
from regard.errors import ConfigError, FolderError
from regard.models import build
from regard.models.bert import Classifier
from regard.models.interface import Model
from regard.text.tokenizer import Tokenizer, load_tokenizer

CONFIG, MODEL, LOG, CARD, CHECKPOINTS, CACHE, LOCK = (
    "config.json", "model.safetensors", "log.jsonl", "README.md", "checkpoints", "cache", ".lock",
)  # fmt: skip


def save_config(folder: Path, config: Config, about: dict[str, Any]) -> None:
    """Write all settings, and `about`: what else a reader may want to know, such as the data's name."""
    table = {"format": 1, **as_table(config), "about": about}
    storage.write_file(folder / CONFIG, json.dumps(table, indent=2, ensure_ascii=False).encode())


def load_config(folder: Path) -> tuple[Config, dict[str, Any]]:
    """Settings and `about` of a model folder."""
    path = folder / CONFIG
    if not folder.is_dir():
        raise FolderError(f"There is no model folder {folder}. Train one with: regard train DATA --to {folder}")
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(table, dict):
            raise ValueError("not a table")
        about = table.pop("about", {})
        if table.pop("format", None) != 1:
            raise ValueError("written by another version of Regard")
        return read(table), about
    except FileNotFoundError:
        raise FolderError(
            f"{folder} is not a model folder: it has no {CONFIG}. Name the folder given to --to."
        ) from None
    except (OSError, ValueError, ConfigError) as error:
        raise FolderError(f"{path} cannot be used: {error} Restore it from a copy.") from None


def save_weights(folder: Path, weights: dict[str, Tensor]) -> None:
    """Write the weights that translation uses, replacing earlier ones only once the new ones are safe."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    storage.write_file(folder / MODEL, safetensors.torch.save(plain))


class Loaded(NamedTuple):
    """What a model folder holds."""

    model: Model
    tokenizer: Tokenizer
    config: Config
    about: dict[str, Any]


def load_model(folder: Path) -> Loaded:
    """A trained model, its tokenizer, its settings and what else is known about it."""
    config, about = load_config(folder)
    tokenizer = load_tokenizer(folder, config.text)
    if not (folder / MODEL).exists():
        raise FolderError(
            f"{folder} has no {MODEL} yet: training has not validated once. Let it run on, or look at {LOG}."
        )
    model = build(config.model, tokenizer.size, len(about.get("labels", ())))
    load_weights(model, load_tensors(folder / MODEL), folder / MODEL)
    return Loaded(model.eval(), tokenizer, config, about)


def weights_of(model: Model) -> dict[str, Tensor]:
    """Every parameter once, under its first name, though the model may share it three ways."""
    return dict(model.named_parameters())


def start_from(model: Model, folder: Path) -> None:
    """Give a new model the weights of an earlier one; what only the new one has, such as a layer for labels, stays."""
    path = folder / MODEL
    given, own = load_tensors(path), weights_of(model)
    if not isinstance(model, Classifier) or "labels.weight" in given:
        load_weights(model, given, path)
        return
    new = {name: tensor for name, tensor in own.items() if not name.startswith("body.")}
    load_weights(model, {**new, **{name: given[name] for name in given if name.startswith("body.")}}, path)


def load_weights(model: Model, weights: dict[str, Tensor], path: Path) -> None:
    """Copy weights into a model, refusing any that do not fit."""
    own = weights_of(model)
    for name in sorted(set(own) | set(weights)):
        if name not in weights or name not in own:
            raise FolderError(
                f"{path} does not fit its {CONFIG}: {name} is in only one of them. Copy the folder again."
            )
        if own[name].shape != weights[name].shape:
            expected, found = tuple(own[name].shape), tuple(weights[name].shape)
            raise FolderError(
                f"{path} does not fit its {CONFIG}: {name} is {found}, not {expected}. Copy the folder again."
            )
        own[name].data.copy_(weights[name])
