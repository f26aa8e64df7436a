"""A language model's weights -> the files CTranslate2 loads."""

from pathlib import Path

from regard.config import LmConfig
from regard.fast.convert_layers import encoder_layer, files, norm, side
from regard.fast.convert_transformer import sinusoids
from regard.fast.stored_weights import checked
from regard.fast.supported import JOINED_POSITIONS
from regard.fast.weight_shapes import lm_shapes


def converted_lm(path: Path, config: LmConfig, vocabulary: int, precision: str) -> dict[str, bytes]:
    """Files by name, from the weights in a file. Words are named by their ids, written as numbers."""
    weights = checked(path, lm_shapes(config, vocabulary))
    learned = config.positions == "learned"
    table = weights["embedding.positions.table.weight"] if learned else sinusoids(JOINED_POSITIONS, config.width)
    variables = side("decoder", config, table, norm_first=config.norm == "before", scaled=True)
    variables["decoder/projection/weight"] = weights["words.weight"]
    same = {}
    if config.tie:
        same["decoder/embeddings/weight"] = "decoder/projection/weight"
    else:
        variables["decoder/embeddings/weight"] = weights["embedding.table.weight"]
    if config.norm == "before":
        variables |= norm(weights, "norm", "decoder/layer_norm")
    for number in range(config.depth):
        variables |= encoder_layer(weights, f"layers.{number}", f"decoder/layer_{number}")
    return files(("TransformerDecoderSpec", 8), variables, same, vocabulary, precision)
