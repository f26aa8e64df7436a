"""Validation: the loss on held-out pairs, and real translations of some of them, scored."""

from collections.abc import Callable

import numpy as np
import torch

from regard.models.interface import Writer
from regard.text.loader import Loader
from regard.text.shards import Shards
from regard.training.learner import Learner
from regard.training.loop import Validation
from regard.training.loss import total_loss

Translate = Callable[[Writer, list[str]], list[str]]
Score = Callable[[list[str], list[str]], tuple[float, float]]


class Validator:
    """Validates a model. How text is written and scored is passed in: training itself does not know."""

    def __init__(
        self, shards: Shards, learner: Learner, *, sentences: int, samples: int, translate: Translate, score: Score
    ) -> None:
        self._learner = learner
        self._batches = Loader(shards, learner.config.batch_tokens, seed=0)
        # Spread over the whole set, which may be sorted by length or by origin.
        chosen = np.unique(np.linspace(0, len(shards) - 1, min(sentences, len(shards))).astype(int))
        self._pairs = [shards.text(int(number)) for number in chosen]
        self._samples = samples
        self._translate, self._score = translate, score

    def __call__(self, model: Writer) -> Validation:
        written = self._translate(model, [pair.source for pair in self._pairs])
        bleu, chrf = self._score(written, [pair.target for pair in self._pairs])
        samples = list(zip(self._pairs, written, strict=True))[: self._samples]
        return Validation(self._loss(model), bleu, chrf, samples)

    @torch.no_grad()
    def _loss(self, model: Writer) -> float:
        model.eval()
        loss, tokens = 0.0, 0
        for batch in self._batches.batches(epoch=0):
            with self._learner.computing():
                loss += float(total_loss(model, batch.to(self._learner.device), smoothing=0.0))
            tokens += batch.tokens
        return loss / tokens
