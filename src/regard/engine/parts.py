"""What every Transformer is made of, under our names and under CTranslate2's; and weights checked before they get there."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from regard.engine.binary import Variables
from regard.engine.shapes import Shapes
from regard.errors import FolderError, TrainingError

Weights = Mapping[str, NDArray[np.generic]]


def checked(path: Path, shapes: Shapes) -> Weights:
    """The weights in a file, if they are those of the model: the library would not look."""
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise FolderError(f"{path} cannot be read as weights ({error}). Copy the folder again.") from None
    found = {name: weight.shape for name, weight in weights.items()}
    for name in sorted(set(shapes) | set(found)):
        if found.get(name) != shapes.get(name):
            raise FolderError(
                f"{path} does not fit its config.json: {name} is {found.get(name, 'missing')}, "
                f"not {shapes.get(name, 'there')}. Copy the folder again."
            )
    if not all(bool(np.isfinite(weight).all()) for weight in weights.values()):
        raise TrainingError(
            f"{path} holds weights that are not numbers (NaN), so nothing can be written: its training has diverged, or "
            "it is damaged. Use an earlier checkpoint, or train again with a lower train.rate."
        )
    return weights


def encoder_layer(weights: Weights, ours: str, theirs: str) -> Variables:
    """Self-attention and the feed-forward layer, each with its norm."""
    variables = attention(weights, f"{ours}.attention", f"{theirs}/self_attention")
    variables |= norm(weights, f"{ours}.around_attention.norm", f"{theirs}/self_attention/layer_norm")
    return variables | feed_forward(weights, ours, theirs)


def attention(weights: Weights, ours: str, theirs: str, *, of_source: bool = False) -> Variables:
    """Its products; of attention to a source, the queries apart from keys and values."""
    project = {part: weights[f"{ours}.project.{part}"] for part in ("weight", "bias")}
    parts = [project]
    if of_source:
        width = len(project["bias"]) // 3
        parts = [{name: value[:width] for name, value in project.items()}]
        parts += [{name: value[width:] for name, value in project.items()}]
    parts.append({part: weights[f"{ours}.join.{part}"] for part in ("weight", "bias")})
    return {f"{theirs}/linear_{n}/{name}": value for n, part in enumerate(parts) for name, value in part.items()}


def feed_forward(weights: Weights, ours: str, theirs: str) -> Variables:
    """Its two products and its norm."""
    linear = {
        f"{theirs}/ffn/linear_{number}/{part}": weights[f"{ours}.feed_forward.{name}.{part}"]
        for number, name in enumerate(("widen", "narrow"))
        for part in ("weight", "bias")
    }
    return linear | norm(weights, f"{ours}.around_feed_forward.norm", f"{theirs}/ffn/layer_norm")


def norm(weights: Weights, ours: str, theirs: str) -> Variables:
    """Scale and shift."""
    return {f"{theirs}/gamma": weights[f"{ours}.weight"], f"{theirs}/beta": weights[f"{ours}.bias"]}
