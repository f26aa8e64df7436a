"""Minimum risk training (Shen et al. 2016): of the texts that a model would write, the better ones are made likelier.

Cross-entropy judges a model by the true words before each word; what counts in the end is the whole text that it writes
itself. So it writes several, each is compared with the true one, and the loss is the mean of their errors, weighted by how
likely the model thinks each of them.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.models.interface import Source, Writer
from regard.text.batch import Pairs, pad
from regard.training.loss import Carried, Loss, Objective, at_words, pairs_loss

Written = list[tuple[list[int], float]]
"""Different texts for the same source, as ids, and how wrong each is: 0 if nothing is, 1 if all is."""
Write = Callable[[Writer, Pairs], list[Written]]
"""What a model writes for each source of a batch."""


def at_risk(write: Write, weight: float) -> Objective:
    """Cross-entropy, and beside it, in training, the risk of what the model writes: `weight` times, for each true word."""

    def objective(model: Writer, batch: Pairs, smoothing: float, carried: Carried = ()) -> Loss:
        loss = pairs_loss(model, batch, smoothing).total
        if not model.training:
            return Loss(loss)
        risk_B = expected_risk(model, batch, write(model, batch))
        words_B = (batch.target_lengths_B - 1).clamp(min=0)  # none where another process has all of the batch
        return Loss(loss + weight * (risk_B * words_B).sum())

    return objective


def expected_risk(model: Writer, batch: Pairs, written: list[Written]) -> Tensor:
    """For each source, how wrong what was written is on average, the likelier texts counting more.

    Likelihoods are compared by their geometric mean over words (Edunov et al. 2018): else short texts would win.
    """
    device = batch.source_BS.device
    counts_B = torch.tensor([len(texts) for texts in written], device=device)
    row_R = torch.arange(len(written), device=device).repeat_interleave(counts_B)
    target_RT, lengths_R = (part.to(device) for part in pad([ids for texts in written for ids, _ in texts], begin=True))
    wrong_R = torch.tensor([wrong for texts in written for _, wrong in texts], device=device)
    output = model(Source(batch.source_BS[row_R], batch.source_lengths_B[row_R]), target_RT[:, :-1])
    (hidden_NW,), label_N = at_words(target_RT[:, 1:], output.hidden_BTW)
    word_N = -F.cross_entropy(model.words(hidden_NW).float(), label_N, reduction="none")
    text_N = torch.arange(len(row_R), device=device).repeat_interleave(lengths_R - 1)
    likely_R = torch.zeros(len(row_R), device=device).index_add(0, text_N, word_N) / (lengths_R - 1)
    share_BK = _by_source(likely_R, row_R, counts_B, -torch.inf).softmax(1)
    return (share_BK * _by_source(wrong_R, row_R, counts_B, 0.0)).sum(1)


def _by_source(value_R: Tensor, row_R: Tensor, counts_B: Tensor, filler: float) -> Tensor:
    """The texts' values, a row for each source, filled up where it has fewer texts than others."""
    first_B = counts_B.cumsum(0) - counts_B
    column_R = torch.arange(len(row_R), device=row_R.device) - first_B[row_R]
    value_BK = value_R.new_full((len(counts_B), int(counts_B.max())), filler)
    return value_BK.index_put((row_R, column_R), value_R)
