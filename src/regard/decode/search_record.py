"""What a beam search did at each step, for whoever wants to show it."""

from collections.abc import Callable
from typing import Literal, NamedTuple

Ids = tuple[int, ...]


Fate = Literal["begin", "kept", "dropped", "finished"]


class Candidate(NamedTuple):
    """A beginning of a text that a search thought of, and what it did with it."""

    ids: Ids
    """Its words, the end among them if it ends; begin is not."""
    total: float
    """Log-probability of all of them."""
    state: Fate
    score: float | None = None
    """What finished texts are compared by."""


Step = dict[int, list[Candidate]]
"""For each sentence that was still searched, by its number, the candidates, the best first."""


Record = Callable[[Step], None]
"""Told what was done, at each step."""
