"""The settings of each model, its sizes, and the name under which `--model` knows it."""

from dataclasses import dataclass
from typing import Any, Literal

from regard.config.setting import at_least, at_most, between, setting
from regard.errors import ConfigError

DEEPEST = 256
"""Layers at most: building one takes a while, even before its weights are there."""


def heads_share(width: int, heads: int) -> None:
    """Refuse a width that heads cannot share evenly."""
    if width % heads:
        below = width - width % heads
        near = [n for n in (below, below + heads) if n]
        raise ConfigError(
            f"model.width {width} does not divide into {heads} heads. "
            f"Set model.width to {' or '.join(map(str, near))}, or change model.heads."
        )


def no_offset_of_relative(positions: str, offset: int) -> None:
    """Refuse to move what does not change by being moved."""
    if offset and positions == "relative":
        raise ConfigError(
            f"model.offset {offset} moves positions, but relative ones do not change by that. "
            "Set model.offset=0, or model.positions=sinusoidal."
        )


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The encoder-decoder Transformer; the defaults are the published base model."""

    width: int = setting(512, "numbers in a word's vector (the paper's d_model)", most=32_768)
    heads: int = setting(8, "attention heads; they share the width", most=1024)
    depth: int = setting(6, "layers of the encoder", most=DEEPEST)
    decoder_depth: int = setting(0, "layers of the decoder; 0 = as many as the encoder", most=DEEPEST)
    inner: int = setting(2048, "width inside the feed-forward layers", most=1 << 20)
    dropout: float = setting(0.1, "share of numbers dropped after each sub-layer and embedding")
    activation: Literal["relu", "elu", "gelu"] = setting("relu", "between the two feed-forward layers")
    norm: Literal["after", "before"] = setting("after", "layer norm after each sub-layer (published) or before it")
    positions: Literal["sinusoidal", "learned", "relative"] = setting("sinusoidal", "how word order is told")
    tie: Literal["all", "target", "none"] = setting("all", "embeddings shared: all three, the target's two, or none")
    longest: int = setting(1024, "longest sentence in tokens that learned positions can hold", most=1 << 20)
    span: int = setting(16, "farthest distance that relative positions tell apart", most=1 << 16)
    offset: int = setting(
        0, "training: count positions from a random number up to this, to meet longer texts", most=1 << 20
    )

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=2, heads=1, depth=1, decoder_depth=0, inner=1, longest=1, span=1, offset=0)
        between(self, "model", 0.0, 0.95, "dropout")
        heads_share(self.width, self.heads)
        if self.positions == "sinusoidal" and self.width % 2:
            raise ConfigError(
                f"model.width {self.width} is odd; sinusoidal positions need pairs. Use {self.width + 1}."
            )
        no_offset_of_relative(self.positions, self.offset)
        if self.positions == "learned" and self.offset >= self.longest:
            raise ConfigError(
                f"model.offset {self.offset} is beyond the {self.longest} positions that are learned (model.longest). "
                "Set model.longest to more than model.offset and the longest text together, or lower model.offset."
            )


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """Recurrent encoder and decoder without attention: the whole source must pass through one vector."""

    width: int = setting(512, "numbers in a word's vector and in a layer's state", most=32_768)
    depth: int = setting(2, "recurrent layers of the encoder and of the decoder", most=DEEPEST)
    cell: Literal["lstm", "gru"] = setting("lstm", "the recurrent cell")
    bidirectional: bool = setting(True, "read the source in both directions")
    dropout: float = setting(0.2, "share of numbers dropped between layers and after embeddings")
    tie: Literal["all", "target", "none"] = setting("all", "embeddings shared: all three, the target's two, or none")

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=2, depth=1)
        between(self, "model", 0.0, 0.95, "dropout")
        if self.bidirectional and self.width % 2:
            raise ConfigError(f"model.width {self.width} is odd; two directions need halves. Use {self.width + 1}.")


@dataclass(frozen=True, kw_only=True)
class BahdanauConfig(Seq2SeqConfig):
    """Recurrent, with additive attention: before each word the decoder looks at the whole source again."""


@dataclass(frozen=True, kw_only=True)
class LuongConfig(Seq2SeqConfig):
    """Recurrent, with multiplicative attention: each word looks at the whole source after the recurrent layers."""

    score: Literal["dot", "general", "concat"] = setting("general", "how decoder and source are compared")
    input_feeding: bool = setting(True, "feed what was attended back into the next step")


@dataclass(frozen=True, kw_only=True)
class ConvConfig:
    """Convolutional encoder and decoder, attention in every decoder layer."""

    width: int = setting(512, "numbers in a word's vector and in a layer's state", most=32_768)
    depth: int = setting(10, "convolutions of the encoder", most=DEEPEST)
    decoder_depth: int = setting(0, "convolutions of the decoder; 0 = as many as the encoder", most=DEEPEST)
    kernel: int = setting(3, "words that a convolution sees at a time; odd", most=1001)
    dropout: float = setting(0.2, "share of numbers dropped before convolutions and after embeddings")
    positions: Literal["learned", "none"] = setting("learned", "how word order is told, besides by the convolutions")
    scaled: bool = setting(True, "what attention finds grows by the root of the source's length (published)")
    longest: int = setting(1024, "longest sentence in tokens that learned positions can hold", most=1 << 20)
    tie: Literal["all", "target", "none"] = setting("all", "embeddings shared: all three, the target's two, or none")

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=2, depth=1, decoder_depth=0, kernel=1, longest=1)
        between(self, "model", 0.0, 0.95, "dropout")
        if self.kernel % 2 == 0:
            raise ConfigError(f"model.kernel {self.kernel} is even and has no middle. Use {self.kernel + 1}.")


@dataclass(frozen=True, kw_only=True)
class UniversalConfig:
    """The Universal Transformer: one layer, repeated; each word can halt on its own."""

    width: int = setting(512, "numbers in a word's vector", most=32_768)
    heads: int = setting(8, "attention heads; they share the width", most=1024)
    depth: int = setting(6, "times the layer is repeated; with halting, at most", most=DEEPEST)
    inner: int = setting(2048, "width inside the feed-forward layers", most=1 << 20)
    dropout: float = setting(0.1, "share of numbers dropped after each sub-layer and embedding")
    activation: Literal["relu", "elu", "gelu"] = setting("relu", "between the two feed-forward layers")
    norm: Literal["after", "before"] = setting("after", "layer norm after each sub-layer (published) or before it")
    positions: Literal["sinusoidal", "relative"] = setting("sinusoidal", "how word order is told")
    span: int = setting(16, "farthest distance that relative positions tell apart", most=1 << 16)
    tie: Literal["all", "target", "none"] = setting("all", "embeddings shared: all three, the target's two, or none")
    halting: bool = setting(True, "let each word stop by itself (adaptive computation time)")
    threshold: float = setting(0.99, "halting: the probability at which a word stops")
    ponder: float = setting(0.01, "halting: cost of a repetition, per word, in the loss", most=1000.0)
    offset: int = setting(
        0, "training: count positions from a random number up to this, to meet longer texts", most=1 << 20
    )

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=2, heads=1, depth=1, inner=1, span=1, ponder=0, offset=0)
        between(self, "model", 0.0, 0.95, "dropout")
        between(self, "model", 0.01, 0.9999, "threshold")
        heads_share(self.width, self.heads)
        no_offset_of_relative(self.positions, self.offset)
        if self.width % 2:
            raise ConfigError(f"model.width {self.width} is odd; its waves need pairs. Use {self.width + 1}.")


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """A recurrent language model: what it has read so far is one vector, carried from word to word."""

    width: int = setting(650, "numbers in a word's vector and in a layer's state", most=32_768)
    depth: int = setting(2, "recurrent layers", most=DEEPEST)
    dropout: float = setting(0.5, "share of numbers dropped between layers and after embeddings")
    tie: bool = setting(True, "the same vectors for words read and words written")

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=1, depth=1)
        between(self, "model", 0.0, 0.95, "dropout")


@dataclass(frozen=True, kw_only=True)
class RnnConfig(RecurrentConfig):
    """Recurrent language model, the plain kind: one tanh layer after another; its gradient fades with distance."""


@dataclass(frozen=True, kw_only=True)
class LstmConfig(RecurrentConfig):
    """Recurrent language model with gates and a memory cell, in which a signal can last."""


@dataclass(frozen=True, kw_only=True)
class GruConfig(RecurrentConfig):
    """Recurrent language model with gates and no separate memory cell."""


@dataclass(frozen=True, kw_only=True)
class LmConfig:
    """The Transformer's decoder alone, a language model: every word looks at all words before it."""

    width: int = setting(768, "numbers in a word's vector", most=32_768)
    heads: int = setting(12, "attention heads; they share the width", most=1024)
    depth: int = setting(12, "layers", most=DEEPEST)
    inner: int = setting(3072, "width inside the feed-forward layers", most=1 << 20)
    dropout: float = setting(0.1, "share of numbers dropped after each sub-layer and embedding")
    activation: Literal["relu", "elu", "gelu", "gelu_tanh"] = setting("gelu_tanh", "between the feed-forward layers")
    norm: Literal["after", "before"] = setting("before", "layer norm before each sub-layer (as in GPT-2) or after it")
    positions: Literal["sinusoidal", "learned", "relative"] = setting("learned", "how word order is told")
    longest: int = setting(1024, "longest text in tokens that learned positions can hold", most=1 << 20)
    span: int = setting(64, "farthest distance that relative positions tell apart", most=1 << 16)
    tie: bool = setting(True, "the same vectors for words read and words written")

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=2, heads=1, depth=1, inner=1, longest=1, span=1)
        between(self, "model", 0.0, 0.95, "dropout")
        heads_share(self.width, self.heads)
        if self.positions == "sinusoidal" and self.width % 2:
            raise ConfigError(
                f"model.width {self.width} is odd; sinusoidal positions need pairs. Use {self.width + 1}."
            )


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """Decoder-only with memory-compressed attention (WikiSum): reads ten thousand words and more."""

    width: int = setting(512, "numbers in a word's vector", most=32_768)
    heads: int = setting(8, "attention heads; they share the width", most=1024)
    depth: int = setting(5, "layers: local and memory-compressed ones by turns, a local one first", most=DEEPEST)
    inner: int = setting(2048, "width inside the feed-forward layers", most=1 << 20)
    dropout: float = setting(0.1, "share of numbers dropped after each sub-layer and embedding")
    activation: Literal["relu", "elu", "gelu"] = setting("relu", "between the two feed-forward layers")
    norm: Literal["after", "before"] = setting("before", "layer norm before each sub-layer or after it")
    full: bool = setting(False, "full attention in every layer instead (the paper's T-D)")
    block: int = setting(256, "local layers: tokens that see each other", most=1 << 16)
    kernel: int = setting(3, "compressed layers: keys and values joined into one, and the stride", most=1001)
    tie: bool = setting(True, "the same vectors for words read and words written")

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=2, heads=1, depth=1, inner=1, block=1, kernel=1)
        between(self, "model", 0.0, 0.95, "dropout")
        heads_share(self.width, self.heads)
        if self.width % 2:
            raise ConfigError(f"model.width {self.width} is odd; its positions need pairs. Use {self.width + 1}.")


