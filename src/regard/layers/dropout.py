"""Two operations that torch does slowly on a processor, and that a training step of a small model is full of.

Both compute what the plain torch version computes (the tests hold them to it); on a GPU torch's own are used.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def dropout_mask(like: Tensor, rate: float) -> Tensor:
    """Zeros at `rate`, else 1 / (1 - rate): multiply by it to drop.

    One random byte decides for each number, where torch's bernoulli draws a float: the rate is thereby rounded to
    a 256th, and the scale follows the rounded rate, so that the mean is kept exactly.
    """
    if like.device.type != "cpu":
        return F.dropout(torch.ones_like(like), rate)
    cut = round(rate * 256)
    count = like.numel()
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    kept = words.view(torch.uint8)[:count].ge_(cut)
    return (kept * (256 / (256 - cut))).view(like.shape).to(like.dtype)


class Dropout(nn.Module):
    """Drop numbers during training, and nothing otherwise."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    @property
    def active(self) -> bool:
        """Whether anything would be dropped now."""
        return self.training and round(self.rate * 256) > 0

    def forward(self, x: Tensor) -> Tensor:
        return x * dropout_mask(x, self.rate) if self.active else x

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """`residual + dropout(x)` in one pass over memory."""
        if not self.active:
            return residual + x
        return torch.addcmul(residual, x.to(residual.dtype), dropout_mask(residual, self.rate))
