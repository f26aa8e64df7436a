"""What training would take on many GPUs, on paper: memory, bytes moved, and the time that costs. No torch, no GPU.

Weights, gradients and Adam's averages are float32; products are computed in bfloat16, from copies of the weights that
live until the way back. A batch (train.batch_tokens) is shared out among the GPUs in equal parts, and texts are taken
to have as many tokens on either side.

DDP keeps all of a model on every GPU, and sums the gradients of all. FSDP2 keeps a share of everything on each, and
gathers the weights of a block when its turn comes: on the way forward, and again on the way back.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from regard.config import (
    BertConfig,
    ClassifierConfig,
    Config,
    LmConfig,
    MemoryConfig,
    ModelConfig,
    TransformerConfig,
    UniversalConfig,
    model_name,
)
from regard.errors import ConfigError

WAYS = ("DDP", "FSDP2")
USABLE = 0.9
"""Share of a GPU's memory to fill: the rest is for its driver, buffers of the network, and gaps."""
SCORED = 1024
"""Rows whose scores over the vocabulary are held at a time."""

BlockedConfig = TransformerConfig | UniversalConfig | LmConfig | MemoryConfig | BertConfig | ClassifierConfig


class Counts(NamedTuple):
    """The parameters of a model."""

    all: int
    blocks: tuple[int, ...]
    """Of each of its blocks."""

    @property
    def outside(self) -> int:
        """Of what belongs to no block: vectors of words and positions, the last layer."""
        return self.all - sum(self.blocks)


class Layer(NamedTuple):
    """A block, as far as its cost goes."""

    attentions: int
    """One, to words of the same text; or another one to a source."""
    repeated: int = 1


def layers_of(model: ModelConfig) -> list[Layer]:
    """The blocks of a model, in order."""
    match model:
        case TransformerConfig():
            return [Layer(1)] * model.depth + [Layer(2)] * (model.decoder_depth or model.depth)
        case UniversalConfig():
            return [Layer(1, model.depth), Layer(2, model.depth)]
        case LmConfig() | MemoryConfig() | BertConfig() | ClassifierConfig():
            return [Layer(1)] * model.depth
    raise ConfigError(
        f"There is no plan on paper for a {model_name(model)}: it reads word by word, or by windows. "
        "Use --model transformer, universal, lm, memory, bert or classifier."
    )


def kept(layer: Layer, model: BlockedConfig, compute: int) -> float:
    """Bytes that a block keeps of each token for the way back; `compute` is the size of a number in a product."""
    width = model.width
    # Around each sub-layer, in float32: the sum that is normalised, and what is dropped, if anything is.
    around = 4 * width * (2 if model.dropout else 1)
    # Input, query, key, value, context by heads and joined; looking at a source, key and value are of another input.
    to_self, to_source = 6 * compute * width, 7 * compute * width
    # ReLU is known from its result, which the second product keeps anyway.
    feed_forward = compute * (width + model.inner * (1 if model.activation == "relu" else 2))
    whole = to_self + (layer.attentions - 1) * (to_source + around) + feed_forward + 2 * around
    # Whether a word halts is asked of its state after each repetition, normalised if the sum itself is not.
    if isinstance(model, UniversalConfig) and model.halting and model.norm == "before":
        whole += 2 * 4 * width
    return float(layer.repeated * whole)


class Kept(NamedTuple):
    """What is kept for the way back: so much for each token, and so much in any case."""

    token: float
    fixed: float

    def of(self, tokens: float) -> float:
        """Bytes for so many tokens."""
        return self.token * tokens + self.fixed


def activations(model: BlockedConfig, vocabulary: int, compute: int, *, recompute: bool) -> Kept:
    """Of a whole step. If recomputed, of each block its input alone, and all of one of them at a time."""
    blocks = [kept(layer, model, compute) for layer in layers_of(model)]
    in_blocks = sum(blocks)
    if recompute:
        in_blocks = 4 * model.width * len(blocks) + max(blocks)
    # Outside: what is dropped from words on both sides, and the gradient of the last layer.
    outside = 3 * 4 * model.width
    if isinstance(model, BertConfig):
        return Kept(in_blocks + outside + model.hidden_words * vocabulary * (compute + 4 + 4), 0.0)
    if isinstance(model, ClassifierConfig):
        return Kept(in_blocks + outside, 0.0)
    # Scores are not kept, but those of some rows are held, and the gradient that the loss has for the words' vectors.
    return Kept(in_blocks + outside, vocabulary * (2 * compute * SCORED + 4.0 * model.width))


