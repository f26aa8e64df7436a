"""Several models as one: at each word, their probabilities are averaged.

To whoever searches, an ensemble is a model like any other. Its last layer is the members' last layers side by side, its
scores are the logarithm of the mean probability.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from regard.models.base import Output, Source, State, Writer


def log_of_mean(logits: Sequence[Tensor]) -> Tensor:
    """The members' scores -> the logarithm of their mean probability."""
    total = logits[0].float().log_softmax(-1)
    for other in logits[1:]:
        # Not by way of probabilities, of which the smallest would be zero.
        total = torch.logaddexp(total, other.float().log_softmax(-1))
    return total - math.log(len(logits))


class Ensemble(Writer):
    """Models with one vocabulary, that write together. Nobody trains it."""

    # Not a product with one matrix, which is what training asks for.
    words: "MeanWords"  # type: ignore[assignment]

    def __init__(self, members: Sequence[Writer]) -> None:
        super().__init__()
        self._members = nn.ModuleList(members)
        self.words = MeanWords([member.words for member in members])
        self.longest_source = min(member.longest_source for member in members)

    @property
    def members(self) -> list[Writer]:
        """The models."""
        return [cast(Writer, member) for member in self._members]

    def places(self, source: int) -> int | None:
        limits = [places for member in self.members if (places := member.places(source)) is not None]
        return min(limits, default=None)

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        return Output(torch.cat([member(source, target_BT).hidden_BTW for member in self.members], -1))

    def start(self, source: Source, *, attention: bool = False) -> "EnsembleState":
        return EnsembleState([member.start(source, attention=attention) for member in self.members])

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "EnsembleState"]:
        assert isinstance(state, EnsembleState), "what start gave"
        both = [member.advance(last_B, own) for member, own in zip(self.members, state.states, strict=True)]
        return torch.cat([hidden_BW for hidden_BW, _ in both], -1), EnsembleState([after for _, after in both])


class MeanWords(nn.Module):
    """What the members' last layers, side by side, say of the next word."""

    def __init__(self, parts: Sequence[nn.Linear]) -> None:
        super().__init__()
        self._parts = nn.ModuleList(parts)
        self.widths = [part.in_features for part in parts]

    @property
    def parts(self) -> list[nn.Linear]:
        """The members' own."""
        return [cast(nn.Linear, part) for part in self._parts]

    def forward(self, hidden: Tensor) -> Tensor:
        return log_of_mean(
            [part(own) for part, own in zip(self.parts, torch.split(hidden, self.widths, -1), strict=True)]
        )


@dataclass(frozen=True)
class EnsembleState:
    """What each member remembers."""

    states: list[State]

    @property
    def attention_BS(self) -> Tensor | None:
        """Where they looked, on average; None if one of them cannot tell."""
        looks = [look for state in self.states if (look := state.attention_BS) is not None]
        return torch.stack([look.float() for look in looks]).mean(0) if len(looks) == len(self.states) else None

    def reorder(self, index_B: Tensor) -> "EnsembleState":
        return EnsembleState([state.reorder(index_B) for state in self.states])
