"""Recurrent models: a network that reads the source word by word, and one that writes the target word by word.

Three of them, in the order in which they were found. They share the encoder, the bridge and the contract, and differ
in what the decoder knows of the source: the encoder's last state (Seq2Seq); also what it looks at before it reads a
word (Bahdanau), or after (Luong).

`write` goes from words and a state to hidden vectors and the next state. Training gives it all words at once, and a
step gives it one: the same computation.

Shape letters besides those of the interface: G gates of a cell, side by side · N directions.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.config import BahdanauConfig, LuongConfig, Seq2SeqConfig
from regard.layers import masks, recorder
from regard.layers.blocks import Embedding, xavier
from regard.layers.dropout import Dropout, dropout_mask
from regard.layers.recurrent import Layer, keep, read_on, read_to_the_end, remember_long, stacked
from regard.layers.recurrent_cells import CELLS
from regard.models.base import Output, Source, State, Writer


class Recurrent(Writer):
    """What the three have in common: everything but how words are written."""

    def __init__(
        self,
        config: Seq2SeqConfig,
        vocabulary: int,
        decoder: "Stack | Cells",
        score: "Additive | Product | None" = None,
        mix: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.bridge = Bridge(config)
        self.decoder, self.score, self.mix = decoder, score, mix
        self.dropout = Dropout(config.dropout)
        self.words = nn.Linear(config.width, vocabulary, bias=False)
        xavier(self)
        remember_long(self)
        if isinstance(decoder, Cells):
            decoder.remember_long()
        self.source_embedding = Embedding(vocabulary, config.width, config.dropout, None)
        self.target_embedding = self.source_embedding
        if config.tie != "all":
            self.target_embedding = Embedding(vocabulary, config.width, config.dropout, None)
        if config.tie != "none":
            self.words.weight = self.target_embedding.table.weight

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        state = self.start(source)
        hidden_BTW, _, weights_BTS = self.write(self.target_embedding(target_BT), state)
        seen = {"decoder.source": weights_BTS[:, None]} if attention and weights_BTS is not None else {}
        return Output(self.dropout(hidden_BTW), seen)

    def start(self, source: Source, *, attention: bool = False) -> "RecurrentState":
        memory_BSW, ends = self.encoder(self.source_embedding(source.ids_BS), source.lengths_B)
        state = RecurrentState(self.bridge(ends), attention=attention)
        if self.score is None:
            return state
        real_BS = masks.real(source.lengths_B, source.ids_BS.shape[1])
        return replace(state, memory_BSW=memory_BSW, key_BSW=self.score.key(memory_BSW), real_BS=real_BS)

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "RecurrentState"]:
        assert isinstance(state, RecurrentState), "a state belongs to the model that started it"
        hidden_BTW, new, weights_BTS = self.write(self.target_embedding(last_B[:, None]), state)
        attention_BS = weights_BTS[:, 0] if state.attention and weights_BTS is not None else None
        return self.dropout(hidden_BTW)[:, 0], replace(new, attention_BS=attention_BS)

    @abstractmethod
    def write(self, x_BTW: Tensor, state: "RecurrentState") -> tuple[Tensor, "RecurrentState", Tensor | None]:
        """Read these words after those that the state remembers: hidden_BTW, the next state, where each word looked."""

    def look(self, query_BQW: Tensor, state: "RecurrentState") -> tuple[Tensor, Tensor]:
        """A mean of the source's words, weighted by how well each fits the query; and the weights."""
        assert self.score is not None and state.memory_BSW is not None, "what looks starts with something to look at"
        scores_BQS = self.score(query_BQW, state.key_BSW).float()
        if state.real_BS is not None:
            scores_BQS = scores_BQS.masked_fill(~state.real_BS[:, None], -math.inf)
        weights_BQS = scores_BQS.softmax(-1)
        context_BQW = weights_BQS.to(state.memory_BSW.dtype) @ state.memory_BSW
        if recorder.watched():
            recorder.tell(self._seen(query_BQW, state, weights_BQS, context_BQW))
        return recorder.heard(self.score, context_BQW[:, None])[:, 0], weights_BQS

    def _seen(
        self, query_BQW: Tensor, state: "RecurrentState", weights_BQS: Tensor, context_BQW: Tensor
    ) -> recorder.Look:
        assert self.score is not None and state.key_BSW is not None and state.memory_BSW is not None
        fit_W = None
        if isinstance(self.score, Additive):
            query_BQW, fit_W = self.score.query(query_BQW), self.score.v.weight[0]
        may_look = state.real_BS[:, None, None] if state.real_BS is not None else None
        return recorder.Look(
            self.score,
            query_BQW[:, None],
            state.key_BSW[:, None],
            state.memory_BSW[:, None],
            weights_BQS[:, None],
            context_BQW[:, None],
            may_look=may_look,
            fit_D=fit_W,
        )