@dataclass(frozen=True)
class Memory:
    """Bytes on each GPU."""

    weights: float
    gradients: float
    moments: float
    average: float
    """The moving average of the weights (train.ema), if there is one."""
    gathered: float
    """FSDP2: weights of the block at work and of the next, gradients of one; and all of what belongs to no block."""
    copies: float
    """The weights in bfloat16."""
    activations: float

    @property
    def all(self) -> float:
        """Their sum."""
        return self.fixed + self.activations

    @property
    def fixed(self) -> float:
        """What is there whatever the batch."""
        return self.weights + self.gradients + self.moments + self.average + self.gathered + self.copies


class Step(NamedTuple):
    """Seconds that a step computes, and bytes that each GPU sends in it."""

    forward: float
    backward: float
    sent_forward: float
    sent_backward: float

    @property
    def computing(self) -> float:
        """Seconds without any waiting."""
        return self.forward + self.backward

    @property
    def sent(self) -> float:
        """Bytes in all."""
        return self.sent_forward + self.sent_backward

    def efficiency(self, link: float, *, overlapped: bool = True) -> float:
        """The share of time that is spent computing, if a GPU sends so many bytes a second.

        At best, what is sent overlaps with what is computed, each within its own half of the way.
        """
        forth, back = self.sent_forward / link, self.sent_backward / link
        if not overlapped:
            return self.computing / (self.computing + forth + back)
        return self.computing / (max(self.forward, forth) + max(self.backward, back))


@dataclass(frozen=True)
class Plan:
    """A model, a batch, and the GPUs to train it on."""

    config: Config
    counts: Counts
    gpus: int
    length: float
    """Tokens of a text."""
    speed: float
    """Floating-point operations that a GPU does in a second."""

    def __post_init__(self) -> None:
        layers_of(self.config.model)  # refuses a model that is not made of such blocks

    @property
    def model(self) -> BlockedConfig:
        """The settings of the model."""
        assert isinstance(self.config.model, BlockedConfig)
        return self.config.model

    @property
    def compute(self) -> int:
        """Bytes of a number in a product."""
        return 4 if self.config.train.precision == "float32" else 2

    @property
    def tokens(self) -> int:
        """Of a batch, on each GPU."""
        return math.ceil(self.config.train.batch_tokens / self.gpus)

    def memory(self, way: str, *, recompute: bool = False) -> Memory:
        """What a GPU must hold."""
        weights, share = 4.0 * self.counts.all, self.gpus if way == "FSDP2" else 1
        largest = max(self.counts.blocks)
        step = activations(self.model, self.config.text.vocabulary, self.compute, recompute=recompute)
        return Memory(
            weights / share,
            weights / share,
            2 * weights / share,
            weights / share if self.config.train.ema else 0.0,
            4.0 * (3 * largest + 2 * self.counts.outside) if way == "FSDP2" else 0.0,
            2.0 * self.counts.all if self.compute == 2 else 0.0,
            step.of(self.tokens),
        )

    def largest(self, way: str, gigabytes: float, *, recompute: bool = False) -> int:
        """The tokens of a batch that a GPU of so much memory can hold, if any."""
        step = activations(self.model, self.config.text.vocabulary, self.compute, recompute=recompute)
        room = USABLE * 1e9 * gigabytes - self.memory(way, recompute=recompute).fixed - step.fixed
        return max(0, int(room / step.token))

    def step(self, way: str, *, recompute: bool = False) -> Step:
        """One update. A parameter costs two operations for each token; on the way back twice as many."""
        model, layers = self.model, layers_of(self.config.model)
        products = sum(layer.repeated * size for layer, size in zip(layers, self.counts.blocks, strict=True))
        attended = sum(layer.repeated * layer.attentions for layer in layers) * 2 * self.length * model.width
        words = self.config.text.vocabulary * model.width * _scored(model)
        tokens = self.config.train.batch_tokens * self.config.train.accumulate / self.gpus
        in_blocks, forward = (2 * tokens * n / self.speed for n in (products + attended, products + attended + words))
        backward = 2 * forward + (in_blocks if recompute else 0.0)
        once = 4.0 * self.counts.all * (self.gpus - 1) / self.gpus
        if way == "DDP":
            return Step(forward, backward, 0.0, 2 * once)
        # Weights are gathered for every batch of an update, gradients summed once.
        gathered = once * self.config.train.accumulate
        return Step(forward, backward, gathered, gathered + once)


def _scored(model: BlockedConfig) -> float:
    """The share of words that are scored against the whole vocabulary."""
    if isinstance(model, BertConfig):
        return model.hidden_words
    return 0.0 if isinstance(model, ClassifierConfig) else 1.0
