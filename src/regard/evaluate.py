"""Translate a test set and score it."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard import metrics as measures
from regard.decode.translator import Progress, Translator
from regard.errors import DataError
from regard.metrics import METRICS, Score
from regard.text.pair import Pair


@dataclass(frozen=True)
class Report:
    """What a model achieves on a test set."""

    scores: dict[str, Score]
    """By the names of METRICS."""
    exact_match: float
    """Percent of sentences translated exactly as the reference."""
    perplexity: float
    """Of the references, per token of this model's tokenizer."""
    sentences: int
    seconds: float
    """Taken by translating."""
    hypotheses: list[str]

    @property
    def sentences_per_second(self) -> float:
        """How fast it translated."""
        return self.sentences / self.seconds if self.seconds else math.inf

    def as_table(self) -> dict[str, Any]:
        """Everything but the translations, ready for JSON."""
        return {
            **{name: score._asdict() for name, score in self.scores.items()},
            "exact_match": self.exact_match,
            "perplexity": _finite(self.perplexity),
            "sentences": self.sentences,
            "seconds": self.seconds,
            "sentences_per_second": _finite(self.sentences_per_second),
        }

    def lines(self) -> list[str]:
        """For the terminal: each score with its confidence interval and signature, then the rest."""
        return [
            *(_line(score) for score in self.scores.values()),
            f"{'exact':<12}{self.exact_match:7.2f} %",
            f"{'perplexity':<12}{self.perplexity:7.2f} per token",
            f"{self.sentences:,} sentences in {self.seconds:.1f} s, {self.sentences_per_second:.1f} per second",
        ]


def evaluate(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    tokenize: str = "13a",
    metrics: Sequence[str] = METRICS,
    progress: Progress | None = None,
    **settings: Any,
) -> Report:
    """Translate the sources and compare with the targets; `settings` are those of DecodeConfig."""
    if not pairs:
        raise DataError("There are no sentence pairs to evaluate on. Give at least one.")
    scorers = {name: measures.scorer(name, tokenize=tokenize) for name in metrics}
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    # First, because it is quick and already meets every text that the model cannot read.
    totals = translator.log_probabilities(sources, references)
    began = time.perf_counter()
    found = translator.n_best(sources, progress=progress, **settings)
    seconds = time.perf_counter() - began
    hypotheses = [translations[0].text for translations in found]
    return Report(
        scores={name: score(hypotheses, references) for name, score in scorers.items()},
        exact_match=measures.exact_match(hypotheses, references),
        perplexity=measures.perplexity(sum(total for total, _ in totals), sum(tokens for _, tokens in totals)),
        sentences=len(pairs),
        seconds=seconds,
        hypotheses=hypotheses,
    )


def _line(score: Score) -> str:
    interval = ""
    if score.low is not None and score.high is not None:
        interval = f"  [{score.low:.2f}, {score.high:.2f}] at {score.confidence:.0%}"
    return f"{score.name:<12}{score.value:7.2f}{interval}  {score.signature}"


def _finite(value: float) -> float | None:
    # JSON has no infinity.
    return value if math.isfinite(value) else None
