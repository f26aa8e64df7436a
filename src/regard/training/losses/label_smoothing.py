"""Label-smoothed cross-entropy that never keeps the scores over the vocabulary."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.layers.softmax import within_range

# Rows whose scores are computed at a time, and numbers they may be: each chunk adds to the gradient of every word's vector,
# so that many small ones take longer than a few large ones, though these leave the cache.
_ROWS, _SCORES = 1024, 2**26


def smoothed_cross_entropy(hidden_NW: Tensor, weight_VW: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy of `hidden @ weight.T`, summed over tokens.

    The scores over the vocabulary are the largest tensor of a training step. They are never kept: the loss and the
    gradient of some rows are computed together, and then those of the next.
    """
    if torch.is_grad_enabled() and (hidden_NW.requires_grad or weight_VW.requires_grad):
        total: Tensor = _SmoothedCrossEntropy.apply(hidden_NW, weight_VW, target_N, smoothing)  # type: ignore[no-untyped-call]
        return total
    losses = [
        F.cross_entropy((hidden @ weight_VW.T).float(), target, reduction="sum", label_smoothing=smoothing)
        for hidden, target in chunks(weight_VW, hidden_NW, target_N)
    ]
    return torch.stack(losses).sum() if losses else hidden_NW.new_zeros(())


def chunks(weight_VW: Tensor, *by_row: Tensor, held: int = 1) -> Iterable[tuple[Tensor, ...]]:
    """So many rows of each at a time that `held` tensors of their scores over the vocabulary are not too much to hold."""
    rows = max(1, min(_ROWS, _SCORES // (held * len(weight_VW))))
    return zip(*(torch.split(tensor, rows) for tensor in by_row), strict=True)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """d loss / d scores = softmax(scores) - smoothed target; both gradients follow by two products.

    Only the exponentials are computed for every word of every row. What then remains of the softmax is a factor of
    each row, of the target one word of each row, and of the smoothing a number that all words share; all three are
    added to the gradients, which are far smaller than the scores.
    """

    @staticmethod
    def forward(ctx, hidden_NW, weight_VW, target_N, smoothing):  # type: ignore[no-untyped-def]
        device = hidden_NW.device.type
        compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_NW.dtype
        hidden, weight = hidden_NW.detach().to(compute), weight_VW.detach().to(compute)
        error_N = torch.empty(len(hidden), device=hidden.device)  # of the right word: its probability - its target
        inverse_N = torch.empty_like(error_N)  # 1 / sum of exponentials
        hidden_gradient, weight_gradient = torch.empty_like(hidden), torch.zeros_like(weight_VW)
        total = torch.zeros((), device=hidden.device)
        with torch.autocast(device, enabled=False):
            for hidden_RW, target_R, gradient_RW, error_R, inverse_R in chunks(
                weight, hidden, target_N, hidden_gradient, error_N, inverse_N
            ):
                others_RV, right_R, sum_R, score_R, highest_R = exponentials(hidden_RW, weight, target_R)
                total += (sum_R.log() + highest_R - (1 - smoothing) * score_R).sum()
                error_R.copy_(right_R / sum_R - (1 - smoothing))
                torch.reciprocal(sum_R, out=inverse_R)
                torch.mm(others_RV, weight, out=gradient_RW)
                weight_gradient += others_RV.T @ (hidden_RW * inverse_R[:, None]).to(compute)
            share = smoothing / len(weight)
            words_W, rows_W = weight.sum(0, dtype=torch.float32), hidden.sum(0, dtype=torch.float32)
            total -= share * (words_W @ rows_W)
            hidden_gradient = torch.addcmul(-share * words_W, hidden_gradient, inverse_N[:, None])
            hidden_gradient.addcmul_(weight[target_N], error_N[:, None])
            weight_gradient -= share * rows_W
            weight_gradient.index_add_(0, target_N, (hidden * error_N[:, None]).to(weight_gradient.dtype))
        ctx.save_for_backward(hidden_gradient.to(hidden_NW.dtype), weight_gradient)
        return total

    @staticmethod
    def backward(ctx, upstream):  # type: ignore[no-untyped-def]
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient * upstream, weight_gradient * upstream, None, None


class Exponentials(NamedTuple):
    """Exponentials of the scores of some rows, with the right word apart.

    It may be nearly all of the sum: in bfloat16, rounding it would hide how little is missing.
    """

    others_RV: Tensor
    """Of all words but the right one, whose place is zero."""
    right_R: Tensor
    """Of the right word."""
    sum_R: Tensor
    """Of them all."""
    score_R: Tensor
    """The right word's score."""
    highest_R: Tensor
    """What was subtracted from the scores: the row's highest, if the exponentials would leave a float's range."""


def exponentials(hidden_RW: Tensor, weight_VW: Tensor, target_R: Tensor, *, shifted: bool = False) -> Exponentials:
    """Those of the scores `hidden @ weight.T`."""
    score_RV = hidden_RW @ weight_VW.T
    right_at_R = torch.arange(0, score_RV.numel(), len(weight_VW), device=target_R.device) + target_R
    score_R = score_RV.view(-1)[right_at_R].float()
    highest_R = torch.zeros_like(score_R)
    if shifted:
        highest_R = score_RV.amax(1).float()
        score_RV.sub_(highest_R[:, None])
    right_R = (score_R - highest_R).exp()
    others_RV = score_RV.exp_()
    others_RV.view(-1)[right_at_R] = 0.0  # scatter_ would copy all of them first
    sum_R = right_R + others_RV.sum(1).float()
    if not shifted and not within_range(sum_R):
        return exponentials(hidden_RW, weight_VW, target_R, shifted=True)
    return Exponentials(others_RV, right_R, sum_R, score_R, highest_R)
