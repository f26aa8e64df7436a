"""A model can be watched while it runs, and its heads can be silenced: what there is to see, and what it is good for.

Whoever looks, joins or embeds tells it here as it happens. If nobody watches, that costs one look-up; nothing is kept.
Watching is for one thread at a time, and two threads that watch do not see each other's models.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Look(NamedTuple):
    """One attention: who asked what of whom, and what came of it. One head, if the model has no heads."""

    of: nn.Module
    query_BHQD: Tensor
    key_BHKD: Tensor
    value_BHKD: Tensor
    weights_BHQK: Tensor
    context_BHQD: Tensor
    scale: float = 1.0
    may_look: Tensor | None = None
    """True where a query may look at a key; shaped to fit the weights."""
    bias_BHQK: Tensor | None = None
    """Added to the scores before they are scaled: relative positions."""
    fit_D: Tensor | None = None
    """For additive attention, whose score is fit . tanh(query + key); None for a product."""


class Joined(NamedTuple):
    """A residual connection: what came in, what the sub-layer answered, and what went out."""

    of: nn.Module
    input_BTW: Tensor
    answer_BTW: Tensor
    output_BTW: Tensor


class Embedded(NamedTuple):
    """Words as vectors: the word's own, its position's if that is added here, and what the first layer gets."""

    word_BTW: Tensor
    position_BTW: Tensor | None
    total_BTW: Tensor


Event = Look | Joined | Embedded

_watcher: ContextVar[list[Event] | None] = ContextVar("watcher", default=None)
_silent: ContextVar[Mapping[nn.Module, Tensor]] = ContextVar("silent", default={})  # noqa: B039 (never changed)


@contextmanager
def watching() -> Iterator[list[Event]]:
    """Everything that is told meanwhile, in the order of events."""
    events: list[Event] = []
    before = _watcher.set(events)
    try:
        yield events
    finally:
        _watcher.reset(before)


def watched() -> bool:
    """Whether it is worth while to tell anything."""
    return _watcher.get() is not None


def tell(event: Event) -> None:
    """Keep this for whoever watches."""
    events = _watcher.get()
    if events is not None:
        events.append(event)


@contextmanager
def silenced(of: nn.Module, head: int, heads: int) -> Iterator[None]:
    """Meanwhile this head of this module says nothing: its context is zero, wherever it looks."""
    loud_H11 = torch.ones(heads, 1, 1)
    loud_H11[head] = 0
    before = _silent.set({**_silent.get(), of: loud_H11})
    try:
        yield
    finally:
        _silent.reset(before)


def heard(of: nn.Module, context_BHQD: Tensor) -> Tensor:
    """The context as it is, or with nothing in it of the heads that are silenced."""
    silent = _silent.get()
    if not silent or of not in silent:
        return context_BHQD
    return context_BHQD * silent[of].to(context_BHQD)
