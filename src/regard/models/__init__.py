"""The models there are. A new one is a file here, a config class, and a line in this dict."""

from collections.abc import Callable
from typing import Any

from regard.config import (
    BahdanauConfig,
    ConvConfig,
    LuongConfig,
    ModelConfig,
    Seq2SeqConfig,
    TransformerConfig,
    UniversalConfig,
)
from regard.models.conv import Conv
from regard.models.interface import Writer
from regard.models.rnn import Bahdanau, Luong, Seq2Seq
from regard.models.transformer import Transformer
from regard.models.universal import Universal

MODELS: dict[type[ModelConfig], Callable[[Any, int], Writer]] = {
    Seq2SeqConfig: Seq2Seq,
    BahdanauConfig: Bahdanau,
    LuongConfig: Luong,
    ConvConfig: Conv,
    TransformerConfig: Transformer,
    UniversalConfig: Universal,
}


def build(config: ModelConfig, vocabulary: int) -> Writer:
    """A new model with random weights."""
    return MODELS[type(config)](config, vocabulary)
