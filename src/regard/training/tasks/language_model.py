"""Learning from running text: predict each word from the words before it. The result goes on with any beginning."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from regard.decode.generator import Author
from regard.interpret import probe
from regard.interpret.trace import Trace
from regard.models import build
from regard.models.base import LanguageModel, Model
from regard.text.batching.passages import PassageLoader
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.plain_text import Documents
from regard.text.shards.prepare_pairs import Progress
from regard.text.shards.prepare_text import PreparedText, prepare_text
from regard.text.shards.token_stream import Stream
from regard.training.losses.cross_entropy import Objective, passages_loss
from regard.training.tasks.base import Job, mean_loss, room_for
from regard.training.trainer import Learner
from regard.training.validation import Sample, Validation

# Of a sample: what it goes on from, and how much it writes.
PROMPT, WRITTEN = 12, 40


class Text(Job[Documents, PreparedText]):
    """Go on with a text."""

    name = "text"
    scores = ("bits_per_byte",)
    example = 'regard write DIR "your beginning"'

    def make_ready(self, folder: Path, seed: int, progress: Progress) -> PreparedText:
        return prepare_text(self.train, self.valid, self.config.text, folder, seed, progress, self.learn)

    def size(self) -> str:
        return f"{len(self.prepared.train):,} tokens of text"

    def build(self) -> Model:
        model = build(self.config.model, self.tokenizer.size)
        assert isinstance(model, LanguageModel), "running text is for models of language"
        self._carries = model.carries
        return room_for(model, self.config.text.longest, self.config.text.longest)

    def batches(self, share: Share = WHOLE) -> PassageLoader:
        return self._loader(self.prepared.train, shuffle=True, share=share)

    def _loader(self, stream: Stream, *, shuffle: bool, share: Share = WHOLE) -> PassageLoader:
        text, train = self.config.text, self.config.train
        return PassageLoader(
            stream, text.longest, train.batch_tokens, train.seed, carried=self._carries, shuffle=shuffle, share=share
        )

    @property
    def objective(self) -> Objective:
        return passages_loss

    def validator(self, learner: Learner) -> Callable[[Model], Validation]:
        stream, train = self.prepared.valid, self.config.train
        batches = self._loader(stream, shuffle=False)
        tokens = sum(batch.tokens for batch in batches.batches(0))
        prompts = self._prompts(stream, train.samples)
        length = min(PROMPT + WRITTEN, self.config.text.longest - 1)
        sampling = replace(self.config.decode, beam=1, n_best=1, sample=True, max_length=length)

        def validate(model: Model) -> Validation:
            assert isinstance(model, LanguageModel), "running text is for models of language"
            loss = mean_loss(model, learner, batches)
            author = Author(model, self.tokenizer, sampling, learner.device, window=self.config.text.longest)
            samples = [Sample(prompt, author.write(prompt)) for prompt in prompts]
            return Validation(loss, {"bits_per_byte": loss * tokens / math.log(2) / stream.bytes}, samples)

        return validate

    def watch(self, learner: Learner) -> probe.Look:
        text = probe.own_text(self.tokenizer, self.config.train.probe) or probe.passage(
            self.tokenizer, self.prepared.valid.ids
        )

        def look(model: Model) -> Trace:
            assert isinstance(model, LanguageModel), "running text is for models of language"
            return Author(model, self.tokenizer, device=learner.device, window=self.config.text.longest).attention(text)

        return look

    def _prompts(self, stream: Stream, count: int) -> list[str]:
        """The beginnings of some passages, spread over the text to validate on."""
        length = min(PROMPT, self.config.text.longest // 2, len(stream) // 2)
        starts = [number * (len(stream) - length) // max(1, count) for number in range(count)]
        return [self.tokenizer.decode([int(i) for i in stream.ids[start : start + length]]) for start in starts]
