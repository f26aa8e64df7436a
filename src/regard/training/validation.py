"""What a validation found."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

SCORES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": "exact match",
    "bits_per_byte": "bits per byte",
    "accuracy": "accuracy",
    "next_sentence": "next sentence",
}
"""What validations report, as people write it."""


class Sample(NamedTuple):
    """A text the model read, what it made of it, and what would have been right, where there is a right answer."""

    read: str
    made: str
    right: str = ""


@dataclass(frozen=True)
class Validation:
    """How good the model is on text it does not learn from."""

    loss: float
    """Per token, without smoothing."""
    scores: dict[str, float] = field(default_factory=dict)
    """What else was measured, by the names of SCORES; the higher the better, but for bits per byte."""
    samples: list[Sample] = field(default_factory=list)
    """Some texts, and what the model made of them."""

    @property
    def perplexity(self) -> float:
        """How many words the model hesitates between, on average."""
        return math.exp(min(self.loss, 700.0))

    def better_than(self, other: float, loss: float, metric: str) -> bool:
        """Whether this is an improvement on another value of the metric; of two equal ones the smaller loss decides."""
        value = self.value(metric)
        if math.isnan(other):
            return not math.isnan(value)
        return self.loss < loss if value == other else (value < other) == (metric == "loss")

    def value(self, metric: str) -> float:
        """The loss, or the score of this name."""
        return self.loss if metric == "loss" else self.scores[metric]
