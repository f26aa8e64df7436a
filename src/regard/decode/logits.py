"""From a model's last layer to a score for each word, by the fastest way there is: half of the work of a search.

Shape letters: R rows · W width · V vocabulary, or the columns for some words of it.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.decode.active_vocabulary import Columns
from regard.decode.ensemble import MeanWords, log_of_mean
from regard.errors import ConfigError
from regard.models.base import Writer

# Rows of a search from which a packed matrix is worth the packing.
_WORTH_PACKING = 64

Words = Callable[[Tensor], Tensor]
"""hidden_RW -> logits_RV, in float32."""


def scorer(model: Writer, precision: str, rows: int, columns: Columns | None = None) -> Words:
    """What makes a model's last layer scores, or those of several models their averaged log-probabilities."""
    together: nn.Module = model.words
    if not isinstance(together, MeanWords):
        return words_of(model.words.weight, precision, rows, columns)
    members = [words_of(part.weight, precision, rows) for part in together.parts]
    widths = together.widths

    def score(hidden_RW: Tensor) -> Tensor:
        parts = zip(members, torch.split(hidden_RW, widths, -1), strict=True)
        mean_RV = log_of_mean([words(own_RW) for words, own_RW in parts])
        # Averaged over all words first: the mean must not depend on what columns other sentences need.
        return mean_RV if columns is None else mean_RV[:, columns.word_C]

    return score


def words_of(weight_VW: Tensor, precision: str, rows: int, columns: Columns | None = None) -> Words:
    """Products with the words' vectors, for searches of so many rows, in numbers of this precision (`auto` is float32).

    If `columns` are given, of their words alone.
    """
    weight_VW = weight_VW.detach()
    if columns:
        weight_VW = weight_VW[columns.word_C]
    on_processor = weight_VW.device.type == "cpu"
    if precision == "bfloat16":
        half_VW = weight_VW.bfloat16()
        return lambda hidden_RW: F.linear(hidden_RW.bfloat16(), half_VW).float()
    if precision == "int8":
        if not on_processor:
            raise ConfigError(
                f"decode.precision int8 is for processors, and the model is on {weight_VW.device.type}. "
                "Use bfloat16, or --device cpu."
            )
        return _int8(weight_VW)
    # Arranged for the processor beforehand, the same product takes a fifth less time.
    if on_processor and rows >= _WORTH_PACKING and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        packed = torch.ops.mkldnn._reorder_linear_weight(weight_VW.float(), rows)
        return lambda hidden_RW: torch.ops.mkldnn._linear_pointwise(hidden_RW.float(), packed, None, "none", [], "")
    return lambda hidden_RW: F.linear(hidden_RW, weight_VW).float()


def _int8(weight_VW: Tensor) -> Words:
    """Products of whole numbers up to 127, one scale for each word and one for each row."""
    number_VW, scale_V = _whole(weight_VW)
    number_WV = number_VW.T.contiguous()

    def score(hidden_RW: Tensor) -> Tensor:
        number_RW, scale_R = _whole(hidden_RW.float())
        return torch._int_mm(number_RW, number_WV).float().mul_(scale_V).mul_(scale_R[:, None])

    return score


def _whole(x_XW: Tensor) -> tuple[Tensor, Tensor]:
    """Each row as whole numbers, and what they are to be multiplied with."""
    scale_X = x_XW.abs().amax(1).clamp(min=1e-30) / 127
    return (x_XW / scale_X[:, None]).round().to(torch.int8), scale_X
