"""Which search suits a model: beams and length penalties tried on pairs that it did not learn from. No torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.decode.translation import TextTranslator
from regard.errors import DataError
from regard.evaluation import metrics
from regard.text.pair import Pair

BEAMS, PENALTIES = (1, 2, 4, 8), (0.0, 0.6, 1.0, 1.5, 2.0)
_LOWER_IS_BETTER = ("ter",)


@dataclass(frozen=True)
class Trial:
    """One way to search, and what it reaches."""

    beam: int
    length_penalty: float
    score: float


@dataclass(frozen=True)
class Trials:
    """What was tried."""

    metric: str
    trials: list[Trial]
    """The best first; among equals, the smallest beam."""

    def as_table(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"metric": self.metric, "trials": [asdict(trial) for trial in self.trials]}

    def lines(self) -> list[str]:
        """For the terminal."""
        best = self.trials[0]
        return [
            f"{'beam':>6}{'length penalty':>17}{self.metric:>9}",
            *(f"{one.beam:>6}{one.length_penalty:>17.1f}{one.score:>9.2f}" for one in self.trials),
            f"The best: --beam {best.beam} --length-penalty {best.length_penalty:g}",
        ]


def try_searches(
    translator: TextTranslator,
    pairs: Sequence[Pair],
    *,
    metric: str = "bleu",
    tokenize: str = "13a",
    beams: Sequence[int] = BEAMS,
    penalties: Sequence[float] = PENALTIES,
    **settings: Any,
) -> Trials:
    """Translate the sources in every way, and compare with the targets; `settings` are other ones of DecodeConfig."""
    if not pairs:
        raise DataError("There are no sentence pairs to try searches on. Give at least one.")
    score = metrics.scorer(metric, tokenize=tokenize, interval=False, quiet=True)
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    trials = []
    for beam in beams:
        # Greedy search has one text only, so that no length is preferred.
        for penalty in penalties if beam > 1 else [translator.config.length_penalty]:
            chosen = {**settings, "n_best": 1, "beam": beam, "length_penalty": penalty}
            trials.append(Trial(beam, penalty, score(translator.translate(sources, **chosen), targets).value))
    sign = 1 if metric in _LOWER_IS_BETTER else -1
    return Trials(metric, sorted(trials, key=lambda trial: (sign * trial.score, trial.beam)))
