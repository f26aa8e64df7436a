"""Learning labels: one of several for a whole text."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch

from regard.encode.torch_encoder import ModelReader
from regard.evaluation.label_metrics import accuracy
from regard.interpret import probe
from regard.models import build
from regard.models.base import Model
from regard.models.bert import Classifier
from regard.text.batching.labelled import Labelled, LabelledLoader, PreparedLabels, prepare_labels
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.corpus import Corpus
from regard.text.shards.prepare_pairs import Progress
from regard.training.losses.cross_entropy import Carried, Loss, Objective
from regard.training.losses.rdrop import divergences
from regard.training.tasks.base import Job, mean_loss, room_for
from regard.training.trainer import Learner
from regard.training.validation import Sample, Validation


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
        shards, train, labels = self.prepared.valid, self.config.train, self.prepared.labels
        batches = LabelledLoader(shards, self.config.text.longest, train.batch_tokens, seed=0)
        # As much of a text as the model reads when it is asked, which may be more than it learns from.
        asked = LabelledLoader(shards, _most(learner.model), train.batch_tokens, seed=0)
        pairs = [shards.text(number) for number in range(len(shards))]

        def validate(model: Model) -> Validation:
            guessed = [labels[number] for number in guesses(cast(Classifier, model), asked, learner.device)]
            samples = [Sample(pair.source, label, pair.target) for pair, label in zip(pairs, guessed, strict=True)]
            right = accuracy(guessed, [pair.target for pair in pairs])
            return Validation(mean_loss(model, learner, batches), {"accuracy": right}, samples[: train.samples])

        return validate

    def told_of(self, model: Model) -> list[str]:
        read, lengths = _most(model) - 2, self.prepared.valid.source_lengths
        long = int((lengths > read).sum())
        told = f"{long:,} of {len(lengths):,} validation texts have more than {read:,} tokens; only their beginnings are read"
        return [told] if long else []

    def watch(self, learner: Learner) -> probe.Look:
        valid = self.prepared.valid
        text = probe.own_text(self.tokenizer, self.config.train.probe) or probe.beginning(
            self.tokenizer, valid.text(probe.fitting(valid.source_lengths)).source
        )
        return lambda model: ModelReader(cast(Classifier, model), self.tokenizer, learner.device).attention(text)


@torch.inference_mode()
def guesses(model: Classifier, texts: LabelledLoader, device: torch.device) -> list[int]:
    """The number of the likeliest label of each text, in the texts' order."""
    model.eval()
    found: dict[int, int] = {}
    for batch in (batch.to(device) for batch in texts.batches(epoch=0)):
        scores_BL = model.label(model(batch.ids_BT, batch.lengths_B).hidden_BTW)
        found |= zip(batch.numbers, scores_BL.argmax(-1).tolist(), strict=True)
    return [found[number] for number in range(len(found))]


def _most(model: Model) -> int:
    """Tokens of a text that are read, begin and end counted."""
    assert model.longest is not None, "BERT's positions are learned"
    return model.longest
