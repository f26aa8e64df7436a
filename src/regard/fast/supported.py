"""What CTranslate2 can do just as torch does it here: which models, and which settings."""

from regard.config import DecodeConfig, LmConfig, ModelConfig, TransformerConfig, model_name

# By name, the number that stands for it in a model file.
ACTIVATIONS = {"relu": 0, "gelu_tanh": 1, "gelu": 3}
# Places in the table of sinusoidal positions: room for the longest source, and for what is written of it.
POSITIONS = 1100
# The same where both stand in one row.
JOINED_POSITIONS = 2100


def model_obstacle(config: ModelConfig) -> str | None:
    """What of a model it cannot do; None = nothing."""
    if not isinstance(config, TransformerConfig | LmConfig):
        return f"model.name={model_name(config)}"
    if config.activation not in ACTIVATIONS:
        return f"model.activation={config.activation}"
    return "model.positions=relative" if config.positions == "relative" else None


def setting_obstacle(config: DecodeConfig, *, prefix: bool = False) -> str | None:
    """Which setting it cannot follow in the same way; None = it can follow all.

    What is forbidden, it leaves out before it computes probabilities, so that those of other words rise; and at the
    longest length it takes what is there, finished or not. In the rare event this changes nothing, but these settings
    make it the rule.
    """
    for name in ("mbr", "sample", "coverage_penalty", "no_repeat", "min_length", "max_length"):
        if getattr(config, name):
            return f"decode.{name}={getattr(config, name)}"
    if config.length_penalty < 0:
        return f"decode.length_penalty={config.length_penalty}"
    if config.precision == "bfloat16":
        return "decode.precision=bfloat16"
    return "a prefix" if prefix else None
