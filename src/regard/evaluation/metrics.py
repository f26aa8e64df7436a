"""How good translations and summaries are, as pure functions over lists of strings.

BLEU, chrF and TER are sacrebleu's own, ROUGE is the rouge-score package's, word errors are counted here. A score carries
a signature, without which it cannot be compared with anybody else's, and a confidence interval by bootstrap resampling
(Koehn 2004): how much it would change with another choice of sentences.
"""

import logging
import math
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import estimate_ci

from regard.errors import ConfigError, DataError

TRANSLATION = ("bleu", "chrf", "ter")
ROUGE = ("rouge1", "rouge2", "rougeL")
METRICS = (*TRANSLATION, "wer", *ROUGE)

_RESAMPLES = 1000
_SEED = 12345  # sacrebleu's, so that all intervals of a report are of the same resamples
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


class Scorer(Protocol):
    """What scores a whole test set by one metric."""

    def __call__(
        self, translations: Sequence[str], references: Sequence[str], further: Sequence[Sequence[str]] = ()
    ) -> Score:
        """`further` holds other references of the same texts; an empty one means that a text has no other."""
        ...


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


def named(names: Iterable[str]) -> list[str]:
    """The metrics that a user's list means, each once; `rouge` is short for all three of its kind.

    >>> named(["bleu", "rouge", "rouge2"])
    ['bleu', 'rouge1', 'rouge2', 'rougeL']
    """
    return list(dict.fromkeys(one for name in names for one in (ROUGE if name == "rouge" else (name,))))


def scorer(name: str, *, tokenize: str = "13a", interval: bool = True, quiet: bool = False) -> Scorer:
    """The metric of that name; a wrong name or tokenizer is refused here, before anything is translated."""
    if name not in METRICS:
        raise ConfigError(f"There is no metric {name!r}.{_near(name, METRICS)} Known: {', '.join(METRICS)}, rouge.")
    if name == "wer":
        return partial(_wer, interval)
    if name in ROUGE:
        # Imported by those who ask for it: it brings nltk, which takes most of a second.
        from rouge_score.rouge_scorer import RougeScorer

        return partial(_rouge, RougeScorer([name], use_stemmer=True), name, interval)
    metric = _bleu(tokenize, quiet=quiet) if name == "bleu" else _Chrf() if name == "chrf" else _Ter()
    return partial(_score, metric, interval)


def exact_match(translations: Sequence[str], references: Sequence[str], further: Sequence[Sequence[str]] = ()) -> float:
    """Percent of translations equal to their reference, or to one of them, spaces at the ends aside.

    >>> exact_match(["one", "two "], ["one", "three"])
    50.0
    """
    both = zip(translations, _gathered(translations, references, further), strict=True)
    return 100.0 * sum(ours.strip() in {one.strip() for one in theirs} for ours, theirs in both) / len(references)


def word_accuracy(translations: Sequence[str], references: Sequence[str]) -> float:
    """Percent of the references' words, parted by spaces, that the translation has at the same place from its beginning.

    A word left out makes all after it wrong, and words beyond the reference's end are not looked at: a measure for
    tasks that have one right answer, not for translations.

    >>> word_accuracy(["a b x d e", "b"], ["a b c d", "a b"])
    50.0
    """
    _check(translations, references)
    right = words = 0
    for ours, theirs in zip(translations, references, strict=True):
        expected = theirs.split()
        words += len(expected)
        right += sum(one == other for one, other in zip(ours.split(), expected, strict=False))
    return 100.0 * right / max(1, words)


def nearest(translations: Sequence[str], reference: str) -> str:
    """The translation most like the reference, by the BLEU of one sentence; of equals the first.

    >>> nearest(["the cat sat", "a cat is sitting here", "a dog"], "a cat is sitting there")
    'a cat is sitting here'
    """
    one = BLEU(effective_order=True, force=True)  # orders that a short sentence does not have are left out
    return max(translations, key=lambda text: one.sentence_score(text, [reference]).score)


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


class _Chrf(CHRF):
    """sacrebleu's; its scores are numpy's or Python's as it comes, and its bootstrap cannot average a mixture."""

    def _compute_score_from_stats(self, statistics: list[int]) -> Any:
        return _plain(super()._compute_score_from_stats(statistics))


class _Ter(TER):
    """sacrebleu's; a resample without a word in its references has a score that is Python's, the others numpy's."""

    def _compute_score_from_stats(self, statistics: list[float]) -> Any:
        return _plain(super()._compute_score_from_stats(statistics))


def _plain(score: Any) -> Any:
    score.score = float(score.score)
    return score


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


