"""What a model is: one contract for all that write text, and one for those that read it.

Training calls the model on a whole batch at once (`forward`, in parallel over positions). Writing calls `start` once
and `advance` for each word, with everything remembered in a State that goes in as an argument and comes out as a result.
Search, scoring, serving and the attention page never ask which model they have.

Shape letters, here and in every model: B batch (or rows of a search) · S source positions · T target positions ·
V vocabulary · W width · H heads · D width of one head · Q query positions · K key positions.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from torch import Tensor, nn


class Source(NamedTuple):
    """What the model reads: ids, padded at the end, and how many of them are real in each row.

    For a language model there may be nothing to read: no columns, and lengths of zero.
    """

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
    carried: tuple[Tensor, ...] = ()
    """What a recurrent language model remembers at the end, for the next piece of the same text; without gradient."""


class State(Protocol):
    """Everything a model remembers between two steps of writing."""

    @property
    def attention_BS(self) -> Tensor | None:
        """Where the last step looked in the source, if `start` was asked to say; None for models without attention."""

    def reorder(self, index_B: Tensor) -> Self:
        """Keep these rows, in this order; an index may repeat (beams) or be missing (finished sentences)."""
        ...


class Model(nn.Module, ABC):
    """Any model."""

    longest: int | None = None
    """Tokens a text may have, begin or end counted; None = any number. Learned positions set a limit."""

    def blocks(self) -> list[nn.Module]:
        """The parts that training calls one after another, and whose weights nothing else uses; none if it has no such.

        What each remembers for the way back can be forgotten and computed again, and its weights need be whole on a
        device only while it runs. Texts of any kind call all of them, equally often.
        """
        return []


class Writer(Model):
    """A model that writes text."""

    words: nn.Linear
    """Hidden state -> scores over the vocabulary. Training reads its weight, to score words without keeping all scores."""

    longest_source: int = 1000
    """Tokens of a text to read at most: full attention grows with the square, so one endless line could take all memory."""

    def places(self, source: int) -> int | None:
        """How long a text it can hold, begin and end not counted, for a source of so many tokens; None = any."""
        return None if self.longest is None else self.longest - 1  # begin takes one

    @abstractmethod
    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        """Read the source and all of the target; position t is to predict word t + 1."""

    @abstractmethod
    def start(self, source: Source, *, attention: bool = False) -> State:
        """Read the source, once."""

    @abstractmethod
    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, State]:
        """Read each row's last word: the last layer, hidden_BW, which `words` makes scores of; and what to remember."""

    def step(self, last_B: Tensor, state: State) -> tuple[Tensor, State]:
        """The scores of the next word, logits_BV, after each row's last word; and what to remember."""
        hidden_BW, after = self.advance(last_B, state)
        return self.words(hidden_BW), after

    def report(self, source: Source, target_BT: Tensor) -> dict[str, Tensor]:
        """What the model can tell of itself on these texts, if anything: by name, numbers whose mean is worth showing."""
        return {}


class LanguageModel(Writer):
    """A writer that needs no source: it goes on with a text. A source, if there is one, is the text's beginning.

    So it translates and summarises too: trained on pairs, it reads the source and writes the target after it.
    """

    carries: bool = False
    """Whether what it remembers of one piece of text is of use for the next (recurrent models)."""

    def places(self, source: int) -> int | None:
        # The source stands before the target in the same row.
        return None if self.longest is None else self.longest - 1 - source

    @abstractmethod
    def forward(
        self, source: Source, target_BT: Tensor, *, attention: bool = False, carried: tuple[Tensor, ...] = ()
    ) -> Output:
        """As for every writer; `carried` is what an earlier call's Output carried, and only if `carries`."""


class Reader(Model):
    """A model that reads text in both directions at once, and so cannot write it."""

    @abstractmethod
    def forward(
        self, ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None = None, *, attention: bool = False
    ) -> Output:
        """Every word's last layer; rows begin with BEGIN, segments (0 or 1) tell two texts in one row apart."""
