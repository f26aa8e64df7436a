"""Several texts side by side: ids, padded at the end to the longest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.text.tokenizers.tokenizer import BEGIN, END, PAD


class Batch(Protocol):
    """What training needs to know of a batch, whatever is in it."""

    @property
    def numbers(self) -> list[int]:
        """Which parts of the corpus these are, so that a message can name them."""
        ...

    @property
    def tokens(self) -> int:
        """Words to predict."""
        ...

    @property
    def places(self) -> int:
        """Places in the tensors that are read, padding counted."""
        ...

    @property
    def padding(self) -> int:
        """Places that hold no word."""
        ...

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        ...

    def emptied(self) -> Self:
        """The same texts with nothing to learn from them: for a process to which a batch leaves no text."""
        ...


BatchT_co = TypeVar("BatchT_co", bound=Batch, covariant=True)


class Batches(Protocol[BatchT_co]):
    """Batches of a corpus, epoch by epoch, in an order that depends only on (seed, epoch); of each batch our share."""

    def batches(self, epoch: int, first: int = 0) -> Iterator[BatchT_co]:
        """An epoch's batches from number `first` on."""
        ...

    def count(self, epoch: int) -> int:
        """How many there are."""
        ...

    def padding_share(self, epoch: int) -> float:
        """What share of all places an epoch's batches waste."""
        ...

    def places(self, numbers: list[int]) -> str:
        """Where in the corpus these stand, for a message."""
        ...


class Movable:
    """A dataclass whose tensors move to a device together."""

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        moved = {name: value.to(device) for name, value in own.items() if isinstance(value, Tensor)}
        return replace(self, **moved)  # type: ignore[type-var]


@dataclass(frozen=True)
class Rows(Movable):
    """Texts side by side, padded at the end: what batches that are only read have in common."""

    ids_BT: Tensor
    lengths_B: Tensor
    numbers: list[int]
    """Which parts of the corpus these are, so that a message can name them."""

    @property
    def places(self) -> int:
        """Places read, padding counted."""
        return self.ids_BT.numel()

    @property
    def padding(self) -> int:
        """Places that hold no word."""
        return self.places - int(self.lengths_B.sum())


@dataclass(frozen=True)
class Pairs(Movable):
    """A batch for training: each source ends with END; each target begins with BEGIN and ends with END."""

    source_BS: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    target_lengths_B: Tensor
    numbers: list[int]
    """Which pairs of the corpus these are, so that a message can name them."""

    @property
    def tokens(self) -> int:
        """Words to predict: all of the target but BEGIN, padding not counted."""
        return int(self.target_lengths_B.sum()) - len(self.numbers)

    @property
    def places(self) -> int:
        """Places in both tensors, padding counted."""
        return self.source_BS.numel() + self.target_BT.numel()

    @property
    def padding(self) -> int:
        """Places that hold no word."""
        return self.places - int(self.source_lengths_B.sum()) - int(self.target_lengths_B.sum())

    def only(self, rows: list[int]) -> Self:
        """These rows, without padding that none of them needs."""
        sources, targets = self.source_lengths_B[rows], self.target_lengths_B[rows]
        return replace(
            self,
            source_BS=self.source_BS[rows, : int(sources.max())],
            source_lengths_B=sources,
            target_BT=self.target_BT[rows, : int(targets.max())],
            target_lengths_B=targets,
            numbers=[self.numbers[row] for row in rows],
        )

    def emptied(self) -> Self:
        """The same sources, and targets that only begin."""
        target_BT = torch.full_like(self.target_BT[:, :2], PAD)
        target_BT[:, 0] = BEGIN
        return replace(self, target_BT=target_BT, target_lengths_B=torch.zeros_like(self.target_lengths_B), numbers=[])


def pad(rows: Sequence[Sequence[int] | np.ndarray], *, begin: bool = False) -> tuple[Tensor, Tensor]:
    """Rows of ids -> (ids, lengths), each row closed by END and, if asked, opened by BEGIN."""
    opening = int(begin)
    lengths = np.array([len(row) + opening + 1 for row in rows])
    ids = np.full((len(rows), int(lengths.max())), PAD, dtype=np.int64)
    for i, row in enumerate(rows):
        if begin:
            ids[i, 0] = BEGIN
        ids[i, opening : opening + len(row)] = row
        ids[i, lengths[i] - 1] = END
    return torch.from_numpy(ids), torch.from_numpy(lengths)


def make_pairs(
    sources: Sequence[Sequence[int] | np.ndarray], targets: Sequence[Sequence[int] | np.ndarray], numbers: list[int]
) -> Pairs:
    """A batch from ids without begin and end."""
    return Pairs(*pad(sources), *pad(targets, begin=True), numbers)
