"""A BERT's weights -> the files CTranslate2 loads: its body. What it says of the last layer is computed here (heads.py)."""

from pathlib import Path

import numpy as np

from regard.config import BertConfig, ClassifierConfig
from regard.fast.convert_layers import encoder_layer, files, norm, side
from regard.fast.stored_weights import checked
from regard.fast.weight_shapes import reader_shapes


def converted_reader(
    path: Path, config: BertConfig | ClassifierConfig, vocabulary: int, labels: int, precision: str
) -> dict[str, bytes]:
    """Files by name, from the weights in a file. Words are named by their ids, written as numbers."""
    weights = checked(path, reader_shapes(config, vocabulary, labels))
    # Texts are read one at a time, so all of a text is its first segment: a part of every position.
    positions = weights["body.embedding.positions.table.weight"] + weights["body.embedding.segments.weight"][0]
    variables = side("encoder", config, positions, norm_first=False, scaled=False)
    variables["encoder/embeddings_merge"] = np.array(0, np.int8)
    variables["encoder/embeddings_0/weight"] = weights["body.embedding.words.weight"]
    variables |= norm(weights, "body.embedding.norm", "encoder/layernorm_embedding")
    for number in range(config.depth):
        variables |= encoder_layer(weights, f"body.layers.{number}", f"encoder/layer_{number}")
    return files(("TransformerEncoderSpec", 1), variables, {}, vocabulary, precision, epsilon=config.epsilon)
