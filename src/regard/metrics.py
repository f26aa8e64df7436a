"""How good translations are, as pure functions over lists of strings. BLEU, chrF and TER are sacrebleu's own.

A score carries sacrebleu's signature, without which it cannot be compared with anybody else's, and a confidence
interval by bootstrap resampling (Koehn 2004): how much it would change with another choice of sentences.
"""

import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import NamedTuple

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import ConfigError, DataError

METRICS = ("bleu", "chrf", "ter")

_RESAMPLES = 1000
# sacrebleu holds the counts of all resamples in memory at once; larger test sets are resampled less often.
_RESAMPLED_SENTENCES = 5_000_000


class Score(NamedTuple):
    """A score of a whole test set."""

    name: str
    value: float
    signature: str
    low: float | None = None
    """Bounds of the confidence interval; None if none was computed."""
    high: float | None = None
    confidence: float = 0.95


Scorer = Callable[[Sequence[str], Sequence[str]], Score]
"""(translations, references) -> score."""


def bleu(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = "13a",
    interval: bool = True,
    quiet: bool = False,
) -> Score:
    """BLEU (Papineni et al. 2002), 0 to 100, higher is better; `tokenize` is one of sacrebleu's tokenizers.

    sacrebleu warns of text that looks tokenized already, unless it is to be `quiet`.
    """
    return scorer("bleu", tokenize=tokenize, interval=interval, quiet=quiet)(translations, references)


def chrf(translations: Sequence[str], references: Sequence[str], *, interval: bool = True) -> Score:
    """chrF2 (Popović 2015), 0 to 100, higher is better."""
    return scorer("chrf", interval=interval)(translations, references)


def ter(translations: Sequence[str], references: Sequence[str], *, interval: bool = True) -> Score:
    """Translation edit rate (Snover et al. 2006), in percent of the reference's words; lower is better."""
    return scorer("ter", interval=interval)(translations, references)


def scorer(name: str, *, tokenize: str = "13a", interval: bool = True, quiet: bool = False) -> Scorer:
    """The metric of that name; a wrong name or tokenizer is refused here, before anything is translated."""
    if name not in METRICS:
        raise ConfigError(f"There is no metric {name!r}.{_near(name, METRICS)} Known: {', '.join(METRICS)}.")
    metric = _bleu(tokenize, quiet=quiet) if name == "bleu" else CHRF() if name == "chrf" else TER()
    return partial(_score, metric, interval)


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """Percent of translations equal to their reference, spaces at the ends aside.

    >>> exact_match(["one", "two "], ["one", "three"])
    50.0
    """
    _check(translations, references)
    equal = sum(ours.strip() == theirs.strip() for ours, theirs in zip(translations, references, strict=True))
    return 100.0 * equal / len(references)


def perplexity(total_log_probability: float, tokens: int) -> float:
    """Perplexity per token, from the summed natural-log probability.

    >>> perplexity(3 * math.log(1 / 4), 3)
    4.0
    """
    if tokens < 1:
        raise DataError("Perplexity of no tokens is not defined. Give at least one sentence.")
    try:
        return math.exp(-total_log_probability / tokens)
    except OverflowError:
        return math.inf


def _bleu(tokenize: str, *, quiet: bool) -> BLEU:
    choices = list(BLEU.TOKENIZERS)
    if tokenize not in choices:
        raise ConfigError(
            f"BLEU has no tokenizer {tokenize!r}.{_near(tokenize, choices)} It is one of: {', '.join(choices)}."
        )
    try:
        # Whoever asks for no tokenizer has tokenized text and needs no warning that it looks so.
        return BLEU(tokenize=tokenize, force=quiet or tokenize == "none")
    except (ImportError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"BLEU's tokenizer {tokenize!r} cannot be used here: {reason}") from None


def _score(metric: Metric, interval: bool, translations: Sequence[str], references: Sequence[str]) -> Score:
    _check(translations, references)
    resamples = max(100, min(_RESAMPLES, _RESAMPLED_SENTENCES // len(references))) if interval else 1
    result = metric.corpus_score(list(translations), [list(references)], n_bootstrap=resamples)
    score = Score(str(result.name), float(result.score), str(metric.get_signature()))
    if not interval:
        return score
    return score._replace(low=float(result._mean - result._ci), high=float(result._mean + result._ci))


def _check(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references):
        raise DataError(
            f"{len(translations)} translations cannot be compared with {len(references)} references. "
            "Give one reference for each translation, in the same order."
        )
    if not references:
        raise DataError("There are no sentences to score. Give at least one translation and its reference.")


def _near(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""
