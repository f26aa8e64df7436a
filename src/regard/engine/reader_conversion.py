"""A BERT's weights -> the files CTranslate2 loads: its body. What it says of the last layer is computed here (heads.py)."""

import json
from pathlib import Path

import numpy as np

from regard.config import BertConfig, ClassifierConfig
from regard.engine.binary import Variables, in_eight_bits, model_file
from regard.engine.expressible import ACTIVATIONS
from regard.engine.parts import checked, encoder_layer, norm
from regard.engine.shapes import reader_shapes
from regard.text.tokenizer import BEGIN, END, UNKNOWN


def converted_reader(
    path: Path, config: BertConfig | ClassifierConfig, vocabulary: int, labels: int, precision: str
) -> dict[str, bytes]:
    """Files by name, from the weights in a file. Words are named by their ids, written as numbers."""
    weights = checked(path, reader_shapes(config, vocabulary, labels))
    # Texts are read one at a time, so all of a text is its first segment: a part of every position.
    positions = weights["body.embedding.positions.table.weight"] + weights["body.embedding.segments.weight"][0]
    variables: Variables = {
        "encoder/num_heads": np.array(config.heads, np.int16),
        "encoder/pre_norm": np.array(0, np.int8),
        "encoder/activation": np.array(ACTIVATIONS[config.activation], np.int8),
        "encoder/scale_embeddings": np.array(0, np.int8),
        "encoder/embeddings_merge": np.array(0, np.int8),
        "encoder/embeddings_0/weight": weights["body.embedding.words.weight"],
        "encoder/position_encodings/encodings": positions,
    }
    variables |= norm(weights, "body.embedding.norm", "encoder/layernorm_embedding")
    for number in range(config.depth):
        variables |= encoder_layer(weights, f"body.layers.{number}", f"encoder/layer_{number}")
    if precision == "int8":
        variables = in_eight_bits(variables)
    settings = {
        "unk_token": str(UNKNOWN),
        "bos_token": str(BEGIN),
        "eos_token": str(END),
        "layer_norm_epsilon": config.epsilon,
        "multi_query_attention": False,
    }
    return {
        "model.bin": model_file("TransformerEncoderSpec", 1, variables, {}),
        "config.json": json.dumps(settings).encode(),
        "vocabulary.json": json.dumps([str(number) for number in range(vocabulary)]).encode(),
    }
