"""A Transformer's weights -> the files CTranslate2 loads. No torch: the weights are read as numpy arrays."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.config import TransformerConfig
from regard.fast.convert_layers import attention, encoder_layer, feed_forward, files, norm, side
from regard.fast.model_file import Variables
from regard.fast.stored_weights import Weights, checked
from regard.fast.supported import POSITIONS
from regard.fast.weight_shapes import transformer_shapes
from regard.text.tokenizers.tokenizer import BEGIN


def converted(path: Path, config: TransformerConfig, vocabulary: int, precision: str) -> dict[str, bytes]:
    """Files by name, from the weights in a file. Words are named by their ids, written as numbers."""
    weights = checked(path, transformer_shapes(config, vocabulary))
    variables = _encoder(weights, config) | _decoder(weights, config)
    embeddings, same = _embeddings(weights, config)
    variables |= embeddings
    return files(
        ("TransformerSpec", 7),
        variables,
        same,
        vocabulary,
        precision,
        words="shared_vocabulary.json",
        decoder_start_token=str(BEGIN),
        add_source_bos=False,
        add_source_eos=False,
    )


def _embeddings(weights: Weights, config: TransformerConfig) -> tuple[Variables, dict[str, str]]:
    """Each table once, and the names of those that are shared. A folder holds a shared one as `words.weight`."""
    written = "decoder/projection/weight"
    variables, same = {written: weights["words.weight"]}, {}
    for ours, theirs, tied in (
        ("source_embedding", "encoder/embeddings_0/weight", config.tie == "all"),
        ("target_embedding", "decoder/embeddings/weight", config.tie != "none"),
    ):
        if tied:
            same[theirs] = written
        else:
            variables[theirs] = weights[f"{ours}.table.weight"]
    return variables, same


def _encoder(weights: Weights, config: TransformerConfig) -> Variables:
    variables = _side(weights, config, "encoder", "source_embedding")
    variables["encoder/embeddings_merge"] = np.array(0, np.int8)
    for number in range(config.depth):
        variables |= encoder_layer(weights, f"encoder.layers.{number}", f"encoder/layer_{number}")
    return variables


def _decoder(weights: Weights, config: TransformerConfig) -> Variables:
    variables = _side(weights, config, "decoder", "target_embedding")
    variables["decoder/alignment_layer"] = np.array(-1, np.int16)
    variables["decoder/alignment_heads"] = np.array(1, np.int16)
    for number in range(config.decoder_depth or config.depth):
        ours, theirs = f"decoder.layers.{number}", f"decoder/layer_{number}"
        variables |= attention(weights, f"{ours}.self_attention", f"{theirs}/self_attention")
        variables |= norm(weights, f"{ours}.around_self.norm", f"{theirs}/self_attention/layer_norm")
        variables |= attention(weights, f"{ours}.source_attention", f"{theirs}/attention", of_source=True)
        variables |= norm(weights, f"{ours}.around_source.norm", f"{theirs}/attention/layer_norm")
        variables |= feed_forward(weights, ours, theirs)
    return variables


def _side(weights: Weights, config: TransformerConfig, name: str, embedding: str) -> Variables:
    """What encoder and decoder have alike, beside their layers."""
    if config.positions == "learned":
        positions = _shared(weights, f"{embedding}.positions.table.weight")
    else:
        positions = sinusoids(POSITIONS, config.width)
    variables = side(name, config, positions, norm_first=config.norm == "before", scaled=True)
    if config.norm == "before":
        variables |= norm(weights, f"{name}.norm", f"{name}/layer_norm")
    return variables


def _shared(weights: Weights, name: str) -> NDArray[np.generic]:
    """A folder holds what two sides share under the first one's name."""
    return weights[name] if name in weights else weights[name.replace("target_", "source_")]


def sinusoids(length: int, width: int) -> NDArray[np.float32]:
    """The same waves as the model's own (layers/positions.py), which are no weights and so in no file."""
    position = np.arange(length, dtype=np.float32)[:, None]
    frequency = np.exp(np.arange(0, width, 2, dtype=np.float32) * np.float32(-math.log(10_000.0) / width))
    return np.stack([np.sin(position * frequency), np.cos(position * frequency)], -1).reshape(length, width)
