"""A model folder's weights: a model out of a folder, and into it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.config import ClassifierConfig, Config, ModelConfig
from regard.errors import FolderError
from regard.folder.checkpoints import as_parts, load_tensors, size_of
from regard.folder.layout import CONFIG, MODEL, check_type, load_config, weights_file
from regard.models import build
from regard.models.base import Model
from regard.models.bert import Classifier
from regard.system import files, storage
from regard.text.tokenizers.tokenizer import Tokenizer, load_tokenizer


def save_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write the weights that translation uses, replacing earlier ones only once the new ones are safe."""
    storage.write_parts(folder / MODEL, as_parts(weights), size_of(weights))


Shapes = dict[str, tuple[int, ...]]


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
    labels = len(about.get("labels", ()))
    if isinstance(config.model, ClassifierConfig) and not labels:
        raise FolderError(f"{folder / CONFIG} names no labels. Let training go on, or restore it from a copy.")
    check_shapes(shapes_of(config.model, tokenizer.size, labels), path)
    model = build(config.model, tokenizer.size, labels)
    load_weights(model, load_tensors(path), path)
    return Loaded(model.eval(), tokenizer, config, about)


def check_folder(folder: Path) -> None:
    """Refuse a model folder whose weights do not fit its settings, without loading or building anything."""
    config, about = load_config(folder)
    tokenizer = load_tokenizer(folder, config.text)
    expected = shapes_of(config.model, tokenizer.size, max(1, len(about.get("labels", ()))))
    check_shapes(expected, weights_file(folder))


def shapes_of(config: ModelConfig, vocabulary: int, labels: int) -> Shapes:
    """By name, the weights a model has, which is not built for that."""
    with torch.device("meta"), _Unfilled():
        labels = labels if isinstance(config, ClassifierConfig) else 0
        return {name: tuple(weight.shape) for name, weight in weights_of(build(config, vocabulary, labels)).items()}


class _Unfilled(TorchFunctionMode):
    """Tensors without memory are not filled, either: for that torch would load a second of libraries."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, first = function.__name__, next(iter((*args, *(kwargs or {}).values())), None)
        fills = name.endswith("_") and not name.endswith("__") and name != "requires_grad_"
        if fills and isinstance(first, Tensor) and first.is_meta:
            return first
        return function(*args, **(kwargs or {}))


def check_shapes(expected: Shapes, path: Path) -> None:
    """Refuse a file of weights by what its header says, which takes no memory: settings may ask for any size."""
    try:
        with safetensors.safe_open(files.tensors(path), "pt") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no dict)
    except FileNotFoundError:
        raise FolderError(f"{path} is missing. Copy the folder again, or go on training to make it.") from None
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise FolderError(f"{path} cannot be read as weights ({error}). Copy the folder again.") from None
    _compare(expected, found, path)


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
    expected, found = ({name: tuple(tensor.shape) for name, tensor in one.items()} for one in (own, weights))
    _compare(expected, found, path)
    for name, weight in own.items():
        check_type(path, name, str(weights[name].dtype).removeprefix("torch."))
        weight.data.copy_(weights[name])


def _compare(expected: Shapes, found: Shapes, path: Path) -> None:
    for name in sorted(set(expected) | set(found)):
        if name not in expected or name not in found:
            fault = "is in only one of them"
        elif expected[name] != found[name]:
            fault = f"is {found[name]}, not {expected[name]}"
        else:
            continue
        raise FolderError(f"{path} does not fit its {CONFIG}: {name} {fault}. Copy the folder again.")
