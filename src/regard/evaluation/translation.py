"""Translate a test set and score it."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.decode.translation import Progress, TextTranslator
from regard.decode.translator import Translator, evaluating
from regard.errors import DataError
from regard.evaluation import metrics as measures
from regard.evaluation.metrics import TRANSLATION, Score
from regard.models.base import Source
from regard.text.batching.batch import make_pairs
from regard.text.pair import Pair
from regard.text.tokenizers.tokenizer import END, PAD

_TOLD_AT_A_TIME = 32  # texts of which a model reports


@dataclass(frozen=True)
class Report:
    """What a model achieves on a test set."""

    scores: dict[str, Score]
    """By the names of METRICS."""
    exact_match: float
    """Percent of sentences translated exactly as the reference, or one of them."""
    word_accuracy: float
    """Percent of the reference's words that stand at the same place in the translation."""
    guessed: float
    """Percent of the references' tokens, ends counted, that the model holds likeliest given the right ones before them."""
    perplexity: float
    """Of the references, per token of this model's tokenizer."""
    sentences: int
    seconds: float
    """Taken by translating."""
    hypotheses: list[str]
    told: dict[str, float]
    """What the model has to say about itself on these texts."""

    @property
    def sentences_per_second(self) -> float:
        """How fast it translated."""
        return self.sentences / self.seconds if self.seconds else math.inf

    def as_table(self) -> dict[str, Any]:
        """Everything but the translations, ready for JSON."""
        return {
            **{name: score._asdict() for name, score in self.scores.items()},
            "exact_match": self.exact_match,
            "word_accuracy": self.word_accuracy,
            "guessed": self.guessed,
            "perplexity": _finite(self.perplexity),
            **self.told,
            "sentences": self.sentences,
            "seconds": self.seconds,
            "sentences_per_second": _finite(self.sentences_per_second),
        }

    def lines(self) -> list[str]:
        """For the terminal: each score with its confidence interval and signature, then the rest."""
        return [
            *(_line(score) for score in self.scores.values()),
            f"{'exact':<12}{self.exact_match:7.2f} %",
            f"{'words right':<12}{self.word_accuracy:7.2f} % of the reference's, each at its place",
            f"{'guessed':<12}{self.guessed:7.2f} % of the reference's tokens, given the right ones before",
            f"{'perplexity':<12}{self.perplexity:7.2f} per token",
            *(f"{name.replace('_', ' ')}: {value:.2f}".removesuffix(".00") for name, value in self.told.items()),
            f"{self.sentences:,} sentences in {self.seconds:.1f} s, {self.sentences_per_second:.1f} per second",
        ]


def evaluate(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    tokenize: str = "13a",
    metrics: Sequence[str] = TRANSLATION,
    references: Sequence[Sequence[str]] = (),
    progress: Progress | None = None,
    fast: TextTranslator | None = None,
    **settings: Any,
) -> Report:
    """Translate the sources and compare with the targets; `settings` are those of DecodeConfig.

    The texts are translated by `fast`, if it is given: the same model in another engine.

    Each of `references` holds one further reference for every pair, or an empty one; a metric compares with the one
    that suits it best, as its authors defined that.
    """
    if not pairs:
        raise DataError("There are no sentence pairs to evaluate on. Give at least one.")
    scorers = {name: measures.scorer(name, tokenize=tokenize) for name in measures.named(metrics)}
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    # First, because it is quick and already meets every text that the model cannot read.
    judged = translator.judge(sources, targets)
    tokens = sum(one.tokens for one in judged)
    began = time.perf_counter()
    found = (fast or translator).n_best(sources, progress=progress, **settings)
    seconds = time.perf_counter() - began
    hypotheses = [translations[0].text for translations in found]
    return Report(
        scores={name: score(hypotheses, targets, references) for name, score in scorers.items()},
        exact_match=measures.exact_match(hypotheses, targets, references),
        word_accuracy=measures.word_accuracy(hypotheses, targets),
        guessed=100.0 * sum(one.guessed for one in judged) / tokens,
        perplexity=measures.perplexity(sum(one.log_probability for one in judged), tokens),
        sentences=len(pairs),
        seconds=seconds,
        hypotheses=hypotheses,
        told=_told(translator, sources, targets),
    )


def _told(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
    """The means of what the model reports, over all texts."""
    reads, writes = translator.tokenizer.encode(sources), translator.tokenizer.encode(targets)
    # By length, so that little of a batch is padding.
    order = sorted(range(len(reads)), key=lambda n: len(reads[n]) + len(writes[n]))
    found: dict[str, list[Tensor]] = {}
    for first in range(0, len(order), _TOLD_AT_A_TIME):
        some = order[first : first + _TOLD_AT_A_TIME]
        batch = make_pairs([reads[n] for n in some], [writes[n] for n in some], some).to(translator.device)
        # END is never read when writing; without it, what is told of a text does not depend on the others' length.
        target_BT = batch.target_BT.masked_fill(batch.target_BT == END, PAD)[:, :-1]
        with evaluating(translator.model):
            told = translator.model.report(Source(batch.source_BS, batch.source_lengths_B), target_BT)
        for name, numbers in told.items():
            found.setdefault(name, []).append(numbers.flatten().double().cpu())
    return {name: float(torch.cat(numbers).mean()) for name, numbers in found.items()}


def _line(score: Score) -> str:
    interval = ""
    if score.low is not None and score.high is not None:
        interval = f"  [{score.low:.2f}, {score.high:.2f}] at {score.confidence:.0%}"
    return f"{score.name:<12}{score.value:7.2f}{interval}  {score.signature}"


def _finite(value: float) -> float | None:
    # JSON has no infinity.
    return value if math.isfinite(value) else None
