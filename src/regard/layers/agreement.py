"""R-Drop (Liang et al. 2021): two dropouts of the same text are to give the same probabilities.

The scores over the vocabulary are never all kept, as in `fast`: the loss and the gradient of some rows are computed
together, and then those of the next.
"""

import torch
from torch import Tensor

from regard.layers.fast import chunks

_HELD = 8  # tensors of scores at the same time


def divergences(first_NV: Tensor, second_NV: Tensor) -> Tensor:
    """KL(p | q) + KL(q | p) of each row, p and q being the softmax of the two scores.

    The two sums of exponentials cancel: it is the sum over words of (p - q) (score of p - score of q).
    """
    return ((first_NV.softmax(1) - second_NV.softmax(1)) * (first_NV - second_NV)).sum(1)


def agreement_loss(
    first_NW: Tensor, second_NW: Tensor, weight_VW: Tensor, target_N: Tensor, smoothing: float, alpha: float
) -> Tensor:
    """Half of the paper's loss, so that it is that of one pass if both agree; summed over tokens.

    The mean of both passes' label-smoothed cross-entropy, and alpha / 2 times the mean of the two divergences.
    """
    total: Tensor = _AgreementLoss.apply(first_NW, second_NW, weight_VW, target_N, smoothing, alpha)  # type: ignore[no-untyped-call]
    return total


class _AgreementLoss(torch.autograd.Function):
    """With D = (p - q) . gap, gap = scores of p - scores of q:  d D / d scores of p = (p - q) + p (gap - p . gap)."""

    @staticmethod
    def forward(ctx, first_NW, second_NW, weight_VW, target_N, smoothing, alpha):  # type: ignore[no-untyped-def]
        device = first_NW.device.type
        compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else first_NW.dtype
        first, second, weight = (tensor.detach().to(compute) for tensor in (first_NW, second_NW, weight_VW))
        first_gradient, second_gradient = torch.empty_like(first), torch.empty_like(second)
        weight_gradient = torch.zeros_like(weight_VW)
        total = torch.zeros((), device=first.device)
        share, right = smoothing / len(weight), (1 - smoothing) / 2
        with torch.autocast(device, enabled=False):
            for first_RW, second_RW, target_R, first_gradient_RW, second_gradient_RW in chunks(
                weight, first, second, target_N, first_gradient, second_gradient, held=_HELD
            ):
                p_score_RV, q_score_RV = (first_RW @ weight.T).float(), (second_RW @ weight.T).float()
                gap_RV = (p_score_RV - q_score_RV).mul_(alpha / 4)
                p_log_RV, q_log_RV = p_score_RV.log_softmax(1), q_score_RV.log_softmax(1)
                p_RV, q_RV = p_log_RV.exp(), q_log_RV.exp()
                difference_RV = p_RV - q_RV
                total += (difference_RV * gap_RV).sum()
                for sign, hidden_RW, log_RV, chance_RV, gradient_RW in (
                    (1, first_RW, p_log_RV, p_RV, first_gradient_RW),
                    (-1, second_RW, q_log_RV, q_RV, second_gradient_RW),
                ):
                    target_R1 = target_R[:, None]
                    total -= right * log_RV.gather(1, target_R1).sum() + share / 2 * log_RV.sum()
                    mean_R1 = (chance_RV * gap_RV).sum(1, keepdim=True)
                    score_gradient_RV = (gap_RV - mean_R1).mul_(sign).add_(0.5).mul_(chance_RV).sub_(share / 2)
                    score_gradient_RV.add_(difference_RV, alpha=sign * alpha / 4)
                    score_gradient_RV.scatter_add_(1, target_R1, score_gradient_RV.new_full(target_R1.shape, -right))
                    score_gradient_RV = score_gradient_RV.to(compute)
                    torch.mm(score_gradient_RV, weight, out=gradient_RW)
                    weight_gradient += score_gradient_RV.T @ hidden_RW
        ctx.save_for_backward(first_gradient.to(first_NW.dtype), second_gradient.to(second_NW.dtype), weight_gradient)
        return total

    @staticmethod
    def backward(ctx, upstream):  # type: ignore[no-untyped-def]
        return *(gradient * upstream for gradient in ctx.saved_tensors), None, None, None
