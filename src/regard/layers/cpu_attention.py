"""Attention of short texts on a processor: six matrix products and three passes, and their gradients written out.

Torch's own kernels are made for long texts and spend, on sentences of twenty words, most of their time on bookkeeping;
its softmax takes a row of thirteen numbers one by one.
"""

import math

import torch
from torch import Tensor

from regard.layers.softmax import within_range


def attend_short(query_BHQD: Tensor, key_BHKD: Tensor, value_BHKD: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention; `mask` says where to look (bool) or is added to the scaled scores."""
    context: Tensor = _Attention.apply(query_BHQD, key_BHKD, value_BHKD, mask)  # type: ignore[no-untyped-call]
    return context


class _Attention(torch.autograd.Function):
    """Context = exponentials @ value / their sum. The exponentials are kept for the gradient, the weights never made.

    Letter: X batch and heads together, each with small products of its own.
    """

    @staticmethod
    def forward(ctx, query_BHQD, key_BHKD, value_BHKD, mask):  # type: ignore[no-untyped-def]
        query, key, value = (x.reshape(-1, *x.shape[2:]) for x in (query_BHQD, key_BHKD, value_BHKD))
        exponential_XQK, inverse_XQ1 = _exponentials(query, key, _added(mask, query_BHQD, key.shape[1]))
        context_XQD = torch.bmm(exponential_XQK, value).mul_(inverse_XQ1)
        ctx.save_for_backward(query, key, value, exponential_XQK, inverse_XQ1, context_XQD)
        ctx.mask = mask if mask is not None and mask.requires_grad else None
        return context_XQD.view(*query_BHQD.shape[:2], *context_XQD.shape[1:])

    @staticmethod
    def backward(ctx, upstream_BHQD):  # type: ignore[no-untyped-def]
        query, key, value, exponential_XQK, inverse_XQ1, context_XQD = ctx.saved_tensors
        B, H, Q, D = upstream_BHQD.shape
        scale = 1 / math.sqrt(D)
        upstream_XQD = upstream_BHQD.reshape(-1, Q, D) * inverse_XQ1
        own_XQ1 = (upstream_XQD * context_XQD).sum(-1, keepdim=True)
        value_gradient = torch.bmm(exponential_XQK.transpose(1, 2), upstream_XQD)
        # Of the scores before they were scaled: weight x (upstream @ value - own).
        score_gradient = torch.baddbmm(own_XQ1, upstream_XQD, value.transpose(1, 2), beta=-scale, alpha=scale)
        score_gradient.mul_(exponential_XQK)
        gradients = torch.bmm(score_gradient, key), torch.bmm(score_gradient.transpose(1, 2), query), value_gradient
        mask_gradient = None
        if ctx.mask is not None:
            mask_gradient = (score_gradient / scale).view(B, H, Q, -1).to(ctx.mask.dtype).sum_to_size(ctx.mask.shape)
        return *(gradient.view(B, H, *gradient.shape[1:]) for gradient in gradients), mask_gradient


def _added(mask: Tensor | None, query_BHQD: Tensor, keys: int) -> Tensor | None:
    """What the mask adds to the scaled scores, in their precision, ready to be broadcast over them."""
    if mask is None:
        return None
    B, H = query_BHQD.shape[:2]
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=query_BHQD.dtype).masked_fill_(~mask, -math.inf)
    mask = mask.detach().to(query_BHQD.dtype)
    if mask.dim() == 2 or len(mask) == mask.shape[1] == 1:
        return mask.reshape(1, -1, keys)
    return mask.expand(B, H, mask.shape[2], keys).reshape(B * H, -1, keys)


def _exponentials(query_XQD: Tensor, key_XKD: Tensor, added: Tensor | None) -> tuple[Tensor, Tensor]:
    """Of the scores, as they are or, if they would leave a float's range, less their row's highest; and 1 / row sum."""
    exponential_XQK = _scores(query_XQD, key_XKD, added).exp_()
    sum_XQ1 = exponential_XQK.sum(-1, keepdim=True)
    if not within_range(sum_XQ1):
        exponential_XQK = _scores(query_XQD, key_XKD, added)
        exponential_XQK.sub_(exponential_XQK.amax(-1, keepdim=True)).exp_()
        sum_XQ1 = exponential_XQK.sum(-1, keepdim=True)
    return exponential_XQK, sum_XQ1.reciprocal_()


def _scores(query_XQD: Tensor, key_XKD: Tensor, added: Tensor | None) -> Tensor:
    scale = 1 / math.sqrt(query_XQD.shape[-1])
    if added is None:
        return torch.bmm(query_XQD, key_XKD.transpose(1, 2)).mul_(scale)
    return torch.baddbmm(added, query_XQD, key_XKD.transpose(1, 2), alpha=scale)
