"""Very many texts -> ids as flat arrays, and fast: a word is cut once, and remembered for the next time it comes.

Few words are most of any text. BPE cuts each word by itself, so a text's ids are its words' ids, one after the other.
"""

from array import array
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regard.text.tokenizers.tokenizer import SPACE, Tokenizer

MOST_WORDS = 200_000  # remembered: some forty megabytes


class Encoded(NamedTuple):
    """The ids of some texts, one after the other."""

    lengths: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]

    def lists(self) -> list[list[int]]:
        """The ids of each text."""
        ends = np.cumsum(self.lengths, dtype=np.int64)
        return [ids.tolist() for ids in np.split(self.ids, ends)[:-1]]


class BulkEncoder:
    """Finds the same ids as the tokenizer itself."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, bytes] = {}

    def encode(self, texts: Sequence[str], *, threads: int = 1) -> Encoded:
        """Ids of each text, without begin and end."""
        if not self._tokenizer.cuts_words_alone or any("\n" in text for text in texts):
            ids = self._tokenizer.encode(texts, threads=threads)
            lengths = np.array([len(one) for one in ids], np.int32)
            return Encoded(lengths, np.fromiter(chain.from_iterable(ids), np.int32))
        words = [_words(text) for text in texts]
        wanted = set(chain.from_iterable(words))
        if len(self._known) + len(wanted) > MOST_WORDS:
            self._known.clear()
        new = [word for word in wanted if word not in self._known]
        cut = self._tokenizer.encode(new, threads=threads)
        self._known.update((word, array("i", ids).tobytes()) for word, ids in zip(new, cut, strict=True))
        found = [b"".join(map(self._known.__getitem__, one)) for one in words]
        lengths = np.array([len(one) for one in found], np.int32) // np.int32(4)
        return Encoded(lengths, np.frombuffer(b"".join(found), np.int32))


def _words(text: str) -> list[str]:
    """The words that can be cut one by one; a text with other spaces between them is taken for one word."""
    words = text.split(" ")
    return [text] if "" in words or SPACE in text else words
