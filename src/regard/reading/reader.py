"""Texts in, vectors out: cut into ids, batch by length, read; the ground of everything a reading model does."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.errors import DataError
from regard.models.bert import Bert, Classifier
from regard.see.trace import Facts, Trace
from regard.see.tracing import Watched, trace_reading
from regard.text.batch import pad
from regard.text.tokenizer import Tokenizer

Progress = Callable[[int, int], None]
"""Told how many texts are done, of how many."""
Pool = Literal["mean", "first"]


class Read(NamedTuple):
    """Some of the texts, as the model read them."""

    numbers: list[int]
    """Which of the texts these are, counted from 0."""
    ids_BT: Tensor
    lengths_B: Tensor
    hidden_BTW: Tensor


class TextReader:
    """A model that reads, with its tokenizer.

    What it makes of a text does not depend on the texts beside it (but for rounding errors). Of a text that is longer
    than the model's positions the beginning is read, with a logged warning.
    """

    def __init__(
        self,
        model: Bert | Classifier,
        tokenizer: Tokenizer,
        device: torch.device | str = "cpu",
        *,
        batch_tokens: int = 8192,
        facts: Facts | None = None,
    ) -> None:
        """`batch_tokens` are read together, padding counted; it changes speed, not results. `facts` are for pictures."""
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.tokenizer = tokenizer
        self.batch_tokens = batch_tokens
        self.facts = facts or Facts(type(model).__name__)

    def attention(self, text: str) -> Trace:
        """Where the model looks as it reads the text.

        The result shows itself in a notebook, and has `svg()`, `text()`, `csv()` and `save("page.html")`.
        """
        return self.watched(text).trace

    def watched(self, text: str) -> Watched:
        """The same, with the modules that did it."""
        (ids,) = self._rows([text])
        if not ids:
            raise DataError("There is nothing to look at in an empty text. Give a sentence.")
        training = self.model.training
        self.model.eval()
        try:
            return trace_reading(self.model, self.tokenizer, self.facts, ids, text)
        finally:
            self.model.train(training)

    def embed(
        self,
        texts: Sequence[str],
        *,
        pool: Pool = "mean",
        normalize: bool = False,
        progress: Progress | None = None,
    ) -> npt.NDArray[np.float32]:
        """A vector for each text, as rows: the mean over its tokens, or the first token's.

        With `normalize` each has length 1, so that the product of two is their cosine. A blank text has a vector of
        zeros.
        """
        found = np.zeros((len(texts), self.model.body.width), dtype=np.float32)

        def keep(read: Read) -> None:
            vector_BW = read.hidden_BTW[:, 0].float() if pool == "first" else _mean(read)
            if normalize:
                vector_BW = torch.nn.functional.normalize(vector_BW, dim=1)
            found[read.numbers] = vector_BW.cpu().numpy()

        self._read(texts, keep, progress)
        return found

    def _read(self, texts: Sequence[str], use: Callable[[Read], None], progress: Progress | None) -> None:
        """Have the model read all texts that are not blank, the longest first, and `use` each batch."""
        rows = self._rows(texts)
        written = [n for n, text in enumerate(texts) if text.strip() and rows[n]]
        done = len(texts) - len(written)
        training = self.model.training
        self.model.eval()
        try:
            for batch in _batches(written, [len(row) + 2 for row in rows], self.batch_tokens):
                ids_BT, lengths_B = (tensor.to(self.device) for tensor in pad([rows[n] for n in batch], begin=True))
                with torch.inference_mode():
                    use(Read(batch, ids_BT, lengths_B, self.model(ids_BT, lengths_B).hidden_BTW))
                done += len(batch)
                if progress:
                    progress(done, len(texts))
        finally:
            self.model.train(training)

    def _ids(self, text: str) -> Tensor:
        """One text as the model reads it."""
        return pad(self._rows([text]), begin=True)[0].to(self.device)

    def _rows(self, texts: Sequence[str]) -> list[list[int]]:
        rows = self.tokenizer.encode(texts)
        most = self.model.longest
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


def _mean(read: Read) -> Tensor:
    """Over the words of each text; begin and end count as words, as in the models published for this."""
    real_BT = torch.arange(read.ids_BT.shape[1], device=read.ids_BT.device) < read.lengths_B[:, None]
    return (read.hidden_BTW.float() * real_BT[..., None]).sum(1) / read.lengths_B[:, None]


def _batches(numbers: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """The numbers, longest first, in batches of no more than `tokens`, padding counted; never an empty batch."""
    left = sorted(numbers, key=lambda n: -lengths[n])
    while left:
        size = max(1, tokens // lengths[left[0]])
        yield left[:size]
        left = left[size:]
