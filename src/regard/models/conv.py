"""Convolutional sequence to sequence (Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", figure 1).

No word waits for another one: a layer sees a window of words, the next layer a window of windows, and every layer of
the decoder looks at the source by an attention of its own.

Departures from the paper: encoder gradients are not scaled down by the number of attentions (section 3.4), as Adam,
which trains here, divides such a factor away; weights are not normalised, which changed nothing measurable with Adam,
and so remain plain tensors, ready at every step of writing; all layers have one width; word vectors may be shared with
each other and with the last layer, as in the Transformer. Where the authors' code does more than their equations (a
projection of the context, sums within attention scaled too), the equations are followed. Two settings leave the paper, for
texts longer than any in training: `positions = "none"` and `scaled = false`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ConvConfig
from regard.layers import masks, recorder
from regard.layers.attention import attend
from regard.layers.dropout import Dropout
from regard.layers.positions import Learned
from regard.models.base import Output, Source, State, Writer

# The sum of two numbers of equal variance has twice that variance; times this, it has the same (section 3.4).
HALVE = math.sqrt(0.5)


class Conv(Writer):
    """Reads a source with the encoder; writes a target with the decoder, remembering a kernel's width of past."""

    def __init__(self, config: ConvConfig, vocabulary: int) -> None:
        super().__init__()
        self.longest = config.longest if config.positions == "learned" else None
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.source_embedding = Embedding(config, vocabulary)
        self.target_embedding = self.source_embedding if config.tie == "all" else Embedding(config, vocabulary)
        self.words = _linear(config.width, vocabulary, gain=_keep(config), bias=False)
        if config.tie != "none":
            self.words.weight = self.target_embedding.table.weight

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        memory = self.encoder(self.source_embedding(source.ids_BS), source.lengths_B)
        # A whole sentence is a step of many words from an empty past: training and writing run the same lines.
        hidden_BTW, _, seen = self.decoder(self.target_embedding(target_BT), self.decoder.start(memory), memory)
        named = {f"decoder.{number}.source": weights for number, weights in enumerate(seen)}
        return Output(hidden_BTW, named if attention else {})

    def blocks(self) -> list[nn.Module]:
        return [*self.encoder.layers, *self.decoder.layers]

    def start(self, source: Source, *, attention: bool = False) -> "ConvState":
        memory = self.encoder(self.source_embedding(source.ids_BS), source.lengths_B)
        return ConvState(self.decoder.start(memory), memory, position=0, attention=attention)

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "ConvState"]:
        assert isinstance(state, ConvState), "a state belongs to the model that started it"
        x_BTW = self.target_embedding(last_B[:, None], first=state.position)
        hidden_BTW, past, seen = self.decoder(x_BTW, state.past, state.memory)
        # Every layer looks for something else; where the word looked is the mean of them all, as in the authors' code.
        attention_BS = torch.stack(seen).mean(0)[:, 0, 0] if state.attention else None
        return hidden_BTW[:, 0], replace(state, past=past, position=state.position + 1, attention_BS=attention_BS)

    def report(self, source: Source, target_BT: Tensor) -> dict[str, Tensor]:
        return {
            "source_words_in_view": torch.tensor(self.encoder.receptive_field),
            "target_words_in_view": torch.tensor(self.decoder.receptive_field),
        }


class Memory(NamedTuple):
    """The source as every decoder layer finds it."""

    key_BSW: Tensor
    """What is compared: the encoder's last layer, z."""
    value_BSW: Tensor
    """What is mixed: z + e, a word in its surroundings and the word itself; scaled, see `Encoder`."""
    real_BS: Tensor | None


