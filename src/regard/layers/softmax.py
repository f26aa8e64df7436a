"""What softmax needs to know of its scores."""

from torch import Tensor


def within_range(sums: Tensor) -> bool:
    """Whether no exponential of these sums was too large for a float, and not all of any sum too small."""
    if not sums.numel():
        return True
    low, high = sums.aminmax()
    return float(low) > 1e-30 and float(high) < 1e30
