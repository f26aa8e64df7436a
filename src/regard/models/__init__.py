"""The models there are. A new one is a file here, a config class, and a line in this dict."""

from regard.config import ModelConfig, TransformerConfig
from regard.models.interface import Writer
from regard.models.transformer import Transformer

MODELS: dict[type[ModelConfig], type[Transformer]] = {
    TransformerConfig: Transformer,
}


def build(config: ModelConfig, vocabulary: int) -> Writer:
    """A new model with random weights."""
    return MODELS[type(config)](config, vocabulary)
