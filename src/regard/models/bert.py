"""BERT (Devlin et al. 2019, arXiv 1810.04805): the Transformer's encoder, trained to guess words that were hidden.

It sees the words on both sides of a gap, so it reads well and cannot write. One body serves three ends: guessing
hidden words and whether one text follows another (section 3.1), labels for whole texts (section 3.2), and vectors.

Departures from the authors' code: nothing is dropped from the weights of attention, only after each sub-layer; new
weights are drawn from the whole normal distribution, which is not cut off at two standard deviations, and are larger
in a narrow model, so that its sums are as large as in a wide one.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from regard.config import BertConfig, ClassifierConfig
from regard.layers import masks, recorder
from regard.layers.blocks import ACTIVATIONS
from regard.layers.dropout import Dropout
from regard.layers.positions import Learned
from regard.layers.transformer import BlockShape, EncoderBlock
from regard.models.base import Output, Reader

SPREAD, WIDTH = 0.02, 768
"""Standard deviation of new weights in the published model, and its width."""


class Bert(Reader):
    """Guesses hidden words, and whether the second text of a row follows the first."""

    def __init__(self, config: BertConfig, vocabulary: int) -> None:
        super().__init__()
        self.longest = config.longest
        self.body = Body(config, vocabulary)
        self.guesser = Guesser(config, vocabulary)
        self.follower = nn.Linear(config.width, 2) if config.next_sentence else None
        begin(self, config.width)

    def forward(
        self, ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None = None, *, attention: bool = False
    ) -> Output:
        return cast(Output, self.body(ids_BT, lengths_B, segments_BT, attention=attention))

    def blocks(self) -> list[nn.Module]:
        return [*self.body.layers]

    def guess(self, hidden_NW: Tensor) -> Tensor:
        """The scores of every word, scores_NV, for the places whose last layer this is."""
        return cast(Tensor, self.guesser(hidden_NW, self.body.embedding.words.weight))

    def follows(self, hidden_BTW: Tensor) -> Tensor:
        """Scores_B2: that the second text comes from elsewhere, that it follows the first."""
        assert self.follower is not None, "this model was made without next_sentence"
        return cast(Tensor, self.follower(self.body.pool(hidden_BTW)))


class Classifier(Reader):
    """One of several labels for the whole text."""

    def __init__(self, config: ClassifierConfig, vocabulary: int, labels: int = 2) -> None:
        super().__init__()
        self.longest = config.longest
        self.body = Body(config, vocabulary)
        self.dropout = Dropout(config.dropout)
        self.labels = nn.Linear(config.width, labels)
        begin(self, config.width)

    def forward(
        self, ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None = None, *, attention: bool = False
    ) -> Output:
        return cast(Output, self.body(ids_BT, lengths_B, segments_BT, attention=attention))

    def blocks(self) -> list[nn.Module]:
        return [*self.body.layers]

    def label(self, hidden_BTW: Tensor) -> Tensor:
        """The scores of every label, scores_BL."""
        return cast(Tensor, self.labels(self.dropout(self.body.pool(hidden_BTW))))


class Body(nn.Module):
    """What all share, under the same names: embedding, layers, and the pooler, which sums a text up in one vector."""

    def __init__(self, config: BertConfig | ClassifierConfig, vocabulary: int) -> None:
        super().__init__()
        self.width = config.width
        self.embedding = Embedding(config, vocabulary)
        shape = BlockShape(
            config.width,
            config.heads,
            config.inner,
            config.dropout,
            config.activation,
            norm_first=False,
            epsilon=config.epsilon,
        )
        layers = nn.ModuleList(EncoderBlock(shape) for _ in range(config.depth))
        self.layers = cast("Sequence[EncoderBlock]", layers)
        self.pooler = nn.Linear(config.width, config.width)

    def forward(self, ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None, *, attention: bool) -> Output:
        real_BT = masks.real(lengths_B, ids_BT.shape[1])
        x_BTW, seen = self.embedding(ids_BT, segments_BT), {}
        for number, layer in enumerate(self.layers):
            x_BTW, weights = layer(x_BTW, real_BT, weights=attention)
            if attention:
                seen[f"encoder.{number}.self"] = weights
        return Output(x_BTW, seen)

    def pool(self, hidden_BTW: Tensor) -> Tensor:
        """The first word stands for the text: it has no meaning of its own."""
        return cast(Tensor, self.pooler(hidden_BTW[:, 0]).tanh())


class Embedding(nn.Module):
    """Word, position and segment, summed and normalised (figure 2)."""

    def __init__(self, config: BertConfig | ClassifierConfig, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, config.width)
        self.positions = Learned(config.width, config.longest)
        self.segments = nn.Embedding(2, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        segment = self.segments.weight[0] if segments_BT is None else self.segments(segments_BT)
        word_BTW, place = self.words(ids_BT), self.positions(0, ids_BT.shape[1])
        x_BTW = self.norm(word_BTW + place + segment)
        recorder.tell(recorder.Embedded(word_BTW, place + segment, x_BTW))
        return cast(Tensor, self.dropout(x_BTW))


class Guesser(nn.Module):
    """A last layer's vector -> a score for every word: how well it fits the word's own vector, plus the word's bias."""

    def __init__(self, config: BertConfig, vocabulary: int) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, hidden_NW: Tensor, words_VW: Tensor) -> Tensor:
        return nn.functional.linear(self.norm(self.activation(self.dense(hidden_NW))), words_VW, self.bias)


def begin(model: nn.Module, width: int) -> None:
    """New weights: small ones, and biases of zero."""
    spread = SPREAD * math.sqrt(WIDTH / width)
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=spread)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
