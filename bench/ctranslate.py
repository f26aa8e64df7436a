"""A CTranslate2 model with the weights of one that Regard trained, built by CTranslate2's own specifications."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ctranslate2.specs import common_spec, transformer_spec
from safetensors.numpy import load_file

POSITIONS = 1024
Arrays = dict[str, npt.NDArray[np.float32]]


def convert(folder: Path, to: Path, pieces: list[str], shape: dict[str, Any], precision: str) -> None:
    """Write the model in the folder `to`."""
    stored = load_file(folder / "model.safetensors")
    words = next(array for array in stored.values() if array.shape[0] == len(pieces))
    spec = transformer_spec.TransformerSpec.from_config(
        (shape["depth"], shape["depth"]), shape["heads"], pre_norm=False, activation=common_spec.Activation.RELU
    )
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "<s>"
    places = sinusoids(POSITIONS, shape["width"])
    for side in (spec.encoder, spec.decoder):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = words
        side.scale_embeddings = True
        side.position_encodings.encodings = places
    for number, layer in enumerate(spec.encoder.layer):
        _attention(layer.self_attention, stored, f"encoder.layers.{number}.attention", "around_attention")
        _feed_forward(layer.ffn, stored, f"encoder.layers.{number}")
    for number, layer in enumerate(spec.decoder.layer):
        name = f"decoder.layers.{number}"
        _attention(layer.self_attention, stored, f"{name}.self_attention", "around_self")
        _attention(layer.attention, stored, f"{name}.source_attention", "around_source", width=shape["width"])
        _feed_forward(layer.ffn, stored, name)
    spec.decoder.projection.weight = words
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    to.mkdir(parents=True, exist_ok=True)
    spec.save(str(to))


def _attention(spec: Any, stored: Arrays, name: str, around: str, width: int = 0) -> None:
    """Query, key and value together; of the attention to the source (`width` given) the query apart from the other two."""
    weight, bias = stored[f"{name}.project.weight"], stored[f"{name}.project.bias"]
    cuts = [slice(0, width), slice(width, None)] if width else [slice(None)]
    for linear, cut in zip(spec.linear, cuts, strict=False):
        linear.weight, linear.bias = np.ascontiguousarray(weight[cut]), np.ascontiguousarray(bias[cut])
    _linear(spec.linear[-1], stored, f"{name}.join")
    _norm(spec.layer_norm, stored, f"{name.rpartition('.')[0]}.{around}.norm")


def _feed_forward(spec: Any, stored: Arrays, layer: str) -> None:
    _linear(spec.linear_0, stored, f"{layer}.feed_forward.widen")
    _linear(spec.linear_1, stored, f"{layer}.feed_forward.narrow")
    _norm(spec.layer_norm, stored, f"{layer}.around_feed_forward.norm")


def _linear(spec: Any, stored: Arrays, name: str) -> None:
    spec.weight, spec.bias = stored[f"{name}.weight"], stored[f"{name}.bias"]


def _norm(spec: Any, stored: Arrays, name: str) -> None:
    spec.gamma, spec.beta = stored[f"{name}.weight"], stored[f"{name}.bias"]


def sinusoids(length: int, width: int) -> npt.NDArray[np.float32]:
    """Sines in the even columns, cosines in the odd ones."""
    angle = np.arange(length)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(length, width).astype(np.float32)