def _score(
    metric: Metric,
    interval: bool,
    translations: Sequence[str],
    references: Sequence[str],
    further: Sequence[Sequence[str]] = (),
) -> Score:
    _check(translations, references, *further)
    streams: list[Any] = [list(references), *([one if one.strip() else None for one in other] for other in further)]
    resamples = _resamples(len(references)) if interval else 1
    result = metric.corpus_score(list(translations), streams, n_bootstrap=resamples)
    score = Score(str(result.name), float(result.score), str(metric.get_signature()))
    if not interval:
        return score
    return score._replace(low=float(result._mean - result._ci), high=float(result._mean + result._ci))


def _rouge(
    package: Any,
    name: str,
    interval: bool,
    translations: Sequence[str],
    references: Sequence[str],
    further: Sequence[Sequence[str]] = (),
) -> Score:
    """ROUGE (Lin 2004): the mean over texts of the F-measure, in percent, each by the reference that suits it best.

    The package reads English: words are lower-cased and stemmed, and whatever is not a-z or a digit parts them.
    """
    right = _gathered(translations, references, further)
    unread = sum(not any(re.search("[a-z0-9]", one.lower()) for one in theirs) for theirs in right)
    if unread:
        logging.getLogger(__name__).warning(
            "ROUGE reads the letters a to z and digits only; %d of %d texts have none and score 0.", unread, len(right)
        )
    scored = zip(translations, right, strict=True)
    values = np.array([100 * package.score_multi(theirs, ours)[name].fmeasure for ours, theirs in scored])
    counts = {len(theirs) for theirs in right}
    resamples = _resamples(len(values))
    parts = [f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}"]
    parts += [f"bs:{resamples}", f"seed:{_SEED}"] if interval else []
    parts += ["stem:porter", "measure:f1", "average:mean", f"version:rouge-score-{version('rouge-score')}"]
    score = Score(f"ROUGE-{name[-1]}", float(values.mean()), "|".join(parts))
    if not interval:
        return score
    rng = np.random.default_rng(_SEED)
    mean, half = estimate_ci(np.array([rng.choice(values, len(values)).mean() for _ in range(resamples)]))
    return score._replace(low=float(mean - half), high=float(mean + half))


def edits(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Words to insert, delete or replace to make one text of the other (Levenshtein 1966).

    >>> edits("a b c d".split(), "a x c".split())
    2
    """
    before = list(range(len(theirs) + 1))
    for row, one in enumerate(ours, 1):
        now = [row]
        for column, other in enumerate(theirs):
            now.append(min(before[column] + (one != other), before[column + 1] + 1, now[column] + 1))
        before = now
    return before[-1]


def _wer(
    interval: bool, translations: Sequence[str], references: Sequence[str], further: Sequence[Sequence[str]] = ()
) -> Score:
    """Word error rate: edits in percent of the reference's words, each text by the reference that needs the fewest.

    Unlike TER, a phrase that was moved is not one edit: the measure for sounds, actions and other answers in order.
    """
    counts = []  # of each text: edits, and words of the reference
    for ours, right in zip(translations, _gathered(translations, references, further), strict=True):
        written = ours.split()
        counts.append(min((edits(written, theirs.split()), len(theirs.split())) for theirs in right))
    count_N2 = np.array(counts)
    resamples = _resamples(len(counts))
    parts = ["case:mixed", "words:spaces"] + ([f"bs:{resamples}", f"seed:{_SEED}"] if interval else [])
    wrong, words = count_N2.sum(0)
    score = Score("WER", 100.0 * wrong / max(1, words), "|".join(parts))
    if not interval:
        return score
    rng = np.random.default_rng(_SEED)
    sums_R2 = np.array([rng.choice(count_N2, len(counts)).sum(0) for _ in range(resamples)])
    mean, half = estimate_ci(100.0 * sums_R2[:, 0] / np.maximum(1, sums_R2[:, 1]))
    return score._replace(low=max(0.0, float(mean - half)), high=float(mean + half))


def _resamples(sentences: int) -> int:
    return max(100, min(_RESAMPLES, _RESAMPLED_SENTENCES // sentences))


def _gathered(
    translations: Sequence[str], references: Sequence[str], further: Sequence[Sequence[str]]
) -> list[list[str]]:
    """All references of each text."""
    _check(translations, references, *further)
    return [
        [first, *(one for one in others if one.strip())] for first, *others in zip(references, *further, strict=True)
    ]


def _check(translations: Sequence[str], *references: Sequence[str]) -> None:
    for some in references:
        if len(translations) != len(some):
            raise DataError(
                f"{len(translations)} translations cannot be compared with {len(some)} references. "
                "Give one reference for each translation, in the same order."
            )
    if not translations:
        raise DataError("There are no sentences to score. Give at least one translation and its reference.")


def _near(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""
