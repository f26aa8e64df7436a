"""One step of an LSTM and of a GRU."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.layers.recurrent import LSTM_GATES, Kind, Layer


def lstm(input_BG: Tensor, again_BG: Tensor, layer: Layer) -> Layer:
    """Long short-term memory with forget gates (Gers et al. 2000); gates in torch's order."""
    take_BW, keep_BW, new_BW, show_BW = (input_BG + again_BG).chunk(4, 1)
    cell_BW = torch.addcmul(keep_BW.sigmoid() * layer[1], take_BW.sigmoid(), new_BW.tanh())
    return show_BW.sigmoid() * cell_BW.tanh(), cell_BW


def gru(input_BG: Tensor, again_BG: Tensor, layer: Layer) -> Layer:
    """Cho et al. 2014, but the reset comes after the product, as in torch: one product instead of two."""
    width = layer[0].shape[1]
    gates_B2W, new_BW = torch.split(input_BG, 2 * width, 1)
    again_gates_B2W, again_new_BW = torch.split(again_BG, 2 * width, 1)
    reset_BW, keep_BW = (gates_B2W + again_gates_B2W).sigmoid().chunk(2, 1)
    new_BW = torch.addcmul(new_BW, reset_BW, again_new_BW).tanh()
    return (new_BW + keep_BW * (layer[0] - new_BW),)


class Cell(NamedTuple):
    """A kind of recurrent cell: torch's layer of it, one step of it, its gates, and the parts of what it remembers."""

    layer: Kind
    advance: Callable[[Tensor, Tensor, Layer], Layer]
    gates: int
    parts: int


CELLS = {"lstm": Cell(nn.LSTM, lstm, gates=LSTM_GATES, parts=2), "gru": Cell(nn.GRU, gru, gates=3, parts=1)}
