"""R-Drop (Liang et al. 2021): two dropouts of the same text are to give the same probabilities.

The scores over the vocabulary are never all kept, as in `fast`: the loss and the gradient of some rows are computed
together, and then those of the next.
"""

import torch
from torch import Tensor

from regard.training.losses.label_smoothing import chunks, exponentials

_HELD = 4  # tensors of scores at the same time


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
    """With D = (p - q) . gap, gap = scores of p - scores of q:  d D / d scores of p = (p - q) + p (gap - p . gap).

    As in `fast`, the right word is apart, a row's factors and what the smoothing adds to every word are applied to the
    gradients, and the rest is computed in the precision of the products.
    """

    @staticmethod
    def forward(ctx, first_NW, second_NW, weight_VW, target_N, smoothing, alpha):  # type: ignore[no-untyped-def]
        device = first_NW.device.type
        compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else first_NW.dtype
        first, second, weight = (tensor.detach().to(compute) for tensor in (first_NW, second_NW, weight_VW))
        first_gradient, second_gradient = torch.empty_like(first_NW), torch.empty_like(second_NW)
        weight_gradient = torch.zeros_like(weight_VW)
        total = torch.zeros((), device=first.device)
        share, right, pull = smoothing / 2 / len(weight), (1 - smoothing) / 2, alpha / 4
        with torch.autocast(device, enabled=False):
            words_W = weight.sum(0, dtype=torch.float32)
            rows_W = first.sum(0, dtype=torch.float32) + second.sum(0, dtype=torch.float32)
            for first_RW, second_RW, target_R, first_gradient_RW, second_gradient_RW in chunks(
                weight, first, second, target_N, first_gradient, second_gradient, held=_HELD
            ):
                gap_RV = (first_RW - second_RW) @ weight.T
                gap_R = gap_RV.gather(1, target_R[:, None])[:, 0].float()
                p, q = (exponentials(hidden_RW, weight, target_R) for hidden_RW in (first_RW, second_RW))
                p_gap_R, q_gap_R = (
                    (torch.linalg.vecdot(these.others_RV, gap_RV).float() + these.right_R * gap_R) / these.sum_R
                    for these in (p, q)
                )
                total += pull * (p_gap_R - q_gap_R).sum()
                for these, others, hidden_RW, gradient_RW, sign, mean_R in (
                    (p, q, first_RW, first_gradient_RW, pull, p_gap_R),
                    (q, p, second_RW, second_gradient_RW, -pull, q_gap_R),
                ):
                    total += (0.5 * (these.sum_R.log() + these.highest_R) - right * these.score_R).sum()
                    own_R, inverse_R = 0.5 + pull - sign * mean_R, 1 / these.sum_R
                    score_gradient_RV = (gap_RV * sign).add_(own_R.to(compute)[:, None]).mul_(these.others_RV)
                    theirs_R = pull * these.sum_R / others.sum_R
                    score_gradient_RV.addcmul_(others.others_RV, theirs_R.to(compute)[:, None], value=-1)
                    error_R = (these.right_R * (own_R + sign * gap_R) - others.right_R * theirs_R) * inverse_R - right
                    gradient_RW.copy_(score_gradient_RV @ weight).mul_(inverse_R[:, None]).sub_(share * words_W)
                    gradient_RW.addcmul_(weight[target_R].to(gradient_RW.dtype), error_R[:, None].to(gradient_RW.dtype))
                    weight_gradient += score_gradient_RV.T @ (hidden_RW * inverse_R[:, None]).to(compute)
                    weight_gradient.index_add_(0, target_R, (hidden_RW * error_R[:, None]).to(weight_gradient.dtype))
            total -= share * (words_W @ rows_W)
            weight_gradient -= share * rows_W
        ctx.save_for_backward(first_gradient, second_gradient, weight_gradient)
        return total

    @staticmethod
    def backward(ctx, upstream):  # type: ignore[no-untyped-def]
        return *(gradient * upstream for gradient in ctx.saved_tensors), None, None, None
