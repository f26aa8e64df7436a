"""Every setting a user can set: frozen dataclasses, checked at birth.

A configuration that exists is valid. Each default is written once, beside its field. Recipes (TOML), `--set` and a
model folder's config.json all come in through `read`, which refuses what it does not know and names the near miss.
"""

import dataclasses
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from regard.errors import ConfigError

T = TypeVar("T")


def setting(default: T, meaning: str) -> T:
    """A field with its default and the sentence that `regard train --help` shows for it."""
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How text becomes numbers."""

    tokenizer: Literal["bpe", "unigram", "words", "characters"] = setting(
        "bpe", "subwords by SentencePiece (bpe, unigram), or whole words, or characters"
    )
    vocabulary: int = setting(8000, "words or pieces, shared by both languages")
    normalize: Literal["nfkc", "none"] = setting("nfkc", "Unicode clean-up before subwords are cut")
    lowercase: bool = setting(False, "lower-case everything read and written")
    byte_fallback: bool = setting(False, "spell characters the vocabulary lacks as bytes (bpe, unigram)")
    sampling: float = setting(0.0, "vary the subwords during training: BPE-dropout, or unigram's alpha")
    longest: int = setting(256, "leave out training pairs with more tokens than this on a side")
    learn_from: int = setting(1_000_000, "sentences from which the tokenizer is learned, drawn at random")
    held_out: int = setting(1000, "pairs kept for validation when none are given (at most a tenth)")
    columns: str = setting("", "the two columns or keys of a TSV, CSV or JSONL file: SOURCE,TARGET")

    def __post_init__(self) -> None:
        _at_least(self, "text", vocabulary=8, longest=1, learn_from=1, held_out=1)
        _between(self, "text", 0.0, 1.0, "sampling")
        if self.sampling and self.tokenizer not in ("bpe", "unigram"):
            raise ConfigError(
                f"text.sampling {self.sampling} needs subwords, but text.tokenizer is {self.tokenizer}. "
                "Set text.tokenizer=bpe (or unigram), or leave text.sampling at 0."
            )
        if self.columns and len(self.columns.split(",")) != 2:
            raise ConfigError(f"text.columns {self.columns!r} does not name two columns. Write it as SOURCE,TARGET.")


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
        _at_least(self, "model", width=2, heads=1, depth=1, decoder_depth=0, inner=1, longest=1, span=1)
        _between(self, "model", 0.0, 0.95, "dropout")
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


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the model learns."""

    seed: int = setting(1, "every random choice follows from it")
    steps: int = setting(100_000, "updates at most")
    max_minutes: float = setting(0.0, "training time at most, over all resumptions; 0 = no limit")
    batch_tokens: int = setting(4096, "tokens a batch holds on its longer side, padding counted")
    accumulate: int = setting(1, "batches summed into one update")
    rate: float = setting(0.0, "highest learning rate; 0 = the paper's, 1 / sqrt(width x warm_up)")
    warm_up: int = setting(4000, "updates in which the rate rises")
    schedule: Literal["paper", "inverse_sqrt", "cosine", "plateau", "constant"] = setting(
        "inverse_sqrt", "how the rate falls after that (cosine reaches 0 at train.steps)"
    )
    plateau_factor: float = setting(0.5, "plateau: what the rate is multiplied by when validation stalls")
    plateau_patience: int = setting(3, "plateau: validations without progress before it does")
    beta1: float = setting(0.9, "Adam: memory of the gradient")
    beta2: float = setting(0.98, "Adam: memory of its square")
    epsilon: float = setting(1e-9, "Adam: keeps the division finite")
    weight_decay: float = setting(0.0, "decoupled weight decay")
    clip: float = setting(1.0, "longest gradient; 0 = any")
    smoothing: float = setting(0.1, "probability the loss gives to all other words together")
    log_steps: int = setting(50, "updates between lines of the log")
    validate_steps: int = setting(1000, "updates between validations")
    metric: Literal["loss", "bleu", "chrf"] = setting("loss", "what the best checkpoint is best at")
    validate_sentences: int = setting(200, "validation sentences translated for BLEU and chrF")
    samples: int = setting(2, "translations shown at each validation")
    patience: int = setting(10, "validations without a better one before training ends; 0 = never")
    checkpoint_steps: int = setting(1000, "updates between checkpoints")
    checkpoint_minutes: float = setting(10.0, "minutes between checkpoints, if that is sooner; 0 = by steps alone")
    keep: int = setting(5, "checkpoints kept besides the best")
    average: int = setting(5, "checkpoints averaged at the end, if validation likes the average better; 1 = none")
    ema: float = setting(0.0, "decay of an exponential moving average of the weights, e.g. 0.999; 0 = none")
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto", "auto = bfloat16 where the hardware is fast at it"
    )
    device: str = setting("auto", "auto, cpu, cuda, cuda:N or mps")
    threads: int = setting(0, "processor threads; 0 = as many as there are cores")

    def __post_init__(self) -> None:
        _at_least(self, "train", seed=0, steps=1, max_minutes=0, batch_tokens=1, accumulate=1, rate=0, warm_up=1)
        _at_least(self, "train", plateau_patience=1, weight_decay=0, clip=0, validate_steps=1, validate_sentences=1)
        _at_least(self, "train", samples=0, patience=0, checkpoint_steps=1, checkpoint_minutes=0, keep=1, average=1)
        _at_least(self, "train", threads=0, log_steps=1)
        _between(self, "train", 0.0, 0.999999, "beta1", "beta2", "smoothing", "ema", "plateau_factor")
        if not 0 < self.epsilon < 1:
            raise ConfigError(f"train.epsilon {self.epsilon} is out of range. Give a small number such as 1e-9.")
        if self.schedule == "paper" and self.rate:
            raise ConfigError(
                f"train.schedule=paper computes its own rate, but train.rate is {self.rate}. "
                "Leave train.rate at 0, or use train.schedule=inverse_sqrt, the same curve with your rate."
            )
        if self.schedule == "cosine" and self.warm_up >= self.steps:
            raise ConfigError(
                f"train.warm_up {self.warm_up} leaves the cosine no room before train.steps {self.steps}. "
                f"Set train.warm_up={max(1, self.steps // 10)}."
            )
        if self.average > self.keep:
            raise ConfigError(
                f"train.average {self.average} needs as many checkpoints, but train.keep is {self.keep}. "
                f"Set train.keep={self.average}."
            )
        if self.device.partition(":")[0] not in ("auto", "cpu", "cuda", "mps"):
            raise ConfigError(f"train.device {self.device!r} is none of auto, cpu, cuda, cuda:N, mps.")


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """How text is written. Kept in the model folder as that model's defaults."""

    beam: int = setting(4, "hypotheses kept at each step; 1 = greedy")
    length_penalty: float = setting(0.6, "how far long sentences are forgiven (Wu et al. 2016, alpha)")
    coverage_penalty: float = setting(0.0, "cost of leaving source words unattended (Wu et al. 2016, beta)")
    n_best: int = setting(1, "translations returned for each sentence")
    sample: bool = setting(False, "draw words at random instead of searching")
    temperature: float = setting(1.0, "sampling: below 1 bolder on likely words, above 1 more even")
    top_k: int = setting(0, "sampling: only among the k likeliest words; 0 = all")
    top_p: float = setting(1.0, "sampling: only among the likeliest words that together have this probability")
    seed: int = setting(1, "sampling: same seed, same text")
    no_repeat: int = setting(0, "never write the same n words twice in a sentence; 0 = allowed")
    min_length: int = setting(0, "tokens at least")
    max_length: int = setting(0, "tokens at most; 0 = the source's plus 50")
    batch_tokens: int = setting(8192, "source tokens translated together, beams counted; changes speed, not text")

    def __post_init__(self) -> None:
        _at_least(self, "decode", beam=1, coverage_penalty=0, n_best=1, top_k=0, seed=0, no_repeat=0)
        _at_least(self, "decode", min_length=0, max_length=0, batch_tokens=1)
        if not 0 < self.temperature <= 100:
            raise ConfigError(f"decode.temperature {self.temperature} must be above 0 and at most 100.")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decode.top_p {self.top_p} must be above 0 and at most 1.")
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(f"decode.min_length {self.min_length} exceeds decode.max_length {self.max_length}.")
        if not self.sample and self.n_best > self.beam:
            raise ConfigError(
                f"decode.n_best {self.n_best} needs as many hypotheses, but decode.beam is {self.beam}. "
                f"Set decode.beam={self.n_best} (--beam {self.n_best}), or sample."
            )


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of one run, by section."""

    text: TextConfig = field(default_factory=TextConfig)
    model: ModelConfig = field(default_factory=TransformerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)


def model_name(config: ModelConfig) -> str:
    """The name under which `--model` knows this kind of model."""
    return next(name for name, kind in MODEL_CONFIGS.items() if kind is type(config))


def read(table: Mapping[str, Any]) -> Config:
    """Turn nested tables (from TOML, JSON or `--set`) into a Config; `model.name` and `model.size` choose the kind."""
    sections = dict(table)
    _refuse_unknown(sections, ["text", "model", "train", "decode"], prefix="")
    for name, section in sections.items():
        if not isinstance(section, Mapping):
            raise ConfigError(f"[{name}] must be a table of settings, not {section!r}.")
    model = dict(sections.get("model", {}))
    kind = _choose(MODEL_CONFIGS, str(model.pop("name", DEFAULT_MODEL)), "model")
    sizes = SIZES[kind]
    size = _choose(sizes, str(model.pop("size", DEFAULT_SIZE)), "size")
    return Config(
        text=_section(TextConfig, "text", sections.get("text", {})),
        model=_section(kind, "model", {**size, **model}),
        train=_section(TrainConfig, "train", sections.get("train", {})),
        decode=_section(DecodeConfig, "decode", sections.get("decode", {})),
    )


def as_table(config: Config) -> dict[str, dict[str, Any]]:
    """The inverse of `read`: plain tables, ready for JSON."""
    table = dataclasses.asdict(config)
    table["model"] = {"name": model_name(config.model), **table["model"]}
    return table


def read_recipe(path: Path) -> dict[str, Any]:
    """A recipe's tables, unchecked; `read` checks them."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the recipe {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The recipe {path} is not valid TOML: {error}.") from None


