"""The words that a batch's texts may consist of, if not all: each has a column among the scores of a search.

There is a column for every word that some sentence may need. A sentence sees only its own, so that its text does not depend
on the sentences beside it.

Shape letters: B sentences · C columns · R rows of a search.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class Columns:
    """Which words there are, and whose. The special tokens are among them, and so keep their places, the first."""

    def __init__(self, candidates: Sequence[npt.NDArray[np.int64]], device: torch.device) -> None:
        """`candidates` are each sentence's words, in the vocabulary's order."""
        word_C = np.unique(np.concatenate(candidates))
        bias_BC = np.full((len(candidates), len(word_C)), -math.inf, np.float32)
        for row_C, own in zip(bias_BC, candidates, strict=True):
            row_C[np.searchsorted(word_C, own)] = 0
        self.word_C = torch.from_numpy(word_C).to(device)
        self.fewest = min(map(len, candidates))
        """Words of the sentence that has the fewest."""
        self._bias_BC = torch.from_numpy(bias_BC).to(device)

    def hide_(self, logits_RC: Tensor, sentence_R: Tensor) -> Tensor:
        """Set to -inf, in place, the words that are not of a row's sentence."""
        return logits_RC.add_(self._bias_BC[sentence_R])

    def of(self, words: Tensor) -> Tensor:
        """The columns of words that are there."""
        return torch.searchsorted(self.word_C, words.contiguous())
