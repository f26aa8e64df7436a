"""Regard's recurrent and convolutional models, written plainly: torch's layers, and a loop where a word needs the last.

They have the same parts, sizes and dropout as Regard's, and none of its care for speed beyond what a good tutorial
takes: layers read whole sentences at once where they can, and only decoders that feed themselves go word by word.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD = 0


class LanguageModel(nn.Module):
    """Words in, scores of the next word out; the state is carried on."""

    def __init__(self, kind: Any, config: Any, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.width)
        between = config.dropout if config.depth > 1 else 0.0
        self.layers = kind(config.width, config.width, config.depth, dropout=between, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)
        self.words = nn.Linear(config.width, vocabulary, bias=False)
        self.words.weight = self.embedding.weight
        self.scale = math.sqrt(config.width)
        nn.init.normal_(self.embedding.weight, std=config.width**-0.5)

    def forward(self, ids_BT: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden_BTW, state = self.layers(self.dropout(self.embedding(ids_BT) * self.scale), state)
        state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
        return self.words(self.dropout(hidden_BTW)), state


class Recurrent(nn.Module):
    """The encoder and bridge of the three that translate."""

    def __init__(self, config: Any, vocabulary: int) -> None:
        super().__init__()
        width, depth = config.width, config.depth
        between = config.dropout if depth > 1 else 0.0
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = nn.LSTM(width, width // 2, depth, dropout=between, batch_first=True, bidirectional=True)
        self.bridge_h = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.bridge_c = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.dropout = nn.Dropout(config.dropout)
        self.words = nn.Linear(width, vocabulary, bias=False)
        self.words.weight = self.embedding.weight
        self.scale = math.sqrt(width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def embed(self, ids_BT: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(self.embedding(ids_BT) * self.scale)
        return dropped

    def encode(self, source_BS: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The memory, where it is real, and the decoder's first hidden states and cells (depth, B, W)."""
        packed = pack_padded_sequence(self.embed(source_BS), lengths_B, batch_first=True, enforce_sorted=False)
        output, (h, c) = self.encoder(packed)
        memory_BSW, _ = pad_packed_sequence(output, batch_first=True, total_length=source_BS.shape[1])
        real_BS = torch.arange(source_BS.shape[1]) < lengths_B[:, None]
        h, c = (part.unflatten(0, (-1, 2)).transpose(1, 2).flatten(2) for part in (h, c))
        h = torch.stack([linear(part).tanh() for linear, part in zip(self.bridge_h, h, strict=True)])
        c = torch.stack([linear(part).tanh() for linear, part in zip(self.bridge_c, c, strict=True)])
        return memory_BSW, real_BS, h, c


