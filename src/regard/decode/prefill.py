"""Where a search begins: after begin; or after a given beginning, read at once, if the model can."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.base import LanguageModel, Source, State, Writer
from regard.text.tokenizers.tokenizer import BEGIN

# Positions whose words are scored at a time: the scores over a large vocabulary would not fit all at once.
_AT_A_TIME = 256


class Opening(NamedTuple):
    """What every sentence's search goes on from: one row for each."""

    written_BT: Tensor
    """Begin, then words that were given. The model has read all but the last."""
    total_B: Tensor
    """Their log-probability."""
    state: State


def opening(model: Writer, source: Source, prefixes: Sequence[Sequence[int]], *, attention: bool = False) -> Opening:
    """Read the source; and with it the prefixes, if they are beginnings of equal length for a model that needs no source.

    Such a model takes what was written before for something it read, so that it need not be told word by word. Otherwise
    the rules see to it that prefixes are written.
    """
    B, device = len(source.lengths_B), source.ids_BS.device
    lengths = {len(prefix) for prefix in prefixes}
    begin_B1 = torch.full((B, 1), BEGIN, device=device)
    if not isinstance(model, LanguageModel) or source.ids_BS.shape[1] or len(lengths) != 1 or lengths == {0}:
        return Opening(begin_B1, torch.zeros(B, device=device), model.start(source, attention=attention))
    prefix_BT = torch.tensor([list(prefix) for prefix in prefixes], device=device)
    written_BT = torch.cat([begin_B1, prefix_BT], 1)
    read_BT = written_BT[:, :-1]
    total_B = torch.zeros(B, device=device)
    hidden_BTW = model(source, read_BT).hidden_BTW
    for hidden, word_BT in zip(
        torch.split(hidden_BTW, _AT_A_TIME, 1), torch.split(prefix_BT, _AT_A_TIME, 1), strict=True
    ):
        loss_BT = cross_entropy(model.words(hidden).float().transpose(1, 2), word_BT, reduction="none")
        total_B -= loss_BT.sum(1)
    read = Source(read_BT, torch.full((B,), read_BT.shape[1], device=device))
    return Opening(written_BT, total_B, model.start(read, attention=attention))
