"""Batches of like lengths, in an order that depends only on (seed, epoch); any position can be taken up again."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from regard.text.batching.batch import Batch, Pairs, make_pairs
from regard.text.batching.bucketing import by_length, counts_of, cut, largest, shuffled
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.shards.pair_shards import Shards
from regard.text.tokenizers.tokenizer import Tokenizer

BatchT = TypeVar("BatchT", bound=Batch)


@dataclass(frozen=True)
class Plan:
    """Which pairs stand in which batch of one epoch."""

    order: npt.NDArray[Any]
    """Numbers of all pairs, batch after batch."""
    bounds: npt.NDArray[np.int64]
    """Batch i holds order[bounds[i, 0] : bounds[i, 1]]."""

    def __len__(self) -> int:
        return len(self.bounds)

    def numbers(self, batch: int) -> npt.NDArray[Any]:
        """The pairs of one batch."""
        return self.order[self.bounds[batch, 0] : self.bounds[batch, 1]]


def plan(
    source_lengths: npt.NDArray[Any], target_lengths: npt.NDArray[Any], batch_tokens: int, seed: int, epoch: int
) -> Plan:
    """Shuffle, sort by length keeping the shuffle among equals, cut into batches, shuffle the batches.

    A batch holds as many pairs as fit into `batch_tokens` on its longer side, padding counted; at least one.
    """
    random = np.random.Generator(np.random.PCG64([seed, epoch]))
    order = by_length(shuffled(len(source_lengths), random), source_lengths, target_lengths)
    bounds = list(cut(counts_of(source_lengths, target_lengths), batch_tokens))
    return Plan(order, random.permutation(np.array(bounds, dtype=np.int64).reshape(-1, 2)))


class ShardLoader(ABC, Generic[BatchT]):
    """Batches of tokenised texts of like lengths, epoch by epoch; of each batch our share."""

    def __init__(self, shards: Shards, batch_tokens: int, seed: int, share: Share = WHOLE) -> None:
        self.shards = shards
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.share = share
        self._last_plan: tuple[int, Plan] | None = None

    @abstractmethod
    def lengths(self, epoch: int) -> list[npt.NDArray[Any]]:
        """Tokens of each text in each tensor of a batch, begin and end counted."""

    @abstractmethod
    def read(self, numbers: npt.NDArray[np.int64], epoch: int) -> BatchT:
        """The batch of these texts; whatever is random in a text follows from (seed, epoch) and its number."""

    def plan(self, epoch: int) -> Plan:
        """The batches of an epoch; the last plan is kept, as that of a large corpus takes seconds to make."""
        if self._last_plan is None or self._last_plan[0] != epoch:
            self._last_plan = epoch, self._plan(epoch)
        return self._last_plan[1]

    def batches(self, epoch: int, first: int = 0) -> Iterator[BatchT]:
        """An epoch's batches from number `first` on."""
        planned = self.plan(epoch)
        for batch in range(first, len(planned)):
            numbers = planned.numbers(batch)
            ours = numbers[self.share.dealt(len(numbers), turn=batch)]
            yield self.read(ours, epoch) if len(ours) else self.read(numbers[:1], epoch).emptied()

    def count(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return len(self.plan(epoch))

    def places(self, numbers: list[int]) -> str:
        """Where in the corpus these texts stand, for a message."""
        lines = sorted(self.shards.line(n) for n in numbers)
        shown = ", ".join(map(str, lines[:8])) + (f" and {len(lines) - 8} more" if len(lines) > 8 else "")
        return f"lines {shown} of the training text"

    def padding_share(self, epoch: int) -> float:
        """What share of all places an epoch's batches waste."""
        planned = self.plan(epoch)
        if not len(planned):
            return 0.0
        # All batches at once, and as they lie in the order: one by one takes minutes with millions of texts.
        starts = np.sort(planned.bounds[:, 0])
        sizes = np.diff(starts, append=len(planned.order))
        places = words = 0
        for lengths in self.lengths(epoch):
            places += int((sizes * largest(lengths, planned.order, starts)).sum())
            words += int(lengths.sum())
        return 1 - words / places

    @abstractmethod
    def _plan(self, epoch: int) -> Plan: ...


class Loader(ShardLoader[Pairs]):
    """Batches of pairs."""

    def __init__(self, shards: Shards, batch_tokens: int, seed: int, share: Share = WHOLE) -> None:
        super().__init__(shards, batch_tokens, seed, share)
        self._sampler: tuple[Tokenizer, float, int] | None = None
        self._last_sides: tuple[int, npt.NDArray[np.int32]] | None = None

    def lengths(self, epoch: int) -> list[npt.NDArray[Any]]:
        sources, targets = self._sides(epoch)
        return [sources + 1, targets + 2]

    def sample_subwords(self, tokenizer: Tokenizer, amount: float, longest: int) -> None:
        """From now on cut each sentence anew each time it is read.

        A pair of which a side would then have more than `longest` tokens, for which there may be no room, stays as it is.
        """
        self._sampler = (tokenizer, amount, longest)

    def read(self, numbers: npt.NDArray[np.int64], epoch: int) -> Pairs:
        sources, targets = zip(*(self._ids(int(n), epoch) for n in numbers), strict=True)
        return make_pairs(sources, targets, numbers.tolist())

    def _ids(self, number: int, epoch: int) -> Sequence[Sequence[int] | npt.NDArray[Any]]:
        if self._sampler is None:
            return self.shards.ids(number)
        tokenizer, amount, longest = self._sampler
        sides = tokenizer.sample(self.shards.text(number), amount, seed_of(self.seed, epoch, number))
        return sides if max(map(len, sides)) <= longest else self.shards.ids(number)

    def _sides(self, epoch: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Tokens of each source and each target, as they are cut in this epoch.

        What is cut at random is cut a second time to be read: that takes a twentieth of the time of learning from it on one
        core, where batches of like lengths before the cut would be a third padding.
        """
        if self._sampler is None:
            return self.shards.source_lengths, self.shards.target_lengths
        if self._last_sides is None or self._last_sides[0] != epoch:
            cuts = (len(side) for number in range(len(self.shards)) for side in self._ids(number, epoch))
            self._last_sides = epoch, np.fromiter(cuts, np.int32, 2 * len(self.shards))
        sides = self._last_sides[1]
        return sides[::2], sides[1::2]

    def _plan(self, epoch: int) -> Plan:
        return plan(*self._sides(epoch), self.batch_tokens, self.seed, epoch)


def seed_of(*choices: int) -> int:
    """A seed of its own for whatever these numbers name."""
    return int.from_bytes(hashlib.blake2b(repr(choices).encode(), digest_size=8).digest())
