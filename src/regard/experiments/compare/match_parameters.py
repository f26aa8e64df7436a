"""Models of equal size: each one's width is chosen so that its parameters are as many as another's."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from regard.config import ModelConfig, model_name
from regard.errors import ConfigError
from regard.models import build

TOLERANCE = 0.1


@cache
def parameters(config: ModelConfig, vocabulary: int) -> int:
    """How many a model has, embeddings included; a shared one counts once."""
    # On this device tensors have shapes but no numbers: counting costs no memory.
    with torch.device("meta"):
        return sum(p.numel() for p in build(config, vocabulary).parameters())


def matched(config: ModelConfig, vocabulary: int, wanted: int) -> ModelConfig:
    """The same model with the width, and the inner width in proportion, that has about `wanted` parameters."""
    heads = getattr(config, "heads", 1)
    # Processors are fastest at multiples of 8. Where these are too far apart, any even width that heads can share.
    coarse = closest(config, vocabulary, wanted, step=math.lcm(8, heads))
    if abs(parameters(coarse, vocabulary) - wanted) <= TOLERANCE / 2 * wanted:
        return coarse
    best = closest(config, vocabulary, wanted, step=math.lcm(2, heads))
    if abs((found := parameters(best, vocabulary)) - wanted) <= TOLERANCE * wanted:
        return best
    raise ConfigError(
        f"{model_name(config)} cannot be matched: at width {best.width}, the closest, it has {found:,} parameters and not "
        f"{wanted:,}. Use --match none, or a larger --size."
    )


def closest(config: ModelConfig, vocabulary: int, wanted: int, step: int) -> ModelConfig:
    """Among the widths that are multiples of `step`, the one whose parameters are closest to `wanted`; by halving."""

    def count(steps: int) -> int:
        return parameters(resized(config, steps * step), vocabulary)

    low, high = 1, 2
    while count(high) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < wanted else (low, middle)
    return resized(config, step * min((low, high), key=lambda steps: abs(count(steps) - wanted)))


def resized(config: ModelConfig, width: int) -> ModelConfig:
    """The same shape, wider or narrower."""
    sizes: dict[str, Any] = {"width": width}
    if hasattr(config, "inner"):
        sizes["inner"] = max(1, round(config.inner * width / config.width))
    return replace(config, **sizes)
