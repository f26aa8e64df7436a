"""Every setting a user can set: frozen dataclasses, checked at birth.

A configuration that exists is valid. Each default is written once, beside its field. Nothing here needs torch.
"""

from regard.config.models import (
    MODEL_CONFIGS,
    SIZES,
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
    RecurrentConfig,
    RnnConfig,
    Seq2SeqConfig,
    TransformerConfig,
    UniversalConfig,
)
from regard.config.reading import (
    Config,
    as_table,
    describe,
    differences,
    merge,
    model_name,
    parse_set,
    read,
    read_recipe,
)
from regard.config.sections import LONGEST_SHORTLIST, DecodeConfig, TextConfig, TrainConfig
from regard.config.starting import KEPT, read_from, read_with_words

__all__ = [
    "KEPT",
    "LONGEST_SHORTLIST",
    "MODEL_CONFIGS",
    "SIZES",
    "BahdanauConfig",
    "BertConfig",
    "ClassifierConfig",
    "Config",
    "ConvConfig",
    "DecodeConfig",
    "GruConfig",
    "LmConfig",
    "LstmConfig",
    "LuongConfig",
    "MemoryConfig",
    "ModelConfig",
    "RecurrentConfig",
    "RnnConfig",
    "Seq2SeqConfig",
    "TextConfig",
    "TrainConfig",
    "TransformerConfig",
    "UniversalConfig",
    "as_table",
    "describe",
    "differences",
    "merge",
    "model_name",
    "parse_set",
    "read",
    "read_from",
    "read_recipe",
    "read_with_words",
]
