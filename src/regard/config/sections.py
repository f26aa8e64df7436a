"""The settings that every run has: of its text, its training, and how it writes."""

from dataclasses import dataclass
from typing import Literal

from regard.config.setting import LARGEST_SEED, at_least, at_most, between, setting
from regard.errors import ConfigError

MANY = 1_000_000_000
LONGEST_SHORTLIST = 100
"""Likely translations of a token that are known at most."""


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How text becomes numbers."""

    tokenizer: Literal["bpe", "unigram", "words", "characters", "wordpiece"] = setting(
        "bpe", "subwords by SentencePiece (bpe, unigram), or words, or characters; wordpiece in imported models"
    )
    vocabulary: int = setting(8000, "words or pieces, shared by both languages", most=10_000_000)
    normalize: Literal["nfkc", "none"] = setting("nfkc", "Unicode clean-up before subwords are cut")
    lowercase: bool = setting(False, "lower-case everything read and written")
    byte_fallback: bool = setting(False, "spell characters the vocabulary lacks as bytes (bpe, unigram)")
    sampling: float = setting(0.0, "vary the subwords during training: BPE-dropout, or unigram's alpha")
    kind: Literal["auto", "pairs", "text"] = setting(
        "auto", "what DATA holds; auto = running text if the model needs no pairs and the files are no tables"
    )
    document: Literal["file", "paragraph", "line"] = setting("file", "running text: what counts as one document")
    longest: int = setting(
        256,
        "pairs: leave out those with more tokens than this on a side; running text: tokens in a passage",
        most=10_000_000,
    )
    learn_from: int = setting(1_000_000, "sentences from which the tokenizer is learned, drawn at random", most=MANY)
    held_out: int = setting(1000, "pairs kept for validation when none are given (at most a tenth)", most=MANY)
    columns: str = setting("", "the two columns or keys of a TSV, CSV or JSONL file: SOURCE,TARGET; of text, one KEY")

    def __post_init__(self) -> None:
        at_most(self, "text")
        at_least(self, "text", vocabulary=8, longest=1, learn_from=1, held_out=1)
        between(self, "text", 0.0, 1.0, "sampling")
        if self.sampling and self.tokenizer not in ("bpe", "unigram"):
            raise ConfigError(
                f"text.sampling {self.sampling} needs subwords, but text.tokenizer is {self.tokenizer}. "
                "Set text.tokenizer=bpe (or unigram), or leave text.sampling at 0."
            )
        if self.columns and len(self.columns.split(",")) > 2:
            raise ConfigError(f"text.columns {self.columns!r} names too many columns. Write it as SOURCE,TARGET.")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the model learns."""

    seed: int = setting(1, "every random choice follows from it", most=LARGEST_SEED)
    steps: int = setting(100_000, "updates at most", most=MANY)
    max_minutes: float = setting(0.0, "training time at most, over all resumptions; 0 = no limit", most=MANY)
    batch_tokens: int = setting(4096, "tokens a batch holds on its longer side, padding counted", most=MANY)
    accumulate: int = setting(1, "batches summed into one update", most=1_000_000)
    optimizer: Literal["adam", "muon"] = setting(
        "adam",
        "muon = Muon for the matrices of Transformer blocks, Adam for the rest: fewer updates, each a little longer",
    )
    rate: float = setting(0.0, "highest learning rate; 0 = the paper's, 1 / sqrt(width x warm_up)", most=1000.0)
    warm_up: int = setting(2000, "updates in which the rate rises", most=MANY)
    schedule: Literal["paper", "inverse_sqrt", "cosine", "plateau", "constant"] = setting(
        "inverse_sqrt", "how the rate falls after that (cosine reaches 0 at train.steps)"
    )
    plateau_factor: float = setting(0.5, "plateau: what the rate is multiplied by when validation stalls")
    plateau_patience: int = setting(3, "plateau: validations without progress before it does", most=MANY)
    beta1: float = setting(0.9, "Adam: memory of the gradient")
    beta2: float = setting(0.98, "Adam: memory of its square")
    epsilon: float = setting(1e-9, "Adam: keeps the division finite")
    weight_decay: float = setting(0.0, "decoupled weight decay", most=1000.0)
    clip: float = setting(1.0, "longest gradient; 0 = any", most=1e9)
    smoothing: float = setting(0.1, "probability the loss gives to all other words together")
    rdrop: float = setting(
        0.0,
        "R-Drop: weight of the disagreement between two dropouts of the same pair or text, e.g. 5; 0 = one pass",
        most=1e6,
    )
    soft: float = setting(
        0.0, "regard distill: part of the loss that is the teachers' probabilities, word by word, e.g. 0.5; 0 = none"
    )
    log_steps: int = setting(50, "updates between lines of the log", most=MANY)
    validate_steps: int = setting(500, "updates between validations", most=MANY)
    metric: Literal["loss", "bleu", "chrf", "exact", "accuracy"] = setting(
        "loss", "what the best checkpoint is best at; exact: texts that are right altogether"
    )
    validate_sentences: int = setting(200, "validation sentences translated for BLEU, chrF and exact", most=MANY)
    samples: int = setting(2, "translations shown at each validation", most=10_000)
    probe: str = setting(
        "",
        "text whose attention is kept at each validation; of pairs, SOURCE ||| TARGET; empty = one of those validated on",
    )
    patience: int = setting(5, "validations without a better one before training ends; 0 = never", most=MANY)
    checkpoint_steps: int = setting(500, "updates between checkpoints", most=MANY)
    checkpoint_minutes: float = setting(
        10.0, "minutes between checkpoints, if that is sooner; 0 = by steps alone", most=MANY
    )
    keep: int = setting(5, "checkpoints kept besides the best", most=1_000_000)
    average: int = setting(
        5, "checkpoints averaged at the end, if validation likes the average better; 1 = none", most=1_000_000
    )
    ema: float = setting(0.0, "decay of an exponential moving average of the weights, e.g. 0.999; 0 = none")
    recompute: bool = setting(
        False, "forget what blocks computed and compute it again on the way back: less memory, more time, same weights"
    )
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto", "auto = bfloat16 where the hardware is fast at it"
    )
    device: str = setting("auto", "auto, cpu, cuda, cuda:N or mps")
    threads: int = setting(0, "CPU threads; 0 = as many as there are cores", most=1024)

    def __post_init__(self) -> None:
        at_most(self, "train")
        at_least(self, "train", seed=0, steps=1, max_minutes=0, batch_tokens=1, accumulate=1, rate=0, warm_up=1)
        at_least(self, "train", plateau_patience=1, weight_decay=0, clip=0, validate_steps=1, validate_sentences=1)
        at_least(self, "train", samples=0, patience=0, checkpoint_steps=1, checkpoint_minutes=0, keep=1, average=1)
        at_least(self, "train", threads=0, log_steps=1, rdrop=0)
        between(self, "train", 0.0, 0.999999, "beta1", "beta2", "smoothing", "ema", "plateau_factor")
        between(self, "train", 0.0, 1.0, "soft")
        losses = ("rdrop", "soft")
        several = [f"train.{name} {value:g}" for name in losses if (value := getattr(self, name))]
        if len(several) > 1:
            raise ConfigError(f"{' and '.join(several)} are different losses. Set all but one of them to 0.")
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

    beam: int = setting(4, "hypotheses kept at each step; 1 = greedy", most=1_000_000)
    length_penalty: float = setting(0.6, "how far long sentences are forgiven (Wu et al. 2016, alpha)")
    coverage_penalty: float = setting(
        0.0, "cost of leaving source words unattended (Wu et al. 2016, beta)", most=1000.0
    )
    n_best: int = setting(1, "translations returned for each sentence", most=10_000_000)
    sample: bool = setting(False, "draw words at random instead of searching")
    temperature: float = setting(1.0, "sampling: below 1 bolder on likely words, above 1 more even")
    top_k: int = setting(0, "sampling: only among the k likeliest words; 0 = all", most=10_000_000)
    top_p: float = setting(1.0, "sampling: only among the likeliest words that together have this probability")
    seed: int = setting(1, "sampling: same seed, same text", most=LARGEST_SEED)
    mbr: int = setting(
        0,
        "draw so many samples, and choose the text that is most like the others by chrF; 0 = the likeliest text",
        most=1000,
    )
    no_repeat: int = setting(0, "never write the same n words twice in a sentence; 0 = allowed", most=1000)
    min_length: int = setting(0, "tokens at least", most=1_000_000)
    max_length: int = setting(0, "tokens at most; 0 = the source's plus 50", most=1_000_000)
    precision: Literal["auto", "float32", "bfloat16", "int8"] = setting(
        "auto", "of the numbers when writing; auto = float32 with torch, int8 with CTranslate2"
    )
    batch_tokens: int = setting(
        8192, "source tokens translated together, beams counted; changes speed, not text", most=1_000_000
    )
    shortlist: int = setting(
        0, "score only so many likely translations of each source token, at most 100; 0 = all words"
    )

    def __post_init__(self) -> None:
        at_most(self, "decode")
        between(self, "decode", 0, LONGEST_SHORTLIST, "shortlist")
        between(self, "decode", -10, 10, "length_penalty")
        at_least(self, "decode", beam=1, coverage_penalty=0, n_best=1, top_k=0, seed=0, no_repeat=0)
        at_least(self, "decode", min_length=0, max_length=0, batch_tokens=1, mbr=0)
        if not 0 < self.temperature <= 100:
            raise ConfigError(f"decode.temperature {self.temperature} must be above 0 and at most 100.")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"decode.top_p {self.top_p} must be above 0 and at most 1.")
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(f"decode.min_length {self.min_length} exceeds decode.max_length {self.max_length}.")
        if self.mbr == 1 or (self.mbr and self.sample):
            raise ConfigError(
                f"decode.mbr {self.mbr} draws samples by itself, and compares them: give 2 or more, without decode.sample."
            )
        if not self.sample and not self.mbr and self.n_best > self.beam:
            raise ConfigError(
                f"decode.n_best {self.n_best} needs as many hypotheses, but decode.beam is {self.beam}. "
                f"Set decode.beam={self.n_best} (--beam {self.n_best}), or sample."
            )
