"""Attention: each word asks (query), every word answers (key) and gives (value) in proportion to how well they fit.

Two paths compute the same: torch's fused kernel, which never holds the weights, and the equations as the paper writes
them, which return the weights to be seen.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers import masks, recorder
from regard.layers.cpu_attention import attend_short
from regard.layers.positions import Relative

# Words up to which holding all scores costs less than the kernel's bookkeeping.
SHORT = 256
# Queries up to which, in float32, it does not: a search asks for a word or a beam at a time.
FEW = 8


def attend(
    query_BHQD: Tensor,
    key_BHKD: Tensor,
    value_BHKD: Tensor,
    may_look: Tensor | None = None,
    bias_BHQK: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention (Vaswani et al. 2017, equation 1): the context and the weights it was mixed with.

    `bias` is added to the scores before they are scaled; `scale` is 1 / sqrt(D) unless given.
    """
    scale = 1 / math.sqrt(query_BHQD.shape[-1]) if scale is None else scale
    scores_BHQK = torch.einsum("bhqd,bhkd->bhqk", query_BHQD, key_BHKD)
    if bias_BHQK is not None:
        scores_BHQK = scores_BHQK + bias_BHQK
    scores_BHQK = scores_BHQK * scale
    if may_look is not None:
        scores_BHQK = scores_BHQK.masked_fill(~may_look, -math.inf)
    weights_BHQK = scores_BHQK.softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights_BHQK, value_BHKD), weights_BHQK


def attend_fused(
    query_BHQD: Tensor,
    key_BHKD: Tensor,
    value_BHKD: Tensor,
    may_look: Tensor | None = None,
    bias_BHQK: Tensor | None = None,
    *,
    causal: bool = False,
) -> Tensor:
    """The same context by the fastest way there is, in memory linear in the length without a bias.

    That way is torch's kernel; but on a processor, for the short texts that most training is on, it takes several times
    as long as the few products it is made of, and in bfloat16 it has no fast path at all: see `attend_short`, and
    long texts are then computed in float32.
    """
    on_processor = query_BHQD.device.type == "cpu"
    queries, keys = query_BHQD.shape[2], key_BHKD.shape[2]
    few = queries <= FEW and query_BHQD.dtype == torch.float32
    short = on_processor and max(queries, keys) <= SHORT and not few
    if causal and (bias_BHQK is not None or short):
        may_look, causal = masks.causal(query_BHQD.shape[2], query_BHQD.device), False
    mask = may_look
    if bias_BHQK is not None:
        mask = bias_BHQK.float() / math.sqrt(query_BHQD.shape[-1])
        mask = mask if may_look is None else mask.masked_fill(~may_look, -math.inf)
    with torch.autocast(query_BHQD.device.type, enabled=False):
        if short:
            return attend_short(query_BHQD, key_BHKD, value_BHKD, mask)
        if on_processor:
            query_BHQD, key_BHKD, value_BHKD = query_BHQD.float(), key_BHKD.float(), value_BHKD.float()
        elif mask is not None and mask.dtype != torch.bool:
            mask = mask.to(query_BHQD.dtype)
        return F.scaled_dot_product_attention(query_BHQD, key_BHKD, value_BHKD, attn_mask=mask, is_causal=causal)


class MultiHead(nn.Module):
    """Several attentions side by side, each in its share of the width (section 3.2.2)."""

    def __init__(self, width: int, heads: int, span: int = 0) -> None:
        """`span` above 0 adds relative positions up to that distance."""
        super().__init__()
        self.width, self.heads = width, heads
        # Query, key and value in one matrix: one product instead of three where all come from the same words.
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.relative = Relative(width // heads, span) if span else None

    def project_all(self, x_BTW: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of the same words, by heads."""
        query, key, value = self._by_heads(self.project(x_BTW), 3)
        return query, key, value

    def project_query(self, x_BQW: Tensor) -> Tensor:
        """Query alone, for words that look into a memory."""
        (query,) = self._by_heads(
            F.linear(x_BQW, self.project.weight[: self.width], self.project.bias[: self.width]), 1
        )
        return query

    def project_memory(self, memory_BKW: Tensor) -> tuple[Tensor, Tensor]:
        """Key and value of a memory; when writing, computed once for a whole sentence."""
        weight, bias = self.project.weight[self.width :], self.project.bias[self.width :]
        key, value = self._by_heads(F.linear(memory_BKW, weight, bias), 2)
        return key, value

    def forward(
        self,
        query_BHQD: Tensor,
        key_BHKD: Tensor,
        value_BHKD: Tensor,
        real_BK: Tensor | None = None,
        *,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The context, heads joined, and the weights if asked for. With `causal`, queries see earlier keys only."""
        bias = self.relative(query_BHQD, key_BHKD.shape[2]) if self.relative else None
        may_look = real_BK[:, None, None, :] if real_BK is not None else None
        seen = None
        if weights:
            if causal:
                may_look = masks.causal(query_BHQD.shape[2], query_BHQD.device)
            context, seen = attend(query_BHQD, key_BHKD, value_BHKD, may_look, bias)
            if recorder.watched():
                scale = 1 / math.sqrt(query_BHQD.shape[-1])
                recorder.tell(
                    recorder.Look(self, query_BHQD, key_BHKD, value_BHKD, seen, context, scale, may_look, bias)
                )
        else:
            context = attend_fused(query_BHQD, key_BHKD, value_BHKD, may_look, bias, causal=causal)
        return self.join(recorder.heard(self, context).transpose(1, 2).flatten(2)), seen

    def _by_heads(self, x_BTW: Tensor, parts: int) -> tuple[Tensor, ...]:
        batch, length, _ = x_BTW.shape
        return x_BTW.view(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
