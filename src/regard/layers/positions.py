"""How a model is told the order of words: absolute positions added to embeddings, or relative ones inside attention."""

import math
from typing import cast

import torch
from torch import Tensor, nn

from regard.errors import DataError


def sinusoids(length: int, width: int) -> Tensor:
    """Vaswani et al. 2017, section 3.5: sines in the even columns, cosines in the odd ones, as (length, width)."""
    # Also of a model without memory (weights.shapes_of), for which torch would load a second of libraries.
    position_T1 = torch.arange(length, dtype=torch.float32, device="cpu")[:, None]
    step_W = torch.arange(0, width, 2, dtype=torch.float32, device="cpu")
    frequency = torch.exp(step_W * (-math.log(10_000.0) / width))
    return torch.stack([(position_T1 * frequency).sin(), (position_T1 * frequency).cos()], dim=-1).flatten(1)


class Sinusoidal(nn.Module):
    """Fixed waves; any length."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(256, width), persistent=False)

    def forward(self, first: int, last: int) -> Tensor:
        """Vectors of positions first .. last - 1."""
        table = self.table
        if last > len(table):
            with torch.inference_mode(False):  # the table outlives a translation made in the middle of training
                table = self.table = sinusoids(2 * last, table.shape[1]).to(table)
        return table[first:last]  # not self.table, which another thread may have replaced


class Learned(nn.Module):
    """One learned vector for each position, up to a longest sentence."""

    def __init__(self, width: int, longest: int) -> None:
        super().__init__()
        self.table = nn.Embedding(longest, width)

    def forward(self, first: int, last: int) -> Tensor:
        """Vectors of positions first .. last - 1."""
        if last > self.table.num_embeddings:
            raise DataError(
                f"A sentence of {last} tokens is longer than the {self.table.num_embeddings} positions this model "
                "learned. Split the sentence, or train with a larger model.longest."
            )
        return self.table.weight[first:last]


def absolute(kind: str, width: int, longest: int) -> Sinusoidal | Learned | None:
    """The positions that are added to embeddings, by the name of the setting; none if they are relative."""
    if kind == "sinusoidal":
        return Sinusoidal(width)
    return Learned(width, longest) if kind == "learned" else None


def vectors(positions: Sinusoidal | Learned, first: int | Tensor, length: int) -> Tensor:
    """Vectors of positions first, first + 1, ..., `length` of them; for a tensor first_B, each row's own: (B, length, W)."""
    if isinstance(first, int):
        return cast(Tensor, positions(first, first + length))
    place_BT = first[:, None] + torch.arange(length, device=first.device)
    return cast(Tensor, positions(0, int(place_BT.max()) + 1)[place_BT])


class Relative(nn.Module):
    """Shaw et al. 2018: a learned vector for each distance between two words, clipped at a span.

    It joins the keys, shared by all heads; the paper's second table, which joins the values, is left out, since the
    paper found that it adds nothing.
    """

    def __init__(self, head_width: int, span: int) -> None:
        super().__init__()
        self.span = span
        self.table = nn.Embedding(2 * span + 1, head_width)

    def forward(self, query_BHQD: Tensor, keys: int) -> Tensor:
        """What each query's score for each key gains by their distance: (B, H, Q, K). The last query is the last key."""
        queries = query_BHQD.shape[2]
        position_K = torch.arange(keys, device=query_BHQD.device)
        distance_QK = position_K[None, :] - position_K[keys - queries :, None]
        index_QK = distance_QK.clamp(-self.span, self.span) + self.span
        by_distance = query_BHQD @ self.table.weight.T
        return by_distance.gather(-1, index_QK.expand(*by_distance.shape[:2], queries, keys))
