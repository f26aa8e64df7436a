"""Who may look where. One convention: boolean, True means "may look"."""

import torch
from torch import Tensor


def real(lengths_B: Tensor, size: int) -> Tensor | None:
    """Words True, padding False, as (B, size); None when nothing is padded, which attention computes faster.

    A row without any word could look at nothing and would turn to NaN in the softmax, so it is refused.
    """
    assert bool((lengths_B > 0).all()), "a sentence without words reached the model"
    if bool((lengths_B == size).all()):
        return None
    return torch.arange(size, device=lengths_B.device) < lengths_B[:, None]


def causal(length: int, device: torch.device | None = None) -> Tensor:
    """Each position sees itself and what came before: (Q, K), lower-triangular.

    >>> causal(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
