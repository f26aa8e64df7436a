"""What a model is: one contract for all that write text.

Training calls the model on a whole batch at once (`forward`, in parallel over positions). Writing calls `start` once
and `step` for each word, with everything remembered in a State that goes in as an argument and comes out as a result.
Search, scoring, serving and the attention page never ask which model they have.

Shape letters, here and in every model: B batch (or rows of a search) · S source positions · T target positions ·
V vocabulary · W width · H heads · D width of one head · Q query positions · K key positions.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from torch import Tensor, nn


class Source(NamedTuple):
    """What the model reads: ids, padded at the end, and how many of them are real in each row."""

    ids_BS: Tensor
    lengths_B: Tensor


@dataclass
class Output:
    """What the model says about a whole target, given all of its earlier words at each position."""

    hidden_BTW: Tensor
    """The last layer; `Writer.words` turns it into a score for each word of the vocabulary."""
    attention: dict[str, Tensor] = field(default_factory=dict)
    """Empty unless asked for: "decoder.3.source" -> weights_BHTS."""
    extra_loss: Tensor | None = None
    """Summed over tokens, e.g. a Universal Transformer's ponder cost."""


class State(Protocol):
    """Everything a model remembers between two steps of writing."""

    @property
    def attention_BS(self) -> Tensor | None:
        """Where the last step looked in the source, if `start` was asked to say; None for models without attention."""

    def reorder(self, index_B: Tensor) -> Self:
        """Keep these rows, in this order; an index may repeat (beams) or be missing (finished sentences)."""
        ...


class Writer(nn.Module, ABC):
    """A model that writes text."""

    words: nn.Linear
    """Hidden state -> scores over the vocabulary. Training reads its weight, to score words without keeping all scores."""

    longest: int | None = None
    """Tokens a sentence may have, begin or end counted; None = any number. Learned positions set a limit."""

    @abstractmethod
    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        """Read the source and all of the target; position t is to predict word t + 1."""

    @abstractmethod
    def start(self, source: Source, *, attention: bool = False) -> State:
        """Read the source, once."""

    @abstractmethod
    def step(self, last_B: Tensor, state: State) -> tuple[Tensor, State]:
        """The scores of the next word, logits_BV, after each row's last word; and what to remember."""
