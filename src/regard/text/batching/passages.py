"""Batches of passages, cut from running text."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.errors import DataError
from regard.text.batching.batch import Movable
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.shards.token_stream import Stream
from regard.text.tokenizers.tokenizer import BEGIN, PAD

# One of so many passages that are read by themselves is opened by BEGIN.
OPENED = 8


@dataclass(frozen=True)
class Passages(Movable):
    """A batch: pieces of running text, each word but the first of which is to be predicted."""

    ids_BT: Tensor
    fresh: bool
    """Whether these passages begin anew; if not, each goes on where the same row of the batch before it ended."""
    numbers: list[int]
    """Where in the text each passage begins, in tokens."""

    @property
    def tokens(self) -> int:
        """Words to predict."""
        return int((self.ids_BT[:, 1:] != PAD).sum())

    @property
    def places(self) -> int:
        """Places read, padding counted."""
        return self.ids_BT[:, 1:].numel()

    @property
    def padding(self) -> int:
        """Places that hold no word."""
        return self.places - self.tokens

    def emptied(self) -> Self:
        """Passages of which only the first word is left, which is not predicted."""
        ids_BT = self.ids_BT.clone()
        ids_BT[:, 1:] = PAD
        return replace(self, ids_BT=ids_BT, numbers=[])


class PassageLoader:
    """Cuts a text into passages of `length` tokens, so many to a batch that it holds `batch_tokens`.

    For models that read each passage by itself, in random order: the text is cut at another place in each epoch, so
    that the same words do not always stand at a passage's beginning. With `carried`, in the text's own order: row r of
    each batch goes on where row r of the batch before it ended. Without `shuffle` (validation), every epoch is the same.

    Writing begins with BEGIN, which stands only at the beginning of a document. So that the model knows it well even if
    there is one document, it takes the place of the first word, which is not predicted, of some passages in training.
    """

    def __init__(
        self,
        stream: Stream,
        length: int,
        batch_tokens: int,
        seed: int,
        *,
        carried: bool,
        shuffle: bool = True,
        share: Share = WHOLE,
    ) -> None:
        if len(stream) < 3:
            raise DataError("The text has too few words to learn from. Give more of it.")
        self.stream, self.length, self.seed = stream, min(length, len(stream) - 1), seed
        self.rows = max(1, batch_tokens // self.length)
        self.carried, self.shuffle, self.share = carried, shuffle, share

    def batches(self, epoch: int, first: int = 0) -> Iterator[Passages]:
        """An epoch's batches from number `first` on."""
        starts_XB, stops_XB = self._cuts(epoch)
        for number in range(first, len(starts_XB)):
            rows = np.arange(len(starts_XB[number]))
            ours = rows[self.share.block(len(rows)) if self.carried else self.share.dealt(len(rows), turn=number)]
            read = ours if len(ours) else rows[:1]
            fresh = not self.carried or number == 0
            passages = self._read(starts_XB[number][read], stops_XB[number][read], fresh=fresh)
            if self.shuffle and fresh:
                passages.ids_BT[read % (1 if self.carried else OPENED) == 0, 0] = BEGIN
            yield passages if len(ours) else passages.emptied()

    def count(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return len(self._cuts(epoch)[0])

    def padding_share(self, epoch: int) -> float:
        """What share of all places an epoch's batches waste: only the text's ends, so next to none."""
        return 0.0

    def places(self, numbers: list[int]) -> str:
        """Where in the text these passages begin, for a message."""
        shown = ", ".join(f"{number:,}" for number in numbers[:8])
        return f"the passages from tokens {shown}{' and others' if len(numbers) > 8 else ''} of the training text on"

    def _cuts(self, epoch: int) -> tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]]:
        """Where each batch's passages begin and end."""
        last = len(self.stream) - 1  # the last word is only predicted
        if self.carried:
            rows = max(1, min(self.rows, last // self.length))
            first_B = np.arange(rows) * (last // rows)
            offsets = range(0, last // rows, self.length)
            ends = [min(offset + self.length, last // rows) for offset in offsets]
            return [first_B + offset for offset in offsets], [first_B + end for end in ends]
        random = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        shift = int(random.integers(self.length)) if self.shuffle else 0
        edges = np.unique(np.concatenate([[0], np.arange(shift, last, self.length), [last]]))
        starts, stops = edges[:-1], edges[1:]
        if self.shuffle:
            order = random.permutation(len(starts))
            starts, stops = starts[order], stops[order]
        cuts = range(self.rows, len(starts), self.rows)
        return np.split(starts, cuts), np.split(stops, cuts)

    def _read(self, starts_B: npt.NDArray[np.int64], stops_B: npt.NDArray[np.int64], *, fresh: bool) -> Passages:
        longest = int((stops_B - starts_B).max())
        ids = np.full((len(starts_B), longest + 1), PAD, dtype=np.int64)
        for row, (start, stop) in enumerate(zip(starts_B, stops_B, strict=True)):
            ids[row, : stop - start + 1] = self.stream.ids[start : stop + 1]
        return Passages(torch.from_numpy(ids), fresh, starts_B.tolist())
