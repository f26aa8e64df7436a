"""The settings of each model, its sizes, and the name under which `--model` knows it."""

from dataclasses import dataclass
from typing import Any, Literal

from regard.config.setting import at_least, between, setting
from regard.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The encoder-decoder Transformer; the defaults are the published base model."""

    width: int = setting(512, "numbers in a word's vector (the paper's d_model)")
    heads: int = setting(8, "attention heads; they share the width")
    depth: int = setting(6, "layers of the encoder")
    decoder_depth: int = setting(0, "layers of the decoder; 0 = as many as the encoder")
    inner: int = setting(2048, "width inside the feed-forward layers")
    dropout: float = setting(0.1, "share of numbers dropped after each sub-layer and embedding")
    activation: Literal["relu", "elu", "gelu"] = setting("relu", "between the two feed-forward layers")
    norm: Literal["after", "before"] = setting("after", "layer norm after each sub-layer (published) or before it")
    positions: Literal["sinusoidal", "learned", "relative"] = setting("sinusoidal", "how word order is told")
    tie: Literal["all", "target", "none"] = setting("all", "embeddings shared: all three, the target's two, or none")
    longest: int = setting(1024, "longest sentence in tokens that learned positions can hold")
    span: int = setting(16, "farthest distance that relative positions tell apart")

    def __post_init__(self) -> None:
        at_least(self, "model", width=2, heads=1, depth=1, decoder_depth=0, inner=1, longest=1, span=1)
        between(self, "model", 0.0, 0.95, "dropout")
        if self.width % self.heads:
            below = self.width - self.width % self.heads
            near = [n for n in (below, below + self.heads) if n]
            raise ConfigError(
                f"model.width {self.width} does not divide into {self.heads} heads. "
                f"Set model.width to {' or '.join(map(str, near))}, or change model.heads."
            )
        if self.positions == "sinusoidal" and self.width % 2:
            raise ConfigError(
                f"model.width {self.width} is odd; sinusoidal positions need pairs. Use {self.width + 1}."
            )


ModelConfig = TransformerConfig  # a union, once there are more

MODEL_CONFIGS: dict[str, type[ModelConfig]] = {"transformer": TransformerConfig}

# What `--size` stands for. `base` is the dataclass as it is; `big` is the paper's other model.
SIZES: dict[type[ModelConfig], dict[str, dict[str, Any]]] = {
    TransformerConfig: {
        "tiny": {"width": 128, "heads": 4, "depth": 4, "inner": 256, "dropout": 0.3},
        "small": {"width": 256, "heads": 4, "depth": 6, "inner": 1024, "dropout": 0.3},
        "base": {},
        "big": {"width": 1024, "heads": 16, "inner": 4096, "dropout": 0.3},
    },
}
DEFAULT_MODEL, DEFAULT_SIZE = "transformer", "tiny"
