"""Two operations that torch does slowly on a processor, and that a training step of a small model is full of.

Both compute what the plain torch version computes (the tests hold them to it); on a GPU torch's own are used.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Rows of scores computed at a time: so many that the matrix product is efficient, so few that they stay in cache.
_SCORES_AT_A_TIME = 2**22


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


def smoothed_cross_entropy(hidden_NW: Tensor, weight_VW: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy of `hidden @ weight.T`, summed over tokens.

    The scores over the vocabulary are the largest tensor of a training step. They are never kept: each chunk's
    loss and gradient are computed together while its scores are in cache.
    """
    if torch.is_grad_enabled() and (hidden_NW.requires_grad or weight_VW.requires_grad):
        total: Tensor = _SmoothedCrossEntropy.apply(hidden_NW, weight_VW, target_N, smoothing)  # type: ignore[no-untyped-call]
        return total
    losses = [_loss((h @ weight_VW.T).float(), t, smoothing)[0] for h, t in _chunks(hidden_NW, weight_VW, target_N)]
    return torch.stack(losses).sum() if losses else hidden_NW.new_zeros(())


def _chunks(hidden_NW: Tensor, weight_VW: Tensor, target_N: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
    rows = max(64, _SCORES_AT_A_TIME // weight_VW.shape[0])
    return zip(torch.split(hidden_NW, rows), torch.split(target_N, rows), strict=True)


def _loss(scores_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The chunk's summed loss, and the probabilities it came from.

    The logarithm is taken of each row's highest probability, which cannot underflow, instead of a second pass of
    exponentials over the vocabulary.
    """
    probabilities_NV = scores_NV.softmax(-1)
    log_of_sum_N = scores_NV.amax(-1) - probabilities_NV.amax(-1).log()
    right_N = scores_NV.gather(1, target_N[:, None])[:, 0]
    loss = (log_of_sum_N - (1 - smoothing) * right_N).sum()
    if smoothing:
        loss = loss - smoothing / scores_NV.shape[1] * scores_NV.sum()
    return loss, probabilities_NV


class _SmoothedCrossEntropy(torch.autograd.Function):
    """d loss / d scores = softmax(scores) - smoothed target; both gradients follow by two products."""

    @staticmethod
    def forward(ctx, hidden_NW, weight_VW, target_N, smoothing):  # type: ignore[no-untyped-def]
        device = hidden_NW.device.type
        compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_NW.dtype
        hidden, weight = hidden_NW.detach().to(compute), weight_VW.detach().to(compute)
        total = torch.zeros((), device=hidden.device)
        hidden_gradient = torch.empty_like(hidden)
        weight_gradient = torch.zeros_like(weight_VW)
        done = 0
        with torch.autocast(device, enabled=False):
            for h, t in _chunks(hidden, weight, target_N):
                loss, error = _loss((h @ weight.T).float(), t, smoothing)
                total += loss
                if smoothing:
                    error -= smoothing / weight.shape[0]
                error[torch.arange(len(t), device=t.device), t] -= 1 - smoothing
                error = error.to(compute)
                torch.mm(error, weight, out=hidden_gradient[done : done + len(t)])
                done += len(t)
                if weight_gradient.dtype == compute:
                    weight_gradient.addmm_(error.T, h)
                else:
                    weight_gradient += error.T @ h
        ctx.save_for_backward(hidden_gradient.to(hidden_NW.dtype), weight_gradient)
        return total

    @staticmethod
    def backward(ctx, upstream):  # type: ignore[no-untyped-def]
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * upstream, weight_gradient * upstream, None, None
