"""Keys and values that attention keeps: of the tokens written so far, and of the source."""

from typing import NamedTuple

import torch
from torch import Tensor


class Past(NamedTuple):
    """Keys and values of words as one block has seen them, by heads."""

    key: Tensor
    value: Tensor

    def followed_by(self, other: "Past") -> "Past":
        """These words, then those."""
        return Past(torch.cat([self.key, other.key], 2), torch.cat([self.value, other.value], 2))

    def moved_right(self, by_B: Tensor) -> "Past":
        """Each row moved by its own count of columns, over its last ones; what then stands first is not to be seen.

        Rows of different lengths then end in the same column, so that a next word stands next to every row's last,
        and distances between columns are those between words.
        """
        index_BK = (torch.arange(self.key.shape[2], device=by_B.device) - by_B[:, None]).clamp(min=0)
        index_BHKD = index_BK[:, None, :, None].expand_as(self.key)
        return Past(self.key.gather(2, index_BHKD), self.value.gather(2, index_BHKD))

    def reorder(self, index_B: Tensor) -> "Past":
        """These rows."""
        return Past(self.key.index_select(0, index_B), self.value.index_select(0, index_B))


class Memory(NamedTuple):
    """Keys and values of the source, by heads, and which of its words are real."""

    key: Tensor
    value: Tensor
    real_BS: Tensor | None

    def no_past(self) -> Past:
        """The past of a target that has not begun."""
        return Past(self.key[:, :, :0], self.value[:, :, :0])

    def select(self, index_B: Tensor | None) -> "Memory":
        """These sources; None = all, as they are."""
        if index_B is None:
            return self
        real_BS = self.real_BS.index_select(0, index_B) if self.real_BS is not None else None
        return Memory(self.key.index_select(0, index_B), self.value.index_select(0, index_B), real_BS)


def sources_of(index_R: Tensor, rows: int, sources: int) -> Tensor | None:
    """Of so many sources, shared by so many rows, those that the rows of the index need; None = all, as they are.

    Each is needed once if as many rows look at every one, as in a beam search; else once for every row.

    >>> sources_of(torch.tensor([0, 0, 5, 4]), rows=6, sources=3).tolist()
    [0, 2]
    """
    source_R = index_R // (rows // sources)
    source_N, count_N = torch.unique_consecutive(source_R, return_counts=True)
    if bool((count_N != count_N[0]).any()):
        return source_R
    same = len(source_N) == sources and bool((source_N == torch.arange(sources, device=source_N.device)).all())
    return None if same else source_N
