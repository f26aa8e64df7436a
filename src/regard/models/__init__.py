"""The models there are. A new one is a file here, a config class, and a line in this dict."""

from typing import Any, cast

from regard.config import (
    BahdanauConfig,
    BertConfig,
    ClassifierConfig,
    ConvConfig,
    GruConfig,
    LmConfig,
    LstmConfig,
    LuongConfig,
    MemoryConfig,
    ModelConfig,
    RnnConfig,
    Seq2SeqConfig,
    TransformerConfig,
    UniversalConfig,
)
from regard.models.base import Model
from regard.models.bert import Bert, Classifier
from regard.models.conv import Conv
from regard.models.lm import Lm
from regard.models.memory import MemoryCompressed
from regard.models.rnn import RecurrentLm
from regard.models.seq2seq import Bahdanau, Luong, Seq2Seq
from regard.models.transformer import Transformer
from regard.models.universal import Universal

MODELS: dict[type[ModelConfig], type[Any]] = {
    RnnConfig: RecurrentLm,
    LstmConfig: RecurrentLm,
    GruConfig: RecurrentLm,
    Seq2SeqConfig: Seq2Seq,
    BahdanauConfig: Bahdanau,
    LuongConfig: Luong,
    ConvConfig: Conv,
    TransformerConfig: Transformer,
    UniversalConfig: Universal,
    LmConfig: Lm,
    MemoryConfig: MemoryCompressed,
    BertConfig: Bert,
    ClassifierConfig: Classifier,
}


def build(config: ModelConfig, vocabulary: int, labels: int = 0) -> Model:
    """A new model with random weights; `labels` for a model that chooses among so many."""
    kind = MODELS[type(config)]
    return cast(Model, kind(config, vocabulary, labels) if labels else kind(config, vocabulary))
