"""The rules of writing: which words may come next. Shared by every search.

Shape letters, besides those of the models: R rows of a search (sentences x beams, or x samples) · P prefix positions ·
V vocabulary, or the columns for some words of it.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.decode.active_vocabulary import Columns
from regard.decode.hypothesis import most_tokens
from regard.errors import TrainingError
from regard.models.base import Source, Writer
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, SPECIALS, UNKNOWN


def log_probabilities(logits_RV: Tensor) -> Tensor:
    """Logits -> log-probabilities, in full precision."""
    scores_RV = logits_RV.float().log_softmax(-1)
    # One bad logit spoils its whole row in the softmax, so that one column shows it.
    refuse_nan(scores_RV[:, END])
    return scores_RV


def refuse_nan(scores: Tensor) -> None:
    """A model whose scores are not numbers can write nothing."""
    if bool(scores.isnan().any()):
        raise TrainingError(
            "The model's word scores are not numbers (NaN), so nothing can be written: its training has diverged, or "
            "its weights are damaged. Use an earlier checkpoint, or train again with a lower train.rate."
        )


class Rules:
    """What each sentence of a batch may write next. A pure function of settings, source and prefix, and a model's room.

    A text has at least `min_length` and at most `max_length` tokens, the end not counted. A prefix stands above
    all other rules: it is written as given, and the limit grows to hold it.
    """

    def __init__(
        self,
        config: DecodeConfig,
        source: Source,
        prefixes: Sequence[Sequence[int]] = (),
        model: Writer | None = None,
        columns: Columns | None = None,
    ) -> None:
        """`model` is asked only how long a text it can hold; `columns` say what words scores are of, if not of all."""
        device = source.lengths_B.device
        B = len(source.lengths_B)
        assert len(prefixes) in (0, B), "a prefix for every sentence, or none"
        lengths = [len(prefix) for prefix in prefixes] or [0] * B
        self._columns = columns
        self._min_length = config.min_length
        self._no_repeat = config.no_repeat
        self._longest_prefix = max(lengths, default=0)
        self._prefix_length_B = torch.tensor(lengths, device=device)
        self._prefix_BP = torch.full((B, self._longest_prefix), PAD, device=device)
        for row, prefix in enumerate(prefixes):
            self._prefix_BP[row, : len(prefix)] = self._column(
                torch.tensor(list(prefix), device=device, dtype=torch.long)
            )
        limits = [
            # The source ends with an end token, which is not counted.
            most_tokens(config, source_length - 1, prefix_length, model.places(source_length) if model else None)
            for source_length, prefix_length in zip(source.lengths_B.tolist(), lengths, strict=True)
        ]
        self.limit_B = torch.tensor(limits, device=device)
        """Tokens each sentence may have, the end not counted."""
        self._least_limit = int(self.limit_B.min()) if B else 0

    def hide_(self, logits_RV: Tensor, sentence_R: Tensor) -> Tensor:
        """Set to -inf, in place, the words that are no candidates of a row's sentence: they have no probability."""
        return self._columns.hide_(logits_RV, sentence_R) if self._columns else logits_RV

    def word(self, column: Tensor) -> Tensor:
        """The words whose scores stand in these columns."""
        return self._columns.word_C[column] if self._columns else column

    def _column(self, word: Tensor) -> Tensor:
        return self._columns.of(word) if self._columns else word

    def forbid_(self, scores_RV: Tensor, written_RT: Tensor, sentence_R: Tensor) -> Tensor:
        """Set to -inf, in place, the words a row may not write next; every row keeps at least one.

        In place and by columns, because the scores are the largest tensor of a search: a mask of their size, and a
        copy without what it hides, would take as long as the softmax.
        """
        length = written_RT.shape[1]
        end_R = scores_RV[:, END].clone()
        forced_R = forced_word_X = forced_score_X = None
        if length < self._longest_prefix:
            forced_R = length < self._prefix_length_B[sentence_R]
            forced_word_X = self._prefix_BP[sentence_R[forced_R], length]
            forced_score_X = scores_RV[forced_R, forced_word_X].clone()

        self._forbid_words_(scores_RV, written_RT, end_R)
        if length >= self._least_limit:
            full_R = self.limit_B[sentence_R] <= length
            scores_RV[full_R] = -math.inf
            scores_RV[full_R, END] = end_R[full_R]
        if forced_R is not None and forced_score_X is not None:
            scores_RV[forced_R] = -math.inf
            scores_RV[forced_R, forced_word_X] = forced_score_X
        return scores_RV

    def _forbid_words_(self, scores_RV: Tensor, written_RT: Tensor, end_R: Tensor) -> None:
        length = written_RT.shape[1]
        if self._no_repeat:
            _forbid_repeats_(scores_RV, self._column(written_RT), self._no_repeat)
        unknown_R = scores_RV[:, UNKNOWN].clone()
        for word in (PAD, UNKNOWN, BEGIN):
            scores_RV[:, word] = -math.inf
        if length < self._min_length:
            scores_RV[:, END] = -math.inf
        # Only when as many words have been written as there are can none be left; looking would cost time.
        there = self._columns.fewest if self._columns else scores_RV.shape[1]
        if there - len(SPECIALS) <= (length if self._no_repeat else 0):
            # Nobody likes to read an unknown word, so it is the last resort; to end too early is the very last.
            stuck_R = scores_RV.amax(1) == -math.inf
            scores_RV[stuck_R, UNKNOWN] = unknown_R[stuck_R]
            stuck_R &= unknown_R == -math.inf
            scores_RV[stuck_R, END] = end_R[stuck_R]


def _forbid_repeats_(scores_RV: Tensor, written_RT: Tensor, n: int) -> None:
    """Forbid each word that would complete n words the row has already written."""
    T = written_RT.shape[1]
    if n > T:
        return
    windows_RXN = written_RT.unfold(1, n, 1)  # every n words in a row, X of them
    latest_RN = written_RT[:, T - n + 1 :]
    same_RX = (windows_RXN[:, :, :-1] == latest_RN[:, None]).all(-1)
    row_Y, window_Y = same_RX.nonzero(as_tuple=True)
    scores_RV[row_Y, windows_RXN[row_Y, window_Y, -1]] = -math.inf