class Seq2Seq(Recurrent):
    """No attention: the decoder reads all words at once."""

    def __init__(self, config: Any, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        between = config.dropout if config.depth > 1 else 0.0
        self.decoder = nn.LSTM(config.width, config.width, config.depth, dropout=between, batch_first=True)

    def forward(self, source_BS: Tensor, lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        _, _, h, c = self.encode(source_BS, lengths_B)
        hidden_BTW, _ = self.decoder(self.embed(target_BT), (h, c))
        scores: Tensor = self.words(self.dropout(hidden_BTW))
        return scores


class Fed(Recurrent):
    """A decoder of cells that reads each word together with something fed back."""

    def __init__(self, config: Any, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        width = config.width
        cells = [nn.LSTMCell(width if number else 2 * width, width) for number in range(config.depth)]
        self.cells = nn.ModuleList(cells)

    def advance(self, word_BW: Tensor, fed_BW: Tensor, state: list[tuple[Tensor, Tensor]]) -> Tensor:
        """One word further; the top layer's output. The state changes in place."""
        x_BW = torch.cat([word_BW, fed_BW], 1)
        for number, cell in enumerate(self.cells):
            x_BW = self.dropout(x_BW) if number else x_BW
            state[number] = cell(x_BW, state[number])
            x_BW = state[number][0]
        return x_BW


class Bahdanau(Fed):
    """Additive attention before each word; a maxout layer above."""

    def __init__(self, config: Any, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        width = config.width
        self.query, self.key = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.v = nn.Linear(width, 1, bias=False)
        self.mix = nn.Linear(3 * width, 2 * width)

    def forward(self, source_BS: Tensor, lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        memory_BSW, real_BS, h, c = self.encode(source_BS, lengths_B)
        key_BSW = self.key(memory_BSW)
        state = list(zip(h, c, strict=True))
        x_BTW = self.embed(target_BT)
        tops, contexts = [], []
        for word_BW in x_BTW.unbind(1):
            scores_BS = self.v((self.query(state[-1][0])[:, None] + key_BSW).tanh())[..., 0]
            weights_BS = scores_BS.masked_fill(~real_BS, -math.inf).softmax(-1)
            context_BW = (weights_BS[:, None] @ memory_BSW)[:, 0]
            tops.append(self.advance(word_BW, context_BW, state))
            contexts.append(context_BW)
        mixed = self.mix(torch.cat([torch.stack(tops, 1), x_BTW, torch.stack(contexts, 1)], 2))
        scores: Tensor = self.words(self.dropout(torch.maximum(*mixed.chunk(2, 2))))
        return scores


class Luong(Fed):
    """Multiplicative attention after each word, fed into the next."""

    def __init__(self, config: Any, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        self.key = nn.Linear(config.width, config.width, bias=False)
        self.mix = nn.Linear(2 * config.width, config.width)

    def forward(self, source_BS: Tensor, lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        memory_BSW, real_BS, h, c = self.encode(source_BS, lengths_B)
        key_BSW = self.key(memory_BSW)
        state = list(zip(h, c, strict=True))
        fed_BW = torch.zeros_like(h[0])
        hidden = []
        for word_BW in self.embed(target_BT).unbind(1):
            top_BW = self.advance(word_BW, fed_BW, state)
            scores_BS = (key_BSW @ top_BW[:, :, None])[..., 0]
            weights_BS = scores_BS.masked_fill(~real_BS, -math.inf).softmax(-1)
            context_BW = (weights_BS[:, None] @ memory_BSW)[:, 0]
            fed_BW = self.mix(torch.cat([context_BW, top_BW], 1)).tanh()
            hidden.append(fed_BW)
        scores: Tensor = self.words(self.dropout(torch.stack(hidden, 1)))
        return scores


class Conv(nn.Module):
    """Gated convolutions by nn.Conv1d, and attention in every decoder layer."""

    def __init__(self, config: Any, vocabulary: int) -> None:
        super().__init__()
        width, self.kernel = config.width, config.kernel
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(config.longest, width)
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, std=0.1)
        self.enter, self.leave, self.decoder_enter, self.decoder_leave = (nn.Linear(width, width) for _ in range(4))
        self.convolutions, self.decoder_convolutions = (
            nn.ModuleList(nn.Conv1d(width, 2 * width, config.kernel) for _ in range(depth))
            for depth in (config.depth, config.decoder_depth or config.depth)
        )
        self.queries = nn.ModuleList(nn.Linear(width, width) for _ in self.decoder_convolutions)
        self.dropout = nn.Dropout(config.dropout)
        self.words = nn.Linear(width, vocabulary, bias=False)
        self.words.weight = self.embedding.weight

    def embed(self, ids_BT: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(self.embedding(ids_BT) + self.positions.weight[: ids_BT.shape[1]])
        return dropped

    def forward(self, source_BS: Tensor, lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        half, side = math.sqrt(0.5), (self.kernel - 1) // 2
        real_BS = torch.arange(source_BS.shape[1]) < lengths_B[:, None]
        source_BSW, target_BTW = self.embed(source_BS), self.embed(target_BT)
        x_BWS = self.enter(source_BSW).transpose(1, 2)
        for convolution in self.convolutions:
            inner_BWS = F.pad(self.dropout(x_BWS) * real_BS[:, None], (side, side))
            x_BWS = (x_BWS + F.glu(convolution(inner_BWS), 1)) * half
        z_BSW = self.leave(x_BWS.transpose(1, 2))
        value_BSW = (z_BSW + source_BSW) * lengths_B.sqrt()[:, None, None]
        x_BTW = self.decoder_enter(target_BTW)
        for convolution, query in zip(self.decoder_convolutions, self.queries, strict=True):
            inner_BWT = F.pad(self.dropout(x_BTW).transpose(1, 2), (self.kernel - 1, 0))
            h_BTW = F.glu(convolution(inner_BWT), 1).transpose(1, 2)
            scores_BTS = (query(h_BTW) + target_BTW) @ z_BSW.mT
            weights_BTS = scores_BTS.masked_fill(~real_BS[:, None], -math.inf).softmax(-1)
            x_BTW = (x_BTW + h_BTW + weights_BTS @ value_BSW) * half
        scores: Tensor = self.words(self.dropout(self.decoder_leave(x_BTW)))
        return scores


PLAIN: dict[str, Any] = {
    "rnn": lambda config, vocabulary: LanguageModel(nn.RNN, config, vocabulary),
    "lstm": lambda config, vocabulary: LanguageModel(nn.LSTM, config, vocabulary),
    "gru": lambda config, vocabulary: LanguageModel(nn.GRU, config, vocabulary),
    "seq2seq": Seq2Seq,
    "bahdanau": Bahdanau,
    "luong": Luong,
    "conv": Conv,
}
