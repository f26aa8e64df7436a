"""A source and its target in one row, for models that have no encoder."""

import torch
from torch import Tensor


def join(source_BS: Tensor, lengths_B: Tensor, target_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's real source words, then its target, then padding: (joined_BJ, place_BT of each target word).

    Padding stands only at the end, where no earlier word can look, so the causal mask is all the mask it needs.

    >>> join(torch.tensor([[5, 6], [7, 0]]), torch.tensor([2, 1]), torch.tensor([[8], [9]]))[0].tolist()
    [[5, 6, 8], [7, 9, 0]]
    """
    rows, targets = target_BT.shape
    place_BT = lengths_B[:, None] + torch.arange(targets, device=target_BT.device)
    joined_BJ = target_BT.new_zeros(rows, source_BS.shape[1] + targets)
    joined_BJ[:, : source_BS.shape[1]] = source_BS
    return joined_BJ.scatter(1, place_BT, target_BT), place_BT


def targets_of(hidden_BJW: Tensor, place_BT: Tensor) -> Tensor:
    """The target's part of what a model made of a joined row: hidden_BTW."""
    if hidden_BJW.shape[1] == place_BT.shape[1]:
        return hidden_BJW  # there was no source
    return hidden_BJW.gather(1, place_BT[:, :, None].expand(-1, -1, hidden_BJW.shape[2]))
