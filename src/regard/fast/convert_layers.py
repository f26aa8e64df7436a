"""What every Transformer is made of, under our names and under CTranslate2's."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config import BertConfig, ClassifierConfig, LmConfig, TransformerConfig
from regard.fast.model_file import Variables, in_eight_bits, model_file
from regard.fast.stored_weights import Weights
from regard.fast.supported import ACTIVATIONS
from regard.text.tokenizers.tokenizer import BEGIN, END, UNKNOWN


def files(
    spec: tuple[str, int],
    variables: Variables,
    same: Mapping[str, str],
    vocabulary: int,
    precision: str,
    *,
    words: str = "vocabulary.json",
    epsilon: float = 1e-5,
    **settings: Any,
) -> dict[str, bytes]:
    """By name, all that CTranslate2 loads. `spec` is its name for the kind of model, and which version of that.

    Words are named by their ids, written as numbers; `words` is the file that lists them, `same` names what is shared.
    """
    told = {
        "unk_token": str(UNKNOWN),
        "bos_token": str(BEGIN),
        "eos_token": str(END),
        "layer_norm_epsilon": epsilon,
        "multi_query_attention": False,
        **settings,
    }
    variables = in_eight_bits(variables) if precision == "int8" else variables
    return {
        "model.bin": model_file(*spec, variables, dict(same)),
        "config.json": json.dumps(told).encode(),
        words: json.dumps([str(number) for number in range(vocabulary)]).encode(),
    }


def side(
    theirs: str,
    config: TransformerConfig | LmConfig | BertConfig | ClassifierConfig,
    positions: NDArray[np.generic],
    *,
    norm_first: bool,
    scaled: bool,
) -> Variables:
    """What an encoder or decoder has beside its layers; `scaled` are the words' vectors of the Transformer's paper."""
    return {
        f"{theirs}/num_heads": np.array(config.heads, np.int16),
        f"{theirs}/pre_norm": np.array(norm_first, np.int8),
        f"{theirs}/activation": np.array(ACTIVATIONS[config.activation], np.int8),
        f"{theirs}/scale_embeddings": np.array(scaled, np.int8),
        f"{theirs}/position_encodings/encodings": positions,
    }


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