class Encoder(nn.Module):
    """Gated convolutions in which every source word sees as many words before it as after it."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.enter = _linear(config.width, config.width, gain=_keep(config))
        layers = nn.ModuleList(GatedConvolution(config) for _ in range(config.depth))
        self.layers = cast("Sequence[GatedConvolution]", layers)
        self.leave = _linear(config.width, config.width)
        self.dropout = Dropout(config.dropout)
        self.scaled = config.scaled

    @property
    def receptive_field(self) -> int:
        """How many words the last layer sees around each word, itself included: 1 + depth * (kernel - 1)."""
        return _receptive_field(self.layers)

    def forward(self, embedded_BSW: Tensor, lengths_B: Tensor) -> Memory:
        real_BS = masks.real(lengths_B, embedded_BSW.shape[1])
        x_BSW = self.enter(embedded_BSW)
        for convolution in self.layers:
            inner_BSW = self.dropout(x_BSW)
            # Beyond its end a sentence must look in every layer as if nothing were there: a window reaches over it.
            if real_BS is not None:
                inner_BSW = inner_BSW * real_BS[:, :, None]
            side = (convolution.kernel - 1) // 2
            x_BSW = (x_BSW + convolution(F.pad(inner_BSW, (0, 0, side, side)))) * HALVE
        z_BSW = self.leave(x_BSW)
        value_BSW = z_BSW + embedded_BSW
        # A mean of m vectors has 1/m of their variance. Attention is meant to give back the variance of one of them,
        # so it is scaled by m * sqrt(1/m) = sqrt(m), m being the words without padding (section 3.4). Done here, once
        # for all layers and steps; the mixing is linear. But attention that has learned to look at one word takes no
        # mean, and what it finds in a text longer than any in training is then larger than all that was learned from.
        if self.scaled:
            value_BSW = value_BSW * lengths_B.to(embedded_BSW.dtype).sqrt()[:, None, None]
        return Memory(z_BSW, value_BSW, real_BS)


class Decoder(nn.Module):
    """Gated convolutions over the target words so far, each followed by attention to the source."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.enter = _linear(config.width, config.width, gain=_keep(config))
        layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_depth or config.depth))
        self.layers = cast("Sequence[DecoderLayer]", layers)
        self.leave = _linear(config.width, config.width)
        self.dropout = Dropout(config.dropout)

    @property
    def receptive_field(self) -> int:
        """How many target words the last layer sees, the latest included: 1 + depth * (kernel - 1)."""
        return _receptive_field([layer.convolution for layer in self.layers])

    def start(self, memory: Memory) -> list[Tensor]:
        """The past of a sentence that has not begun: zeros, which are the padding at the left of each layer."""
        batch, _, width = memory.key_BSW.shape
        return [memory.key_BSW.new_zeros(batch, layer.convolution.kernel - 1, width) for layer in self.layers]

    def forward(
        self, embedded_BTW: Tensor, past: list[Tensor], memory: Memory
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Words that follow the past -> the last layer, the new past, and each layer's weights_BHTS."""
        x_BTW = self.enter(embedded_BTW)
        new_past, seen = [], []
        for layer, past_BPW in zip(self.layers, past, strict=True):
            x_BTW, past_BPW, weights_BHTS = layer(x_BTW, past_BPW, embedded_BTW, memory)
            new_past.append(past_BPW)
            seen.append(weights_BHTS)
        return self.dropout(self.leave(x_BTW)), new_past, seen


class DecoderLayer(nn.Module):
    """A convolution that sees no later word, and attention to the source; both within a residual connection."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config)
        self.query = _linear(config.width, config.width)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x_BTW: Tensor, past_BPW: Tensor, embedded_BTW: Tensor, memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor]:
        inner_BPW = torch.cat([past_BPW, self.dropout(x_BTW)], 1)
        h_BTW = self.convolution(inner_BPW)
        context_BTW, weights_BHTS = self.look(h_BTW, embedded_BTW, memory)
        x_BTW = (x_BTW + h_BTW + context_BTW) * HALVE
        return x_BTW, inner_BPW[:, x_BTW.shape[1] :], weights_BHTS

    def look(self, h_BTW: Tensor, embedded_BTW: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Section 3.3, equations 1 and 2: d = W h + b + g, where g is the embedding of the word that h follows.

        Weights are the softmax of d . z, not scaled; they mix z + e. There is one head, and holding its weights costs
        no more time than the fused kernel, measured with 32 and with 256 words; so there is one path.
        """
        query_BTW = self.query(h_BTW) + embedded_BTW
        may_look = memory.real_BS[:, None, None, :] if memory.real_BS is not None else None
        asked = query_BTW[:, None], memory.key_BSW[:, None], memory.value_BSW[:, None]
        context_BHTW, weights_BHTS = attend(*asked, may_look, scale=1.0)
        recorder.tell(recorder.Look(self, *asked, weights_BHTS, context_BHTW, may_look=may_look))
        return recorder.heard(self, context_BHTW)[:, 0], weights_BHTS


class GatedConvolution(nn.Module):
    """A * sigmoid(B), where [A B] = W X + b over each window X of `kernel` words (section 3.2).

    The window's words are laid side by side and multiplied as one vector, not given to nn.Conv1d: that wants the width
    before the words, and took longer forward and back, by a twentieth in float32 and by a tenth to a fifth in bfloat16
    (kernel 3, width 256 and 128, 4,096 words, one core). So a step of writing is the very same product, too.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.kernel = config.kernel
        # The gate, about a half at first, leaves a quarter of the variance; hence four times as much of it.
        self.product = _linear(config.kernel * config.width, 2 * config.width, gain=4 * _keep(config))

    def forward(self, x_BPW: Tensor) -> Tensor:
        """Words with their padding or past -> one vector for each window, kernel - 1 fewer."""
        windows = x_BPW.shape[1] - self.kernel + 1
        side_by_side = torch.cat([x_BPW[:, first : first + windows] for first in range(self.kernel)], -1)
        return F.glu(self.product(side_by_side), -1)


class Embedding(nn.Module):
    """e = w + p: word and position (section 3.1), or the word alone, then dropout.

    Both from a narrow distribution and not scaled, unlike the Transformer's: the scores of the attention are plain
    products of such vectors. With vectors of length sqrt(width) they begin saturated, and training diverges.
    """

    def __init__(self, config: ConvConfig, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, config.width)
        nn.init.normal_(self.table.weight, std=0.1)  # section 3.5
        self.positions = None
        if config.positions == "learned":
            self.positions = Learned(config.width, config.longest)
            nn.init.normal_(self.positions.table.weight, std=0.1)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids_BT: Tensor, first: int = 0) -> Tensor:
        """Vectors of words that stand at positions first, first + 1, ..."""
        word_BTW: Tensor = self.table(ids_BT)
        place_TW = self.positions(first, first + ids_BT.shape[1]) if self.positions is not None else None
        embedded_BTW = word_BTW if place_TW is None else word_BTW + place_TW
        recorder.tell(recorder.Embedded(word_BTW, place_TW, embedded_BTW))
        return cast(Tensor, self.dropout(embedded_BTW))


@dataclass(frozen=True)
class ConvState:
    """The last kernel - 1 inputs of every decoder layer, the source, and how many words have been written."""

    past: list[Tensor]
    memory: Memory
    position: int
    attention: bool
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "ConvState":
        key_BSW, value_BSW, real_BS = self.memory
        return replace(
            self,
            past=[past_BPW.index_select(0, index_B) for past_BPW in self.past],
            memory=Memory(
                key_BSW.index_select(0, index_B),
                value_BSW.index_select(0, index_B),
                real_BS.index_select(0, index_B) if real_BS is not None else None,
            ),
            attention_BS=self.attention_BS.index_select(0, index_B) if self.attention_BS is not None else None,
        )


def _linear(inputs: int, outputs: int, *, gain: float = 1.0, bias: bool = True) -> nn.Linear:
    """Section 3.5: weights that multiply the variance of their input by `gain`, biases zero.

    The gain of a layer whose input is dropped is what dropout keeps, as it gives to the rest what it takes.
    """
    linear = nn.Linear(inputs, outputs, bias=bias)
    nn.init.normal_(linear.weight, std=math.sqrt(gain / inputs))
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


def _keep(config: ConvConfig) -> float:
    return 1 - config.dropout


def _receptive_field(convolutions: Sequence[GatedConvolution]) -> int:
    return 1 + sum(convolution.kernel - 1 for convolution in convolutions)
