"""How likely a model holds given texts to be."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.base import Source, Writer
from regard.text.tokenizers.tokenizer import PAD

# Target positions whose words are scored at a time: the scores over a large vocabulary would not fit all at once.
_AT_A_TIME = 512


class Judged(NamedTuple):
    """What a model thinks of a text, reading it word by word."""

    log_probability: float
    """Natural logarithm, summed over tokens."""
    tokens: int
    """The end counted."""
    guessed: int
    """Tokens that it held likeliest, given the right ones before them."""


def judge(model: Writer, source: Source, target_BT: Tensor) -> list[Judged]:
    """Each of the targets, which begin with BEGIN; padding is not counted."""
    hidden_BTW = model(source, target_BT[:, :-1]).hidden_BTW
    next_BT = target_BT[:, 1:]
    real_BT = next_BT != PAD
    total_B = torch.zeros(len(target_BT), dtype=torch.float64)
    guessed_B = torch.zeros(len(target_BT), dtype=torch.long)
    parts = zip(
        torch.split(real_BT.nonzero()[:, 0], _AT_A_TIME),
        torch.split(hidden_BTW[real_BT], _AT_A_TIME),
        torch.split(next_BT[real_BT], _AT_A_TIME),
        strict=True,
    )
    for row_X, hidden_XW, next_X in parts:
        score_XV = model.words(hidden_XW).float()
        loss_X = cross_entropy(score_XV, next_X, reduction="none")
        total_B.index_add_(0, row_X.cpu(), -loss_X.cpu().double())
        guessed_B.index_add_(0, row_X.cpu(), (score_XV.argmax(1) == next_X).long().cpu())
    return list(map(Judged, total_B.tolist(), real_BT.sum(1).tolist(), guessed_B.tolist()))
