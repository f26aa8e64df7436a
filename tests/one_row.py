"""For tests of models that read source and target in one row."""

import torch
from torch import Tensor

from regard.models.base import LanguageModel, Source

VOCABULARY = 20


def nothing(rows: int) -> Source:
    return Source(torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows, dtype=torch.long))


def text(rows: int, length: int) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, length))


def logits(model: LanguageModel, source: Source, target_BT: Tensor) -> Tensor:
    return model.words(model(source, target_BT).hidden_BTW)


def step_by_step(model: LanguageModel, source: Source, target_BT: Tensor) -> Tensor:
    state, found = model.start(source), []
    for last_B in target_BT.unbind(1):
        logits_BV, state = model.step(last_B, state)
        found.append(logits_BV)
    return torch.stack(found, 1)
