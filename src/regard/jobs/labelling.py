"""Learning labels: one of several for a whole text."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch

from regard.jobs.interface import Job, mean_loss, room_for
from regard.label_metrics import accuracy
from regard.layers.agreement import divergences
from regard.models import build
from regard.models.bert import Classifier
from regard.models.interface import Model
from regard.reading.classify import Labeller
from regard.reading.reader import ModelReader
from regard.see import probe
from regard.text.corpus import Corpus
from regard.text.labelled import Labelled, LabelledLoader, PreparedLabels, prepare_labels
from regard.text.prepare import Progress
from regard.text.share import WHOLE, Share
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


def twice(alpha: float) -> Objective:
    """The same with R-Drop: in training, each text is read twice, and what dropout makes of it must agree."""

    def objective(model: Classifier, batch: Labelled, smoothing: float, carried: Carried = ()) -> Loss:
        if not model.training:
            return labels_loss(model, batch, smoothing)
        hidden_BTW = model(torch.cat([batch.ids_BT] * 2), torch.cat([batch.lengths_B] * 2)).hidden_BTW
        first_BL, second_BL = model.label(hidden_BTW).float().chunk(2)
        losses = [
            torch.nn.functional.cross_entropy(scores_BL, batch.labels_B, reduction="sum", label_smoothing=smoothing)
            for scores_BL in (first_BL, second_BL)
        ]
        return Loss(torch.stack(losses).mean() + alpha / 4 * divergences(first_BL, second_BL).sum())

    return objective


class Labelling(Job[Corpus, PreparedLabels]):
    """Say which label a text has."""

    name = "labelling"
    scores = ("accuracy",)
    reads_twice = True
    example = 'regard classify DIR "your text"'

    def make_ready(self, folder: Path, seed: int, progress: Progress) -> PreparedLabels:
        return prepare_labels(self.train, self.valid, self.config.text, folder, seed, progress, self.learn)

    def about(self) -> dict[str, list[str]]:
        return {"labels": self.prepared.labels}

    def size(self) -> str:
        return f"{len(self.prepared.train):,} texts with {len(self.prepared.labels)} labels"

    def build(self) -> Model:
        model = build(self.config.model, self.tokenizer.size, len(self.prepared.labels))
        return room_for(model, self.config.text.longest, self.config.text.longest)

    def batches(self, share: Share = WHOLE) -> LabelledLoader:
        train = self.config.train
        return LabelledLoader(self.prepared.train, self.config.text.longest, train.batch_tokens, train.seed, share)

    @property
    def objective(self) -> Objective:
        return twice(self.config.train.rdrop) if self.config.train.rdrop else labels_loss

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

    def watch(self, learner: Learner) -> probe.Look:
        valid = self.prepared.valid
        text = probe.own_text(self.tokenizer, self.config.train.probe) or probe.beginning(
            self.tokenizer, valid.text(probe.fitting(valid.source_lengths)).source
        )
        return lambda model: ModelReader(cast(Classifier, model), self.tokenizer, learner.device).attention(text)
