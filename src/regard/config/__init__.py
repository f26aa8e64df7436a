"""Every setting a user can set: frozen dataclasses, checked at birth.

A configuration that exists is valid. Each default is written once, beside its field. Nothing here needs torch.
"""

from regard.config.models import (
    MODEL_CONFIGS,
    SIZES,
    BahdanauConfig,
    ConvConfig,
    LuongConfig,
    ModelConfig,
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
from regard.config.sections import DecodeConfig, TextConfig, TrainConfig

__all__ = [
    "MODEL_CONFIGS",
    "SIZES",
    "BahdanauConfig",
    "Config",
    "ConvConfig",
    "DecodeConfig",
    "LuongConfig",
    "ModelConfig",
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
    "read_recipe",
]
