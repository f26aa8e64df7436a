"""How surprised a language model is by a text."""

import logging
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.decode.generator import Author
from regard.decode.translator import evaluating
from regard.text.arguments import mended
from regard.text.batching.passages import PassageLoader
from regard.text.plain_text import Documents
from regard.text.shards.token_stream import Stream
from regard.text.tokenizers.tokenizer import BEGIN, END
from regard.training.losses.cross_entropy import passages_loss, whole_loss

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class TextReport:
    """What a language model makes of a text it did not write."""

    tokens: int
    """Predicted; the end of each document is one of them."""
    bytes: int
    loss: float
    """Average negative log-likelihood of a token, in nats."""
    perplexity: float
    """Between how many words it hesitates, on average."""
    bits_per_byte: float
    """The same for each byte of the text: comparable between tokenizers."""

    def as_table(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For the terminal."""
        return [
            f"perplexity {self.perplexity:.2f}",
            f"loss {self.loss:.4f} nats per token",
            f"bits per byte {self.bits_per_byte:.4f}",
            f"{self.tokens:,} tokens, {self.bytes:,} bytes",
        ]


def perplexity(author: Author, documents: Documents, passage: int) -> TextReport:
    """Read a text in passages of so many tokens, as in training; a recurrent model carries over what it remembers."""
    ids: list[int] = []
    size, opened = 0, False
    for line in documents.lines():
        ids += [] if opened else [BEGIN]
        ids += author.tokenizer.encode([line.text])[0]
        ids += [END] if line.closes else []
        opened = not line.closes
        size += len(mended(line.text).encode())
    if documents.skipped.total:
        logging.getLogger(__name__).warning("%s: %s", documents.name, documents.skipped)
    model = author.model
    stream = Stream(np.array(ids, dtype=np.uint32), size)
    loader = PassageLoader(stream, passage, BATCH_TOKENS, seed=0, carried=model.carries, shuffle=False)
    with evaluating(model):
        total, tokens = whole_loss(passages_loss, model, loader, author.device)
    mean = total / tokens
    return TextReport(tokens, size, mean, math.exp(min(mean, 700.0)), total / math.log(2) / size)
