"""Embedding, feed-forward, and the residual connection around every sub-layer."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers import recorder
from regard.layers.dropout import Dropout
from regard.layers.positions import Learned, Sinusoidal, vectors

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}


class Embedding(nn.Module):
    """Word vectors times sqrt(width), plus positions, then dropout (sections 3.4, 3.5 and 5.4)."""

    def __init__(self, vocabulary: int, width: int, dropout: float, positions: Sinusoidal | Learned | None) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(width)

    def forward(self, ids_BT: Tensor, first: int | Tensor = 0) -> Tensor:
        """Vectors of words that stand at positions first, first + 1, ...; a tensor gives each row its own first."""
        word_BTW: Tensor = self.table(ids_BT) * self.scale
        place_BTW = vectors(self.positions, first, ids_BT.shape[1]) if self.positions is not None else None
        x_BTW = word_BTW if place_BTW is None else word_BTW + place_BTW
        recorder.tell(recorder.Embedded(word_BTW, place_BTW, x_BTW))
        dropped: Tensor = self.dropout(x_BTW)
        return dropped


class FeedForward(nn.Module):
    """Two products with a non-linearity between, the same at every position (section 3.3)."""

    def __init__(self, width: int, inner: int, activation: str) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x_BTW: Tensor) -> Tensor:
        narrowed: Tensor = self.narrow(self.activation(self.widen(x_BTW)))
        return narrowed


class Residual(nn.Module):
    """x + dropout(sub-layer(x)), normalised after the sum as published, or before the sub-layer."""

    def __init__(self, width: int, dropout: float, *, norm_first: bool, epsilon: float = 1e-5) -> None:
        """`epsilon` keeps the norm's division finite."""
        super().__init__()
        self.norm = nn.LayerNorm(width, epsilon)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first

    def enter(self, x: Tensor) -> Tensor:
        """What the sub-layer sees."""
        return self.norm(x) if self.norm_first else x

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """Join the sub-layer's answer y with what came in."""
        joined = self.dropout.add(x, y)
        joined = joined if self.norm_first else self.norm(joined)
        recorder.tell(recorder.Joined(self, x, y, joined))
        return joined


def xavier(module: nn.Module) -> None:
    """Give every matrix of `module` Glorot's uniform range, and every bias zero; embeddings keep their own."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                torch.nn.init.zeros_(part.bias)
