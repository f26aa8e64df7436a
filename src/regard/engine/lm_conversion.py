"""A language model's weights -> the files CTranslate2 loads."""

import json
from pathlib import Path

import numpy as np

from regard.config import LmConfig
from regard.engine.binary import Variables, in_eight_bits, model_file
from regard.engine.conversion import sinusoids
from regard.engine.expressible import ACTIVATIONS, JOINED_POSITIONS
from regard.engine.parts import checked, encoder_layer, norm
from regard.engine.shapes import lm_shapes
from regard.text.tokenizer import BEGIN, END, UNKNOWN


def converted_lm(path: Path, config: LmConfig, vocabulary: int, precision: str) -> dict[str, bytes]:
    """Files by name, from the weights in a file. Words are named by their ids, written as numbers."""
    weights = checked(path, lm_shapes(config, vocabulary))
    learned = config.positions == "learned"
    variables: Variables = {
        "decoder/num_heads": np.array(config.heads, np.int16),
        "decoder/pre_norm": np.array(config.norm == "before", np.int8),
        "decoder/activation": np.array(ACTIVATIONS[config.activation], np.int8),
        "decoder/scale_embeddings": np.array(1, np.int8),
        "decoder/position_encodings/encodings": weights["embedding.positions.table.weight"]
        if learned
        else sinusoids(JOINED_POSITIONS, config.width),
        "decoder/projection/weight": weights["words.weight"],
    }
    same = {}
    if config.tie:
        same["decoder/embeddings/weight"] = "decoder/projection/weight"
    else:
        variables["decoder/embeddings/weight"] = weights["embedding.table.weight"]
    if config.norm == "before":
        variables |= norm(weights, "norm", "decoder/layer_norm")
    for number in range(config.depth):
        variables |= encoder_layer(weights, f"layers.{number}", f"decoder/layer_{number}")
    if precision == "int8":
        variables = in_eight_bits(variables)
    settings = {
        "unk_token": str(UNKNOWN),
        "bos_token": str(BEGIN),
        "eos_token": str(END),
        "layer_norm_epsilon": 1e-5,
        "multi_query_attention": False,
    }
    return {
        "model.bin": model_file("TransformerDecoderSpec", 8, variables, same),
        "config.json": json.dumps(settings).encode(),
        "vocabulary.json": json.dumps([str(number) for number in range(vocabulary)]).encode(),
    }
