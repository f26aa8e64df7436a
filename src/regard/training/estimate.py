"""What a training run would take on this machine: a few real steps on made-up words, then arithmetic.

For other machines only the parameters are counted; the rest is done on paper, in `scale`.
"""

import resource
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch

from regard.config import Config, ModelConfig, model_name
from regard.errors import ConfigError
from regard.models import build
from regard.models.base import Writer
from regard.system.allocator import keep_memory
from regard.system.device import pick_device, pick_precision, set_threads
from regard.text.batching.batch import make_pairs
from regard.text.tokenizers.tokenizer import SPECIALS
from regard.training.gpu_plan import Counts
from regard.training.schedule import rate_at
from regard.training.trainer import Learner

# Characters in a piece of an 8,000-word subword vocabulary, about, in European languages.
CHARACTERS_PER_PIECE = 4.0
STEPS = 4


@dataclass(frozen=True)
class Estimate:
    """Measured over a few steps; the rest follows by multiplication."""

    parameters: int
    tokens_per_second: float
    epoch_minutes: float
    memory_megabytes: float
    """The highest this process reached, program and libraries included."""
    folder_megabytes: float
    """Of the model folder when training ends, checkpoints included."""

    def as_table(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For the terminal."""
        return [
            f"training here: {self.parameters:,} parameters, about {self.tokens_per_second:,.0f} target tokens a second, "
            f"{self.epoch_minutes:,.1f} minutes for each time through the data",
            f"memory about {self.memory_megabytes:,.0f} MB, model folder about {self.folder_megabytes:,.0f} MB",
        ]


def estimate(config: Config, pairs: int, source_characters: float, target_characters: float) -> Estimate:
    """Try a few steps with sentences of the corpus's mean length."""
    keep_memory()
    set_threads(config.train.threads)
    device = pick_device(config.train.device)
    model = build(config.model, config.text.vocabulary)
    if not isinstance(model, Writer):
        raise ConfigError(
            f"What training a {model_name(config.model)} takes cannot be estimated yet. Use --no-estimate, or another --model."
        )
    learner = Learner(model, config.train, device, pick_precision(config.train.precision, device))
    source, target = (text_length(config, characters) for characters in (source_characters, target_characters))
    rows = max(1, config.train.batch_tokens // (max(source, target) + 1))
    ids = torch.randint(len(SPECIALS), config.text.vocabulary, (rows, source + target)).tolist()
    batch = make_pairs([row[:source] for row in ids], [row[source:] for row in ids], list(range(rows)))
    fastest = float("inf")
    for step in range(1, STEPS + 1):
        began = time.perf_counter()
        learner.update([batch], step, rate_at(step, config.train, config.model.width))
        fastest = min(fastest, time.perf_counter() - began)
    parameters = sum(p.numel() for p in model.parameters())
    speed = batch.tokens / fastest
    weights = 4 * parameters / 1e6
    # Every kept checkpoint has the weights; the two newest have Adam's two averages as well.
    return Estimate(
        parameters, speed, pairs * (target + 1) / speed / 60, _peak(), weights * (config.train.keep + 1 + 2 * 2)
    )


def count(config: ModelConfig, vocabulary: int) -> Counts:
    """The parameters of a model, which is not made: on this device tensors have shapes but no numbers."""
    with torch.device("meta"):
        model = build(config, vocabulary)
    parts = (model, *model.blocks())
    whole, *blocks = (sum(p.numel() for p in part.parameters()) for part in parts)
    return Counts(whole, tuple(blocks))


def text_length(config: Config, characters: float) -> int:
    """Tokens that a text of so many characters has, about."""
    per_token = 1.0 if config.text.tokenizer == "characters" else CHARACTERS_PER_PIECE
    return max(1, min(config.text.longest, round(characters / per_token)))


def _peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
