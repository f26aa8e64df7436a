"""Recurrent layers one over another, for every model that is built of torch's.

Each layer is a module of its own, so that our dropout can stand between them. A layer reads all words in one call.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.layers.dropout import Dropout

Layer = tuple[Tensor, ...]
"""What one layer remembers, each part (B, W): its output (RNN, GRU), or its output and its cell (LSTM)."""

Kind = type[nn.RNN] | type[nn.LSTM] | type[nn.GRU]

LSTM_GATES = 4
SHUT = 1e4  # so far from zero that a gate is 0 or 1 exactly, whatever else reaches it


def stacked(kind: Kind, width: int, depth: int, *, bidirectional: bool = False) -> Sequence[nn.Module]:
    """Torch's layers; two directions share the width, so that together they have all of it."""
    own = width // (1 + bidirectional)
    layers = nn.ModuleList(kind(width, own, batch_first=True, bidirectional=bidirectional) for _ in range(depth))
    return cast("Sequence[nn.Module]", layers)


def read_to_the_end(
    layers: Sequence[nn.Module], dropout: Dropout, x_BSW: Tensor, lengths_B: Tensor
) -> tuple[Tensor, list[Layer]]:
    """Read each row from nothing to its own last word: the top layer's states, and what each layer remembers then.

    A backward direction starts at that word; padding is never read, and has states of zero.
    """
    if x_BSW.device.type == "cpu" and all(isinstance(layer, nn.LSTM) for layer in layers):
        return _read_padded(cast("Sequence[nn.LSTM]", layers), dropout, x_BSW, lengths_B)
    packed = pack_padded_sequence(x_BSW, lengths_B.cpu(), batch_first=True, enforce_sorted=False)
    ends: list[Layer] = []
    for layer in layers:
        packed = PackedSequence(dropout(packed.data), *packed[1:]) if ends else packed
        packed, end = layer(packed)
        ends.append(tuple(part_NBW.transpose(0, 1).flatten(1) for part_NBW in _parts(end)))
    memory_BSW, _ = pad_packed_sequence(packed, batch_first=True, total_length=x_BSW.shape[1])
    return memory_BSW, ends


def _read_padded(
    layers: Sequence[nn.LSTM], dropout: Dropout, x_BSW: Tensor, lengths_B: Tensor
) -> tuple[Tensor, list[Layer]]:
    """The same without packing, for which torch has no kernel of a whole sentence on a processor.

    A kernel that knows nothing of padding reads it, too. So each word has one more number, 1 at padding, whose weights
    close the input gates and open the forget gates there. A cell then goes through padding as it is: the forward
    direction's to the end, and the backward one's, still empty, to the last word.
    """
    padding_BS1 = (torch.arange(x_BSW.shape[1]) >= lengths_B[:, None])[:, :, None]
    last_B11 = (lengths_B - 1)[:, None, None]
    ends: list[Layer] = []
    for layer in layers:
        x_BSW = torch.cat([dropout(x_BSW) if ends else x_BSW, padding_BS1.to(x_BSW.dtype)], 2)
        directions, own = len(layer.all_weights), layer.hidden_size
        weights = [part for of_one in layer.all_weights for part in (_gated(of_one[0]), *of_one[1:])]
        empty_NBW = x_BSW.new_zeros(directions, len(x_BSW), own)
        settings = (weights, True, 1, 0.0, layer.training, directions > 1, True)
        x_BSW, _, cell_NBW = _call(torch.lstm, x_BSW, (empty_NBW, empty_NBW), *settings)
        x_BSW = x_BSW.masked_fill(padding_BS1, 0.0)
        forward_BW = x_BSW[:, :, :own].gather(1, last_B11.expand(-1, 1, own))[:, 0]
        ends.append((torch.cat([forward_BW, x_BSW[:, 0, own:]], 1), cell_NBW.transpose(0, 1).flatten(1)))
    return x_BSW, ends


def _gated(input_GI: Tensor) -> Tensor:
    """An LSTM's matrix for words with a column more, for the number that tells padding."""
    gate_4 = input_GI.new_tensor([-SHUT, SHUT, 0.0, 0.0])
    return torch.cat([input_GI, gate_4.repeat_interleave(len(input_GI) // LSTM_GATES)[:, None]], 1)


def read_on(
    layers: Sequence[nn.Module], dropout: Dropout, x_BTW: Tensor, before: Sequence[Layer]
) -> tuple[Tensor, list[Layer]]:
    """Read these words after what is remembered: the top layer's states, and what each layer remembers after them."""
    new: list[Layer] = []
    for layer, parts in zip(layers, before, strict=True):
        x_BTW = dropout(x_BTW) if new else x_BTW
        parts_1BW = tuple(part_BW[None] for part_BW in parts)
        x_BTW, after = _call(layer, x_BTW, parts_1BW if len(parts_1BW) > 1 else parts_1BW[0])
        new.append(tuple(part_1BW[0] for part_1BW in _parts(after)))
    return x_BTW, new


def _call(layer: Callable[..., Any], x_BTW: Tensor, state: Tensor | Layer, *settings: Any) -> Any:
    """What the layer makes of these words and this state: in float32 where its kernel has no bfloat16, and would fail."""
    if x_BTW.device.type != "cpu" or not torch.is_autocast_enabled("cpu") or _has_bfloat16():
        return layer(x_BTW, state, *settings)
    with torch.autocast("cpu", enabled=False):
        exact = tuple(part.float() for part in state) if isinstance(state, tuple) else state.float()
        return layer(x_BTW.float(), exact, *settings)


@cache
def _has_bfloat16() -> bool:
    """Whether torch's recurrent kernels know bfloat16 on this processor: oneDNN's do from AVX-512 on, its own everywhere."""
    return not torch.backends.mkldnn.is_available() or torch.ops.mkldnn._is_mkldnn_bf16_supported()  # type: ignore[no-untyped-call]


def remember_long(model: nn.Module) -> None:
    """Let torch's recurrent layers begin by keeping what they read, so that the first gradients reach the first words.

    A matrix that keeps lengths neither fades nor blows up what passes through it many times (Saxe et al. 2014), and
    an LSTM whose forget gates begin open keeps its cells (Gers et al. 2000). The rest as in other layers.
    """
    for part in model.modules():
        if isinstance(part, nn.RNNBase):
            for input_GI, again_GW, bias_G, again_bias_G in part.all_weights:
                nn.init.xavier_uniform_(input_GI)
                nn.init.zeros_(again_bias_G)
                keep(again_GW, bias_G)


def keep(again_GW: Tensor, bias_G: Tensor) -> None:
    """The same for one recurrent matrix and its bias, whose gates stand side by side in torch's order."""
    gates = again_GW.shape[0] // again_GW.shape[1]
    with torch.no_grad():
        for gate_WW in again_GW.chunk(gates):
            nn.init.orthogonal_(gate_WW)
        bias_G.zero_()
        if gates == LSTM_GATES:
            bias_G.chunk(gates)[1].fill_(1.0)


def _parts(state: Tensor | Layer) -> Layer:
    return state if isinstance(state, tuple) else (state,)
