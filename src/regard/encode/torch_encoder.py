"""A torch model that reads, with its tokenizer: the ground of everything it is asked for."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.encode.embed import Ids, Pool, TextReader
from regard.errors import DataError
from regard.interpret.recording import Watched, trace_reading
from regard.interpret.trace import Facts, Trace
from regard.models.bert import Bert, Classifier
from regard.text.arguments import text_of
from regard.text.batching.batch import pad
from regard.text.tokenizers.tokenizer import Tokenizer


class Read(NamedTuple):
    """Some texts, as the model read them."""

    ids_BT: Tensor
    lengths_B: Tensor
    hidden_BTW: Tensor


class ModelReader(TextReader):
    """Reads with torch, and shows where the model looks."""

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
        super().__init__(tokenizer, width=model.body.width, longest=model.longest, batch_tokens=batch_tokens)
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.facts = facts or Facts(type(model).__name__)

    def attention(self, text: str) -> Trace:
        """Where the model looks as it reads the text.

        The result shows itself in a notebook, and has `svg()`, `text()`, `csv()` and `save("page.html")`.
        """
        return self.watched(text).trace

    def watched(self, text: str) -> Watched:
        """The same, with the modules that did it."""
        text = text_of(text, "text")
        (ids,) = self._rows([text])
        if not ids:
            raise DataError("There is nothing to look at in an empty text. Give a sentence.")
        training = self.model.training
        self.model.eval()
        try:
            return trace_reading(self.model, self.tokenizer, self.facts, ids, text)
        finally:
            self.model.train(training)

    def _vectors(self, rows: Sequence[Ids], pool: Pool) -> npt.NDArray[np.float32]:
        with self._reading(rows) as read:
            vector_BW = read.hidden_BTW[:, 0].float() if pool == "first" else _mean(read)
            return vector_BW.cpu().numpy()

    @contextmanager
    def _reading(self, rows: Sequence[Ids]) -> Iterator[Read]:
        """While some texts are being made use of, the model does not train."""
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                ids_BT, lengths_B = (tensor.to(self.device) for tensor in pad(rows, begin=True))
                yield Read(ids_BT, lengths_B, self.model(ids_BT, lengths_B).hidden_BTW)
        finally:
            self.model.train(training)

    def _ids(self, text: str) -> Tensor:
        """One text as the model reads it."""
        return pad(self._rows([text]), begin=True)[0].to(self.device)


def _mean(read: Read) -> Tensor:
    """Over the words of each text; begin and end count as words, as in the models published for this."""
    real_BT = torch.arange(read.ids_BT.shape[1], device=read.ids_BT.device) < read.lengths_B[:, None]
    return (read.hidden_BTW.float() * real_BT[..., None]).sum(1) / read.lengths_B[:, None]