@dataclass(frozen=True, kw_only=True)
class ReaderConfig:
    """The Transformer's encoder alone, as BERT has it; the defaults are the published base model."""

    width: int = setting(768, "numbers in a word's vector", most=32_768)
    heads: int = setting(12, "attention heads; they share the width", most=1024)
    depth: int = setting(12, "layers", most=DEEPEST)
    inner: int = setting(3072, "width inside the feed-forward layers", most=1 << 20)
    dropout: float = setting(0.1, "share of numbers dropped after each sub-layer and embedding")
    activation: Literal["relu", "gelu", "gelu_tanh"] = setting("gelu", "between the two feed-forward layers")
    longest: int = setting(512, "longest text in tokens that the learned positions can hold", most=1 << 20)
    epsilon: float = setting(1e-12, "layer norms: keeps the division finite")

    def __post_init__(self) -> None:
        at_most(self, "model")
        at_least(self, "model", width=2, heads=1, depth=1, inner=1, longest=4)
        between(self, "model", 0.0, 0.95, "dropout")
        between(self, "model", 0.0, 0.1, "epsilon")
        heads_share(self.width, self.heads)


@dataclass(frozen=True, kw_only=True)
class BertConfig(ReaderConfig):
    """The Transformer's encoder alone, trained to guess hidden words (BERT): it reads, and does not write."""

    hidden_words: float = setting(0.15, "share of words to guess in training")
    whole_words: bool = setting(False, "hide all pieces of a word together")
    next_sentence: bool = setting(True, "also learn whether the second half of a text follows the first")

    def __post_init__(self) -> None:
        super().__post_init__()
        between(self, "model", 0.01, 0.9, "hidden_words")


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig(ReaderConfig):
    """BERT with a label for the whole text: fine-tuned from a bert folder (--from), or trained from nothing."""


