"""Learning to read: guess hidden words from both sides, and whether one text follows another."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch.nn.functional import cross_entropy

from regard.config import BertConfig, Config
from regard.encode.torch_encoder import ModelReader
from regard.interpret import probe
from regard.models import build
from regard.models.base import Model
from regard.models.bert import Bert
from regard.text.batching.masking import Masked, MaskedLoader
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.plain_text import Documents
from regard.text.shards.prepare_pairs import Learn, Progress
from regard.text.shards.prepare_text import PreparedText, prepare_text
from regard.text.shards.token_stream import Stream
from regard.text.tokenizers.tokenizer import learn_tokenizer
from regard.training.losses.cross_entropy import Carried, Loss, Objective
from regard.training.tasks.base import Job, room_for
from regard.training.trainer import Learner
from regard.training.validation import Sample, Validation


def masked_loss(model: Bert, batch: Masked, smoothing: float, carried: Carried = ()) -> Loss:
    """Of every hidden word; and of every row's answer to whether it goes on, as often as it has hidden words.

    So both weigh the same, and the loss of a batch is the sum of the losses of its rows.
    """
    hidden_BTW = model(batch.ids_BT, batch.lengths_B, batch.segments_BT).hidden_BTW
    scores_NV = model.guess(hidden_BTW.flatten(0, 1)[batch.guessed_N]).float()
    total = cross_entropy(scores_NV, batch.words_N, reduction="sum", label_smoothing=smoothing)
    if model.follower is not None:
        words_B = torch.bincount(batch.guessed_N // batch.ids_BT.shape[1], minlength=len(batch.ids_BT))
        scores_B2 = model.follows(hidden_BTW).float()
        total = total + cross_entropy(scores_B2, batch.follows_B, reduction="none") @ words_B.float()
    return Loss(total)


class Masking(Job[Documents, PreparedText]):
    """Guess hidden words."""

    name = "masking"
    scores = ("accuracy",)
    example = 'regard fill DIR "Text with a <mask> in it."'

    def __init__(self, train: Documents, valid: Documents | None, config: Config, learn: Learn | None = None) -> None:
        assert isinstance(config.model, BertConfig), "only BERT guesses hidden words"
        super().__init__(train, valid, config, learn or partial(learn_tokenizer, config=config.text, mask=True))
        self._model = config.model

    def make_ready(self, folder: Path, seed: int, progress: Progress) -> PreparedText:
        return prepare_text(self.train, self.valid, self.config.text, folder, seed, progress, self.learn)

    def size(self) -> str:
        return f"{len(self.prepared.train):,} tokens of text"

    def build(self) -> Model:
        model = build(self.config.model, self.tokenizer.size)
        return room_for(model, self.config.text.longest, self.config.text.longest)

    def batches(self, share: Share = WHOLE) -> MaskedLoader:
        return self._loader(self.prepared.train, self.config.train.seed, share)

    def _loader(self, stream: Stream, seed: int, share: Share = WHOLE) -> MaskedLoader:
        return MaskedLoader(
            stream.ids,
            self.tokenizer,
            longest=self.config.text.longest,
            batch_tokens=self.config.train.batch_tokens,
            seed=seed,
            share=self._model.hidden_words,
            whole_words=self._model.whole_words,
            next_sentence=self._model.next_sentence,
            our_share=share,
        )

    @property
    def objective(self) -> Objective:
        return masked_loss

    def validator(self, learner: Learner) -> Callable[[Model], Validation]:
        batches = list(self._loader(self.prepared.valid, seed=0).batches(0))

        @torch.no_grad()
        def validate(model: Model) -> Validation:
            bert = cast(Bert, model.eval())
            loss, right, follow, words, rows = 0.0, 0, 0, 0, 0
            for batch in (batch.to(learner.device) for batch in batches):
                with learner.computing():
                    hidden_BTW = bert(batch.ids_BT, batch.lengths_B, batch.segments_BT).hidden_BTW
                    scores_NV = bert.guess(hidden_BTW.flatten(0, 1)[batch.guessed_N]).float()
                    if bert.follower is not None:
                        follow += int((bert.follows(hidden_BTW).argmax(-1) == batch.follows_B).sum())
                loss += float(cross_entropy(scores_NV, batch.words_N, reduction="sum"))
                right += int((scores_NV.argmax(-1) == batch.words_N).sum())
                words, rows = words + batch.tokens, rows + len(batch.lengths_B)
            scores = {"accuracy": 100 * right / words}
            if bert.follower is not None:
                scores["next_sentence"] = 100 * follow / rows
            return Validation(loss / words, scores, self._samples(bert, batches[0].to(learner.device)))

        return validate

    def watch(self, learner: Learner) -> probe.Look:
        text = probe.own_text(self.tokenizer, self.config.train.probe) or probe.passage(
            self.tokenizer, self.prepared.valid.ids
        )
        return lambda model: ModelReader(cast(Bert, model), self.tokenizer, learner.device).attention(text)

    def _samples(self, model: Bert, batch: Masked) -> list[Sample]:
        """Some rows: the text with its gaps, the guesses, and what stood there."""
        hidden_BTW = model(batch.ids_BT, batch.lengths_B, batch.segments_BT).hidden_BTW
        row_N = batch.guessed_N // batch.ids_BT.shape[1]
        samples = []
        for row in range(min(self.config.train.samples, len(batch.lengths_B))):
            own = row_N == row
            guessed = model.guess(hidden_BTW.flatten(0, 1)[batch.guessed_N[own]]).argmax(-1)
            texts = (batch.ids_BT[row, : batch.lengths_B[row]], guessed, batch.words_N[own])
            samples.append(Sample(*(self.tokenizer.decode(ids.tolist()) for ids in texts)))
        return samples
