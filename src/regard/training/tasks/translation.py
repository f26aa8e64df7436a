"""Learning from pairs: read one text, write the other. Translation, summaries, spelling: the task is in the data."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.config import DecodeConfig
from regard.decode.translator import Translator
from regard.errors import DataError
from regard.evaluation import metrics
from regard.interpret import probe
from regard.interpret.trace import Trace
from regard.models import build
from regard.models.base import LanguageModel, Model, Writer
from regard.text.batching.loader import Loader
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.corpus import Corpus
from regard.text.shards.pair_shards import Chosen, Shards
from regard.text.shards.prepare_pairs import Prepared, Progress, prepare
from regard.training.losses.cross_entropy import Objective, pairs_loss, twice
from regard.training.tasks.base import Job, mean_loss, room_for
from regard.training.trainer import Learner
from regard.training.validation import Sample, Validation


class Pairs(Job[Corpus, Prepared]):
    """Read the source, write the target."""

    name = "pairs"
    scores = ("bleu", "chrf", "exact")
    reads_twice = True
    example = 'regard translate DIR "your text"'

    def make_ready(self, folder: Path, seed: int, progress: Progress) -> Prepared:
        return prepare(self.train, self.valid, self.config.text, folder, seed, progress, self.learn)

    def size(self) -> str:
        return f"{len(self.prepared.train):,} pairs"

    def build(self) -> Model:
        model, longest = build(self.config.model, self.tokenizer.size), self.config.text.longest
        assert isinstance(model, Writer), "pairs are for models that write"
        # What it learns from it can be validated on.
        model.longest_source = max(model.longest_source, longest)
        # A model without an encoder has both sides, each with its end, in one row.
        return room_for(model, 2 * longest + 2 if isinstance(model, LanguageModel) else longest + 1, longest)

    def batches(self, share: Share = WHOLE) -> Loader:
        loader = Loader(self.prepared.train, self.config.train.batch_tokens, self.config.train.seed, share)
        if self.config.text.sampling:
            loader.sample_subwords(self.tokenizer, self.config.text.sampling, self.config.text.longest)
        return loader

    @property
    def objective(self) -> Objective:
        return twice(self.config.train.rdrop) if self.config.train.rdrop else pairs_loss

    def told_of(self, model: Model) -> list[str]:
        every, some = len(self.prepared.valid), len(self._valid(model))
        why = f"longer than this model reads ({_room(model)})"
        return [f"left out {every - some:,} of {every:,} validation pairs, {why}"] if some < every else []

    def _valid(self, model: Model) -> Shards:
        """The pairs to validate on: those that the model can read and write, whatever else was given."""
        shards = self.prepared.valid
        fits = readable(model, shards)
        if not fits.any():
            raise DataError(
                f"There is no pair to validate on: all {len(fits):,} are longer than this model reads ({_room(model)}). "
                "Name others with --valid."
            )
        return shards if fits.all() else Chosen(shards, np.flatnonzero(fits))

    def validator(self, learner: Learner) -> Callable[[Model], Validation]:
        shards, train = self._valid(learner.model), self.config.train
        batches = Loader(shards, train.batch_tokens, seed=0)
        # Spread over the whole set, which may be sorted by length or by origin.
        chosen = np.unique(np.linspace(0, len(shards) - 1, min(train.validate_sentences, len(shards))).astype(int))
        pairs = [shards.text(int(number)) for number in chosen]
        quick = self._quick()

        def validate(model: Model) -> Validation:
            assert isinstance(model, Writer), "pairs are for models that write"
            written = Translator(model, self.tokenizer, quick, learner.device).translate([p.source for p in pairs])
            right = [pair.target for pair in pairs]
            scores = {
                "bleu": metrics.bleu(written, right, interval=False, quiet=True).value,
                "chrf": metrics.chrf(written, right, interval=False).value,
                "exact": metrics.exact_match(written, right),
            }
            samples = [Sample(p.source, text, p.target) for p, text in zip(pairs, written, strict=True)]
            return Validation(mean_loss(model, learner, batches), scores, samples[: train.samples])

        return validate

    def watch(self, learner: Learner) -> probe.Look:
        source, target = self._probe(self._valid(learner.model))
        quick = self._quick()

        def look(model: Model) -> Trace:
            assert isinstance(model, Writer), "pairs are for models that write"
            translator = Translator(model, self.tokenizer, quick, learner.device)
            # A text of the user's own may come without a translation: then it is the model's, as far as it can be shown.
            written = target or probe.beginning(self.tokenizer, translator.translate(source))
            return translator.attention(source, written)

        return look

    def _quick(self) -> DecodeConfig:
        """Greedy: a validation should cost seconds, and compares a model with itself only."""
        return replace(self.config.decode, beam=1, n_best=1, sample=False, mbr=0, shortlist=0)

    def _probe(self, valid: Shards) -> tuple[str, str]:
        if self.config.train.probe:
            source, _, target = (part.strip() for part in self.config.train.probe.partition("|||"))
            return probe.own_text(self.tokenizer, source), probe.own_text(self.tokenizer, target)
        pair = valid.text(probe.fitting(valid.source_lengths, valid.target_lengths))
        return probe.beginning(self.tokenizer, pair.source), probe.beginning(self.tokenizer, pair.target)


def readable(model: Model, shards: Shards) -> npt.NDArray[np.bool_]:
    """Which pairs a model has room for."""
    assert isinstance(model, Writer), "pairs are for models that write"
    sources, targets = (side.astype(np.int64) for side in (shards.source_lengths, shards.target_lengths))
    longest = np.maximum(sources, targets)
    fits: npt.NDArray[np.bool_] = longest <= model.longest_source
    if model.longest is not None:
        # Each side has an end or a beginning; a model without an encoder has both sides in one row.
        fits &= (sources + targets + 2 if isinstance(model, LanguageModel) else longest + 1) <= model.longest
    return fits


def _room(model: Model) -> str:
    assert isinstance(model, Writer), "pairs are for models that write"
    if model.longest is None:
        return f"{model.longest_source:,} tokens a side"
    sides = "both sides" if isinstance(model, LanguageModel) else "a side"
    return f"{model.longest:,} positions for {sides}, model.longest"