def merge(*tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Later tables win, setting by setting."""
    result: dict[str, dict[str, Any]] = {}
    for table in tables:
        for section, settings in table.items():
            if not isinstance(settings, Mapping):
                raise ConfigError(
                    f"{section} = {settings!r} stands outside a section. Write it under [train] or another."
                )
            result.setdefault(section, {}).update(settings)
    return result


def parse_set(assignments: Iterable[str]) -> dict[str, dict[str, str]]:
    """`["train.rate=0.003"]` -> `{"train": {"rate": "0.003"}}`; the values stay text until `read` knows their types."""
    table: dict[str, dict[str, str]] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and section and name):
            raise ConfigError(f"--set {assignment!r} is not of the form section.key=value, such as train.rate=0.003.")
        table.setdefault(section, {})[name] = value.strip()
    return table


def differences(old: Config, new: Config) -> list[tuple[str, Any, Any]]:
    """`[(setting, old value, new value)]`, for every setting that differs."""
    before, after = _flat(old), _flat(new)
    return [
        (key, before.get(key), after.get(key)) for key in sorted(before | after) if before.get(key) != after.get(key)
    ]


def describe(kind: type) -> list[tuple[str, Any, str]]:
    """`[(name, default, meaning)]` of a section, for help and documentation."""
    return [(f.name, f.default, f.metadata["meaning"]) for f in fields(kind)]


def _flat(config: Config) -> dict[str, Any]:
    return {f"{section}.{key}": value for section, table in as_table(config).items() for key, value in table.items()}


def _section(kind: type[T], name: str, table: Mapping[str, Any]) -> T:
    hints = get_type_hints(kind)
    _refuse_unknown(table, hints, prefix=f"{name}.")
    return kind(**{key: _typed(hints[key], value, f"{name}.{key}") for key, value in table.items()})


def _typed(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type the field declares; text (from `--set`) is parsed."""
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        if value not in choices:
            raise ConfigError(
                f"{where} cannot be {value!r}. It is one of: {', '.join(choices)}.{_near(value, choices)}"
            )
        return value
    try:
        if hint is bool:
            return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
        if hint is int and not isinstance(value, bool) and float(str(value).replace("_", "")).is_integer():
            return int(float(str(value).replace("_", "")))
        if hint is float and not isinstance(value, bool) and abs(float(value)) < float("inf"):
            return float(value)
        if hint is str and isinstance(value, str):
            return value
    except (KeyError, TypeError, ValueError, OverflowError):
        pass
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    raise ConfigError(f"{where} must be {kinds[hint]}, not {value!r}.")


def _refuse_unknown(given: Iterable[str], known: Iterable[str], prefix: str) -> None:
    known = sorted(known)
    for key in given:
        if key not in known:
            raise ConfigError(
                f"There is no setting {prefix}{key}.{_near(key, known, prefix)} Known: {', '.join(known)}."
            )


def _choose(choices: Mapping[str, T], name: str, what: str) -> T:
    if name not in choices:
        raise ConfigError(f"There is no {what} {name!r}.{_near(name, choices)} Known: {', '.join(choices)}.")
    return choices[name]


def _near(word: object, known: Iterable[str], prefix: str = "") -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f" Did you mean {prefix}{close[0]}?" if close else ""


def _at_least(config: object, section: str, **limits: float) -> None:
    for name, limit in limits.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{section}.{name} {getattr(config, name)} is too small; it must be at least {limit}.")


def _between(config: object, section: str, low: float, high: float, *names: str) -> None:
    for name in names:
        if not low <= getattr(config, name) <= high:
            raise ConfigError(f"{section}.{name} {getattr(config, name)} must lie between {low:g} and {high:g}.")