ModelConfig = (
    RnnConfig | LstmConfig | GruConfig | Seq2SeqConfig | BahdanauConfig | LuongConfig | ConvConfig | TransformerConfig
    | UniversalConfig | LmConfig | MemoryConfig | BertConfig | ClassifierConfig
)  # fmt: skip

MODEL_CONFIGS: dict[str, type[ModelConfig]] = {
    "rnn": RnnConfig,
    "lstm": LstmConfig,
    "gru": GruConfig,
    "seq2seq": Seq2SeqConfig,
    "bahdanau": BahdanauConfig,
    "luong": LuongConfig,
    "conv": ConvConfig,
    "transformer": TransformerConfig,
    "universal": UniversalConfig,
    "lm": LmConfig,
    "memory": MemoryConfig,
    "bert": BertConfig,
    "classifier": ClassifierConfig,
}

RECURRENT_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"width": 160, "dropout": 0.3},
    "small": {"width": 384, "dropout": 0.3},
    "base": {},
}

READER_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "heads": 2, "depth": 2, "inner": 512},
    "small": {"width": 256, "heads": 4, "depth": 4, "inner": 1024},
    "base": {},
}

# What `--size` stands for. `base` is the dataclass as it is: the published model, where there is one.
# The `tiny` ones have about as many parameters as each other. The small Transformers have the norm before each sub-layer:
# for little text and short trainings it learns at once, where the published one spends thousands of steps on its warm-up.
SIZES: dict[type[ModelConfig], dict[str, dict[str, Any]]] = {
    RnnConfig: RECURRENT_SIZES,
    LstmConfig: RECURRENT_SIZES,
    GruConfig: RECURRENT_SIZES,
    Seq2SeqConfig: RECURRENT_SIZES,
    BahdanauConfig: RECURRENT_SIZES,
    LuongConfig: RECURRENT_SIZES,
    ConvConfig: {
        "tiny": {"width": 128, "depth": 5, "dropout": 0.3},
        "small": {"width": 256, "depth": 8, "dropout": 0.3},
        "base": {},
    },
    TransformerConfig: {
        "tiny": {"width": 128, "heads": 4, "depth": 4, "inner": 256, "dropout": 0.3, "norm": "before"},
        "small": {"width": 256, "heads": 4, "depth": 6, "inner": 1024, "dropout": 0.3, "norm": "before"},
        "base": {},
        "big": {"width": 1024, "heads": 16, "inner": 4096, "dropout": 0.3},
    },
    UniversalConfig: {
        "tiny": {"width": 192, "heads": 6, "depth": 4, "inner": 384, "dropout": 0.3, "norm": "before"},
        "small": {"width": 384, "heads": 6, "depth": 6, "inner": 1536, "dropout": 0.3, "norm": "before"},
        "base": {},
    },
    LmConfig: {
        "tiny": {"width": 128, "heads": 4, "depth": 6, "inner": 512},
        "small": {"width": 384, "heads": 6, "depth": 6, "inner": 1536, "dropout": 0.2},
        "base": {},
    },
    MemoryConfig: {
        "tiny": {"width": 128, "heads": 4, "inner": 512},
        "small": {"width": 256, "heads": 4, "inner": 1024},
        "base": {},
    },
    BertConfig: READER_SIZES,
    ClassifierConfig: READER_SIZES,
}
# What a model would rather have than the defaults of the other sections. A language model is judged by the plain
# probability of the next word, so nothing is smoothed.
_PLAIN: dict[str, dict[str, Any]] = {"train": {"smoothing": 0.0}}
PREFERENCES: dict[type[ModelConfig], dict[str, dict[str, Any]]] = {
    RnnConfig: _PLAIN,
    LstmConfig: _PLAIN,
    GruConfig: _PLAIN,
    LmConfig: _PLAIN,
    BertConfig: {"train": {"smoothing": 0.0}, "text": {"document": "paragraph", "longest": 128}},
    ClassifierConfig: {
        "train": {"smoothing": 0.0, "rate": 5e-4, "warm_up": 200, "metric": "accuracy"},
        "text": {"longest": 128},
    },
}
DEFAULT_MODEL, DEFAULT_SIZE = "transformer", "tiny"