class Seq2Seq(Recurrent):
    """Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks"; with GRUs, nearly Cho et al. 2014.

    All that the decoder learns of the source is its first state. Departures: the source is read in both directions
    instead of reversed, and a learned bridge joins the two; Cho's decoder sees the source's vector at every word, ours
    only before the first.
    """

    decoder: "Stack"

    def __init__(self, config: Seq2SeqConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary, Stack(config))

    def write(self, x_BTW: Tensor, state: "RecurrentState") -> tuple[Tensor, "RecurrentState", Tensor | None]:
        hidden_BTW, layers = self.decoder(x_BTW, state.layers)
        return hidden_BTW, replace(state, layers=layers), None


class Bahdanau(Recurrent):
    """Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and Translate".

    The top layer's last state looks at the source, and what it finds is read together with the word. So no word can be
    read before the one before it, and even training goes word by word. Departures: several layers, of either cell; the
    first states come from the encoder's last ones in both directions, the paper's from the backward one alone; the
    output layer sees the state after the word, as in the paper's equation 4, where its appendix A.2.2 has the one
    before.
    """

    decoder: "Cells"
    mix: nn.Linear

    def __init__(self, config: BahdanauConfig, vocabulary: int) -> None:
        mix = nn.Linear(3 * config.width, 2 * config.width)
        super().__init__(config, vocabulary, Cells(config), Additive(config.width), mix)

    def write(self, x_BTW: Tensor, state: "RecurrentState") -> tuple[Tensor, "RecurrentState", Tensor | None]:
        layers, tops, contexts, seen = state.layers, [], [], []
        for gates_BG, kept in self.decoder.prepare(x_BTW):
            context_B1W, weights_B1S = self.look(layers[-1][0][:, None], state)
            layers = self.decoder(gates_BG, context_B1W[:, 0], layers, kept)
            tops.append(layers[-1][0])
            contexts.append(context_B1W)
            seen.append(weights_B1S)
        # A maxout layer of state, word and context (A.2.2): of each pair of numbers, the larger.
        mixed_BTW = self.mix(torch.cat([torch.stack(tops, 1), x_BTW, torch.cat(contexts, 1)], 2))
        return torch.maximum(*mixed_BTW.chunk(2, 2)), replace(state, layers=layers), torch.cat(seen, 1)


class Luong(Recurrent):
    """Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation": its global attention.

    With input feeding (section 3.3) a word is read together with the attentional vector of the one before, so that even
    training goes word by word; without it, all words are read at once, and then all look. Departures: the source is
    read in both directions instead of reversed, and a learned bridge joins the two.
    """

    mix: nn.Linear

    def __init__(self, config: LuongConfig, vocabulary: int) -> None:
        decoder = Cells(config) if config.input_feeding else Stack(config)
        mix = nn.Linear(2 * config.width, config.width)
        super().__init__(config, vocabulary, decoder, SCORES[config.score](config.width), mix)

    def write(self, x_BTW: Tensor, state: "RecurrentState") -> tuple[Tensor, "RecurrentState", Tensor | None]:
        if isinstance(self.decoder, Stack):
            top_BTW, layers = self.decoder(x_BTW, state.layers)
            hidden_BTW, weights_BTS = self.attentional(top_BTW, state)
            return hidden_BTW, replace(state, layers=layers), weights_BTS
        layers, hidden, seen = state.layers, [], []
        fed_BW = torch.zeros_like(layers[-1][0]) if state.fed_BW is None else state.fed_BW
        for gates_BG, kept in self.decoder.prepare(x_BTW):
            layers = self.decoder(gates_BG, fed_BW, layers, kept)
            fed_B1W, weights_B1S = self.attentional(layers[-1][0][:, None], state)
            fed_BW = fed_B1W[:, 0]
            hidden.append(fed_B1W)
            seen.append(weights_B1S)
        return torch.cat(hidden, 1), replace(state, layers=layers, fed_BW=fed_BW), torch.cat(seen, 1)

    def attentional(self, top_BTW: Tensor, state: "RecurrentState") -> tuple[Tensor, Tensor]:
        """h~ = tanh(W_c [c; h]) (equation 5), with a bias; and where it looked."""
        context_BTW, weights_BTS = self.look(top_BTW, state)
        return self.mix(torch.cat([context_BTW, top_BTW], 2)).tanh(), weights_BTS


class Encoder(nn.Module):
    """Recurrent layers over the source; the directions share the width, so that together they have all of it."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        kind = CELLS[config.cell].layer
        self.layers = stacked(kind, config.width, config.depth, bidirectional=config.bidirectional)
        self.dropout = Dropout(config.dropout)

    def forward(self, x_BSW: Tensor, lengths_B: Tensor) -> tuple[Tensor, list[Layer]]:
        """The memory, and what each layer remembers at the end."""
        return read_to_the_end(self.layers, self.dropout, x_BSW, lengths_B)


class Bridge(nn.Module):
    """The encoder's last states -> the decoder's first: tanh(W x + b) for each part of each layer (Bahdanau, A.2.2)."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        count = config.depth * CELLS[config.cell].parts
        self.linears = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(count))

    def forward(self, ends: list[Layer]) -> list[Layer]:
        linears = iter(self.linears)
        # In float32 whatever the products are in: a cell is a sum over many words.
        return [tuple(next(linears)(part_BW).float().tanh() for part_BW in end) for end in ends]


