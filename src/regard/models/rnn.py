"""Recurrent language models: each word is predicted from one vector, made of the words before it, one after another.

Three cells. The plain tanh network (Elman 1990; as a language model Mikolov et al. 2010) forgets fast: its gradient
passes through one matrix for each word. The LSTM (Hochreiter and Schmidhuber 1997; with forget gates, Gers et al. 2000)
adds a memory cell that a gate keeps or empties, so that a signal can last; the GRU (Cho et al. 2014) does it with fewer
gates and no cell. The rest follows Zaremba et al. 2014: several layers, with dropout between them and never from word to
word, and Press and Wolf 2017: the same vectors for words read and words written.

A text is longer than what can be held for the backward pass. So it is read in pieces, and `forward` hands on what it
remembers at the end of one piece as the beginning of the next, without gradient: back-propagation through time,
truncated. What is remembered may be older than the piece; only the learning of what to remember reaches no farther back.
With a source, its words are the text's beginning, and the target goes on after them.

Reading goes one way only. A network that also read backwards would have seen the very word it is asked for; what reads
in both directions can only be the encoder of a text that is already there, as in `seq2seq`.

Departures: word vectors are multiplied by sqrt(width), as in our other models, so that shared vectors are of use on both
sides; recurrent matrices begin orthogonal and forget gates open; the GRU's reset comes after the product, as in torch.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.config import GruConfig, LstmConfig, RecurrentConfig, RnnConfig
from regard.layers.blocks import Embedding, xavier
from regard.layers.dropout import Dropout
from regard.layers.prompt import join, targets_of
from regard.layers.recurrent import Kind, Layer, read_on, read_to_the_end, remember_long, stacked
from regard.models.base import LanguageModel, Output, Source, State

KINDS: dict[type[RecurrentConfig], Kind] = {RnnConfig: nn.RNN, LstmConfig: nn.LSTM, GruConfig: nn.GRU}


class RecurrentLm(LanguageModel):
    """Goes on with a text, word by word, by what its layers remember."""

    carries = True

    def __init__(self, config: RecurrentConfig, vocabulary: int) -> None:
        super().__init__()
        kind = KINDS[type(config)]
        self.width, self.parts = config.width, 2 if kind is nn.LSTM else 1
        self.layers = stacked(kind, config.width, config.depth)
        self.dropout = Dropout(config.dropout)
        self.words = nn.Linear(config.width, vocabulary, bias=False)
        xavier(self)
        remember_long(self)
        self.embedding = Embedding(vocabulary, config.width, config.dropout, positions=None)
        if config.tie:
            self.words.weight = self.embedding.table.weight

    def forward(
        self, source: Source, target_BT: Tensor, *, attention: bool = False, carried: tuple[Tensor, ...] = ()
    ) -> Output:
        """`carried` and what the output carries: each part of the state, (depth, B, W), after a row's last column."""
        joined_BJ, place_BT = join(source.ids_BS, source.lengths_B, target_BT)
        before = _by_layer(carried) if carried else self._nothing(joined_BJ)
        hidden_BJW, after = read_on(self.layers, self.dropout, self.embedding(joined_BJ), before)
        hidden_BTW = self.dropout(targets_of(hidden_BJW, place_BT))
        # In float32 whatever the products are in: a cell is a sum over many words.
        return Output(
            hidden_BTW, carried=tuple(torch.stack(part).detach().float() for part in zip(*after, strict=True))
        )

    def start(self, source: Source, *, attention: bool = False) -> "RecurrentLmState":
        if source.ids_BS.shape[1] == 0:
            return RecurrentLmState(self._nothing(source.ids_BS))
        # Packing knows no empty row: such a row reads one word, and forgets it.
        _, ends = read_to_the_end(
            self.layers, self.dropout, self.embedding(source.ids_BS), source.lengths_B.clamp(min=1)
        )
        has_read_B1 = (source.lengths_B > 0)[:, None]
        return RecurrentLmState([tuple(part_BW * has_read_B1 for part_BW in end) for end in ends])

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "RecurrentLmState"]:
        assert isinstance(state, RecurrentLmState), "a state belongs to the model that started it"
        hidden_BTW, layers = read_on(self.layers, self.dropout, self.embedding(last_B[:, None]), state.layers)
        return self.dropout(hidden_BTW)[:, 0], replace(state, layers=layers)

    def _nothing(self, ids_BT: Tensor) -> list[Layer]:
        """What is remembered before the first word."""
        zero_BW = self.words.weight.new_zeros(len(ids_BT), self.width)
        return [(zero_BW,) * self.parts for _ in self.layers]


@dataclass(frozen=True)
class RecurrentLmState:
    """What each layer remembers; there is no attention to show."""

    layers: list[Layer]
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "RecurrentLmState":
        return replace(
            self, layers=[tuple(part_BW.index_select(0, index_B) for part_BW in layer) for layer in self.layers]
        )


def _by_layer(parts_LBW: tuple[Tensor, ...]) -> list[Layer]:
    return list(zip(*(part_LBW.unbind(0) for part_LBW in parts_LBW), strict=True))
