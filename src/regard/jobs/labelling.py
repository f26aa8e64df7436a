"""Learning labels: one of several for a whole text."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import torch

from regard.config import Config
from regard.jobs.interface import Job, Progress, mean_loss, room_for
from regard.label_metrics import accuracy
from regard.models import build
from regard.models.bert import Classifier
from regard.models.interface import Model
from regard.reading.classify import Labeller
from regard.text.corpus import Corpus
from regard.text.labelled import Labelled, LabelledLoader, PreparedLabels, prepare_labels
from regard.text.prepare import Learn
from regard.text.tokenizer import Tokenizer, learn_tokenizer
from regard.training.learner import Learner
from regard.training.loop import Sample, Validation
from regard.training.loss import Carried, Loss, Objective


def labels_loss(model: Classifier, batch: Labelled, smoothing: float, carried: Carried = ()) -> Loss:
    """Of every text's label."""
    hidden_BTW = model(batch.ids_BT, batch.lengths_B).hidden_BTW
    scores_BL = model.label(hidden_BTW).float()
    return Loss(
        torch.nn.functional.cross_entropy(scores_BL, batch.labels_B, reduction="sum", label_smoothing=smoothing)
    )


class Labelling(Job):
    """Say which label a text has."""

    name = "labelling"
    scores = ("accuracy",)
    example = 'regard classify DIR "your text"'

    def __init__(self, train: Corpus, valid: Corpus | None, config: Config, learn: Learn | None = None) -> None:
        self._train, self._valid, self.config = train, valid, config
        self._learn = learn or partial(learn_tokenizer, config=config.text)
        self.data, self.valid = train.name, valid.name if valid else "held out"
        self._prepared: PreparedLabels | None = None

    def fingerprints(self) -> dict[str, str]:
        return {"train": self._train.fingerprint(), "valid": self._valid.fingerprint() if self._valid else ""}

    def prepare(self, folder: Path, seed: int, progress: Progress) -> list[str]:
        text = self.config.text
        self._prepared = prepare_labels(self._train, self._valid, text, folder, seed, progress, self._learn)
        return self._prepared.notes

    def about(self) -> dict[str, list[str]]:
        return {"labels": self.prepared.labels}

    @property
    def prepared(self) -> PreparedLabels:
        """The text, once it is ready."""
        assert self._prepared is not None, "prepare comes first"
        return self._prepared

    @property
    def tokenizer(self) -> Tokenizer:
        return self.prepared.tokenizer

    def size(self) -> str:
        return f"{len(self.prepared.train):,} texts with {len(self.prepared.labels)} labels"

    def build(self) -> Model:
        model = build(self.config.model, self.tokenizer.size, len(self.prepared.labels))
        return room_for(model, self.config.text.longest, self.config.text.longest)

    def batches(self) -> LabelledLoader:
        train = self.config.train
        return LabelledLoader(self.prepared.train, self.config.text.longest, train.batch_tokens, train.seed)

    @property
    def objective(self) -> Objective:
        return labels_loss

    def validator(self, learner: Learner) -> Callable[[Model], Validation]:
        shards, train = self.prepared.valid, self.config.train
        batches = LabelledLoader(shards, self.config.text.longest, train.batch_tokens, seed=0)
        pairs = [shards.text(number) for number in range(len(shards))]

        def validate(model: Model) -> Validation:
            labeller = Labeller(cast(Classifier, model), self.tokenizer, self.prepared.labels, learner.device)
            guessed = [found.label for found in labeller.classify([pair.source for pair in pairs])]
            samples = [Sample(pair.source, label, pair.target) for pair, label in zip(pairs, guessed, strict=True)]
            right = accuracy(guessed, [pair.target for pair in pairs])
            return Validation(mean_loss(model, learner, batches), {"accuracy": right}, samples[: train.samples])

        return validate