class Stack(nn.Module):
    """A decoder's layers over all words at once: those that read nothing but words."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.layers = stacked(CELLS[config.cell].layer, config.width, config.depth)
        self.dropout = Dropout(config.dropout)

    def forward(self, x_BTW: Tensor, layers: list[Layer]) -> tuple[Tensor, list[Layer]]:
        return read_on(self.layers, self.dropout, x_BTW, layers)


class Cells(nn.Module):
    """A decoder's layers one word at a time: the first reads each word together with something fed back."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        gates, self.advance = CELLS[config.cell].gates * config.width, CELLS[config.cell].advance
        inputs, agains = ([nn.Linear(config.width, gates) for _ in range(config.depth)] for _ in range(2))
        self.inputs = cast("Sequence[nn.Linear]", nn.ModuleList(inputs))
        self.agains = cast("Sequence[nn.Linear]", nn.ModuleList(agains))
        self.fed = nn.Linear(config.width, gates, bias=False)
        self.dropout = Dropout(config.dropout)

    def prepare(self, x_BTW: Tensor) -> list[tuple[Tensor, Sequence[Tensor]]]:
        """For each word its share of the first layer's gates, and what dropout keeps between layers.

        Neither depends on other words, so both are made for all at once, and the loop is left with less to do.
        """
        gates_TBG = self.inputs[0](x_BTW).transpose(0, 1)
        kept: list[Sequence[Tensor]] = [()] * len(gates_TBG)
        if self.dropout.active:
            x_TBW = x_BTW.transpose(0, 1)
            masks_TBW = [dropout_mask(x_TBW, self.dropout.rate).unbind(0) for _ in self.inputs[1:]]
            kept = list(zip(*masks_TBW, strict=True)) or kept
        return list(zip(gates_TBG.unbind(0), kept, strict=True))

    def forward(self, gates_BG: Tensor, fed_BW: Tensor, layers: list[Layer], kept: Sequence[Tensor]) -> list[Layer]:
        """One word further."""
        gates_BG = gates_BG + self.fed(fed_BW)
        new: list[Layer] = []
        for number, (again, layer) in enumerate(zip(self.agains, layers, strict=True)):
            if number:
                below_BW = new[-1][0] * kept[number - 1] if kept else new[-1][0]
                gates_BG = self.inputs[number](below_BW)
            new.append(self.advance(gates_BG, again(layer[0]), layer))
        return new

    def remember_long(self) -> None:
        """Begin as torch's layers do: by keeping what was read."""
        for words, again in zip(self.inputs, self.agains, strict=True):
            keep(again.weight, words.bias)


class Additive(nn.Module):
    """v . tanh(W s + U h) (Bahdanau, A.1.2); Luong's "concat" is the same, with W and U side by side in one matrix.

    It holds `width` numbers for each pair of a query and a word, where a product holds one.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, 1, bias=False)

    def forward(self, query_BQW: Tensor, key_BSW: Tensor) -> Tensor:
        fit_BQSW = (self.query(query_BQW)[:, :, None] + key_BSW[:, None]).tanh()
        return cast(Tensor, self.v(fit_BQSW)[..., 0])


class Product(nn.Module):
    """s . h, or with a learned matrix s . W h: Luong's "dot" and "general" (section 3.1)."""

    def __init__(self, key: nn.Module) -> None:
        super().__init__()
        self.key = key

    def forward(self, query_BQW: Tensor, key_BSW: Tensor) -> Tensor:
        return query_BQW.to(key_BSW.dtype) @ key_BSW.mT


SCORES: dict[str, Callable[[int], Additive | Product]] = {
    "dot": lambda width: Product(nn.Identity()),
    "general": lambda width: Product(nn.Linear(width, width, bias=False)),
    "concat": Additive,
}


@dataclass(frozen=True)
class RecurrentState:
    """What each layer of the decoder remembers; and what else the model needs between two words."""

    layers: list[Layer]
    memory_BSW: Tensor | None = None
    """The source, and what its words' scores are made from, if the model looks at it."""
    key_BSW: Tensor | None = None
    real_BS: Tensor | None = None
    """None if nothing is padded."""
    fed_BW: Tensor | None = None
    """The attentional vector of the last word, if there was one."""
    attention: bool = False
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "RecurrentState":
        layers = [tuple(part_BW.index_select(0, index_B) for part_BW in layer) for layer in self.layers]
        others: dict[str, Any] = {k: v.index_select(0, index_B) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, layers=layers, **others)
