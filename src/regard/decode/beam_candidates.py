"""The likeliest next words of a search, found without ranking the vocabulary.

Scores over the vocabulary are the largest tensor of a search, and most of its time. So they are made a few rows at a
time, which stay in the processor's cache, and are read three times: for the sum of their exponentials, for the highest
of every few words, and once more where the highest were.

Shape letters, besides those of the search: X blocks of words · Y words of a block.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decode.constraints import Rules, refuse_nan
from regard.decode.logits import Words
from regard.layers.softmax import within_range

# Words whose highest score stands for them at first: about the root of the vocabulary over the candidates wanted.
_BLOCK = 64
# Rows scored at a time on a processor: so many that the matrix product is efficient, so few that the scores stay in cache.
_ROWS_AT_A_TIME = 100


class Candidates(NamedTuple):
    """Hypotheses one word longer: the log-probability, the row each continues and by which word; best first."""

    total_NC: Tensor
    row_NC: Tensor
    word_NC: Tensor


def best_candidates(
    words: Words,
    rules: Rules,
    hidden_RW: Tensor,
    total_NK: Tensor,
    written_RT: Tensor,
    sentence_N: Tensor,
    count: int,
) -> Candidates:
    """For each sentence, the `count` best of its rows' continuations (or all there are), rows of a sentence together.

    `words` makes scores of `hidden`, what the model made of the rows; `total` is their
    log-probability so far, `written` their words.
    """
    K = total_NK.shape[1]
    parts = []
    for first, last in _parts(hidden_RW, total_NK):
        rows = slice(first * K, last * K)
        sentence_R = sentence_N[first:last].repeat_interleave(K)
        logits_RV = rules.hide_(words(hidden_RW[rows]), sentence_R)
        offset_R = total_NK[first:last].flatten() - _log_of_sum(logits_RV)
        rules.forbid_(logits_RV, written_RT[rows], sentence_R)
        total_NC, row_NC, column_NC = _highest(logits_RV, offset_R, K, count)
        parts.append(Candidates(total_NC, row_NC + first * K, rules.word(column_NC)))
    found = parts[0] if len(parts) == 1 else Candidates(*(torch.cat(part) for part in zip(*parts, strict=True)))
    refuse_nan(found.total_NC)
    return found


def _parts(hidden_RW: Tensor, total_NK: Tensor) -> Iterator[tuple[int, int]]:
    """First and last of the sentences whose scores are made together."""
    N, K = total_NK.shape
    size = max(1, _ROWS_AT_A_TIME // K) if hidden_RW.device.type == "cpu" else N
    for first in range(0, N, size):
        yield first, min(N, first + size)


def _log_of_sum(logits_RV: Tensor) -> Tensor:
    """What is taken off a logit to make it a log-probability.

    The exponentials are summed as they are, which is three passes less, unless that leaves a float's range.
    """
    sum_R = logits_RV.exp().sum(-1)
    return sum_R.log_() if within_range(sum_R) else logits_RV.logsumexp(-1)


def _highest(logits_RV: Tensor, offset_R: Tensor, K: int, count: int) -> Candidates:
    """The `count` highest of logit + offset among each sentence's K rows.

    A block that holds one of them is itself among the `count` highest blocks, so that only these are looked into. Words
    at the vocabulary's end that make no block are looked at in any case.
    """
    R, V = logits_RV.shape
    N, X, device = R // K, V // _BLOCK, logits_RV.device
    highest_RX = logits_RV[:, : X * _BLOCK].view(R, X, _BLOCK).amax(2).add_(offset_R[:, None])
    block_NC = highest_RX.view(N, K * X).topk(min(count, K * X), sorted=False).indices
    row_NC = block_NC // max(1, X) + torch.arange(0, R, K, device=device)[:, None]
    # Each score by its place among all scores, row after row.
    inside_NC = row_NC * V + block_NC % max(1, X) * _BLOCK
    inside_NCY = inside_NC[:, :, None] + torch.arange(_BLOCK, device=device)
    outside_RY = torch.arange(R, device=device)[:, None] * V + torch.arange(X * _BLOCK, V, device=device)
    place_NY = torch.cat([inside_NCY.view(N, -1), outside_RY.view(N, -1)], 1)
    top = (logits_RV.take(place_NY) + offset_R.take(place_NY // V)).topk(min(count, K * V))
    place_NC = place_NY.gather(1, top.indices)
    return Candidates(top.values, place_NC // V, place_NC % V)
