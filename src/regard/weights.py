"""A model folder's weights: a model out of a folder, and into it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from regard import storage
from regard.checkpoint import as_parts, load_tensors, size_of
from regard.config import Config
from regard.errors import FolderError
from regard.folder import CONFIG, MODEL, check_type, load_config, weights_file
from regard.models import build
from regard.models.bert import Classifier
from regard.models.interface import Model
from regard.text.tokenizer import Tokenizer, load_tokenizer


def save_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write the weights that translation uses, replacing earlier ones only once the new ones are safe."""
    storage.write_parts(folder / MODEL, as_parts(weights), size_of(weights))


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
    path = weights_file(folder)
    model = build(config.model, tokenizer.size, len(about.get("labels", ())))
    load_weights(model, load_tensors(path), path)
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
        check_type(path, name, str(weights[name].dtype).removeprefix("torch."))
        own[name].data.copy_(weights[name])
