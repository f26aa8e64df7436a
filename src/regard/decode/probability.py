"""How likely a model holds given texts to be."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.interface import Source, Writer
from regard.text.tokenizer import PAD

# Target positions whose words are scored at a time: the scores over a large vocabulary would not fit all at once.
_AT_A_TIME = 512


def log_probabilities_of(model: Writer, source: Source, target_BT: Tensor) -> list[float]:
    """The natural logarithm of each target's probability; targets begin with BEGIN, and padding is not counted."""
    hidden_BTW = model(source, target_BT[:, :-1]).hidden_BTW
    next_BT = target_BT[:, 1:]
    real_BT = next_BT != PAD
    total_B = torch.zeros(len(target_BT), dtype=torch.float64)
    parts = zip(
        torch.split(real_BT.nonzero()[:, 0], _AT_A_TIME),
        torch.split(hidden_BTW[real_BT], _AT_A_TIME),
        torch.split(next_BT[real_BT], _AT_A_TIME),
        strict=True,
    )
    for row_X, hidden_XW, next_X in parts:
        loss_X = cross_entropy(model.words(hidden_XW).float(), next_X, reduction="none")
        total_B.index_add_(0, row_X.cpu(), -loss_X.cpu().double())
    return [float(total) for total in total_B]
