"""Texts in, vectors out: cut into ids, batch by length, hand them to an engine. No torch."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from regard.errors import ConfigError
from regard.text.arguments import texts_of
from regard.text.tokenizers.tokenizer import Tokenizer

Progress = Callable[[int, int], None]
"""Told how many texts are done, of how many."""
Pool = Literal["mean", "first"]
POOLS: tuple[Pool, ...] = ("mean", "first")
Ids = list[int]
"""A text as the tokenizer cuts it, without begin and end."""
T = TypeVar("T")


class TextReader(ABC):
    """What every engine's reader does alike.

    What it makes of a text does not depend on the texts beside it (but for rounding errors). Of a text that is longer
    than the model's positions the beginning is read, with a logged warning.
    """

    def __init__(self, tokenizer: Tokenizer, *, width: int, longest: int | None, batch_tokens: int) -> None:
        """`batch_tokens` are read together, padding counted; it changes speed, not results."""
        self.tokenizer = tokenizer
        self.batch_tokens = batch_tokens
        self._width = width
        self._longest = longest

    @abstractmethod
    def _vectors(self, rows: Sequence[Ids], pool: Pool) -> npt.NDArray[np.float32]:
        """The vectors of some texts that are not empty, vector_BW."""

    def embed(
        self,
        texts: str | Iterable[str],
        *,
        pool: Pool = "mean",
        normalize: bool = False,
        progress: Progress | None = None,
    ) -> npt.NDArray[np.float32]:
        """A vector for each text, as rows: the mean over its tokens, or the first token's; of one text, its vector.

        With `normalize` each has length 1, so that the product of two is their cosine. A blank text has a vector of
        zeros.
        """
        if pool not in POOLS:
            raise ConfigError(f"There is no pool {pool!r}. Use one of: {', '.join(POOLS)}.")
        given = texts_of(texts, "texts")
        found = np.zeros((len(given.texts), self._width), dtype=np.float32)
        for number, vector in self._each(given.texts, lambda rows: list(self._vectors(rows, pool)), progress):
            found[number] = vector
        if normalize:
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found[0] if given.alone else found

    def _each(
        self, texts: Sequence[str], read: Callable[[Sequence[Ids]], Sequence[T]], progress: Progress | None
    ) -> Iterator[tuple[int, T]]:
        """The number of every text that is not blank, the longest first, and what `read` makes of it in its batch."""
        rows = self._rows(texts)
        written = [n for n, text in enumerate(texts) if text.strip() and rows[n]]
        done = len(texts) - len(written)
        batches = list(_batches(written, [len(row) + 2 for row in rows], self.batch_tokens))
        results = self._mapped(read, [[rows[n] for n in batch] for batch in batches])
        for batch, result in zip(batches, results, strict=True):
            yield from zip(batch, result, strict=True)
            done += len(batch)
            if progress:
                progress(done, len(texts))

    def _mapped(
        self, read: Callable[[Sequence[Ids]], Sequence[T]], batches: Sequence[Sequence[Ids]]
    ) -> Iterator[Sequence[T]]:
        """What is read of each batch, in order; one after the other, unless an engine does better."""
        return map(read, batches)

    def _rows(self, texts: Sequence[str]) -> list[Ids]:
        rows = self.tokenizer.encode(texts)
        most = self._longest
        if most is None:
            return rows
        long = [n for n, row in enumerate(rows) if len(row) > most - 2]
        if long:
            logging.getLogger(__name__).warning(
                "%d of %d texts are longer than the %d tokens this model can read; only their beginnings count. "
                "The first one begins: %r",
                len(long), len(texts), most - 2, texts[long[0]][:60],
            )  # fmt: skip
        return [row[: most - 2] for row in rows]


def _batches(numbers: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """The numbers, longest first, in batches of no more than `tokens`, padding counted; never an empty batch."""
    left = sorted(numbers, key=lambda n: -lengths[n])
    while left:
        size = max(1, tokens // lengths[left[0]])
        yield left[:size]
        left = left[size:]
