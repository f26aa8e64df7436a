"""What a picture shows of a layer: words put together from their pieces, and its heads taken together.

The page does the same in the browser (pages/assets/see/shown.js).
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.errors import TraceError
from regard.interpret.rollout import rollout
from regard.interpret.trace import KINDS, Map, Row, Trace, Weights

LONGEST = 24
"""Characters of a word as it is shown."""
TOGETHER = ("mean", "max", "rollout")
"""How heads can be taken together."""


class Label(NamedTuple):
    """A word, or a piece of one, as a picture shows it."""

    text: str
    title: str
    """The whole of it, if the text is shortened."""
    tokens: tuple[int, ...]


class Shown(NamedTuple):
    """What is to be drawn, chosen by `show`."""

    trace: Trace
    map: Map
    row: str
    """The name of the row whose words stand for the queries."""
    name: str
    """Such as "head 3" or "mean of all heads"."""
    head: int | None
    """Counted from 0; None if several are taken together."""
    queries: tuple[Label, ...]
    keys: tuple[Label, ...]
    weights_QK: Weights


def show(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | str | None = None,
    *,
    pieces: bool = False,
    written: bool | None = None,
) -> Shown:
    """One layer's attention, word by word. Layers and heads count from 1.

    `head` can also be "mean" (as is None), "max" or "rollout". `pieces` keeps the pieces of words apart. `written` names the
    positions of a translation by the word they write, not by the one they read, which comes before it; by default so for
    attention to the source, because the question there is what a word was translated from.
    """
    chosen = trace.map(kind, layer)
    number = _head(chosen, head)
    written = chosen.kind == "cross" if written is None else written
    row = "predicted" if written and chosen.queries == "target" else chosen.queries
    queries, keys = labels(trace.rows[row], pieces=pieces), labels(trace.rows[chosen.keys], pieces=pieces)
    if head == "rollout":
        weights_QK = merge(rollout(trace, chosen), queries, keys)
    elif head == "max":
        weights_QK = np.max([merge(one_QK, queries, keys) for one_QK in chosen.weights_HQK], axis=0)
    else:
        weights_QK = merge(chosen.weights_HQK.mean(0) if number is None else chosen.weights_HQK[number], queries, keys)
    name = f"head {number + 1}" if number is not None else f"{head or 'mean'} of all heads"
    name = "rollout" if head == "rollout" else name
    return Shown(trace, chosen, row, name, number, queries, keys, weights_QK)


def _head(chosen: Map, head: int | str | None) -> int | None:
    if head in (None, *TOGETHER):
        return 0 if chosen.heads == 1 and head != "rollout" else None
    if isinstance(head, str) or head is None or not 1 <= head <= chosen.heads:
        raise TraceError(
            f"There is no head {head} of {KINDS[chosen.kind]}. Choose a number from 1 to {chosen.heads}, "
            f"or one of: {', '.join(TOGETHER)}."
        )
    return head - 1


def labels(row: Row, *, pieces: bool = False) -> tuple[Label, ...]:
    """The words of a row, or its pieces."""
    groups = [[number] for number in range(len(row.tokens))] if pieces else row.words()
    titles = [_title(row, group) for group in groups]
    return tuple(Label(_shortened(title), title, tuple(group)) for title, group in zip(titles, groups, strict=True))


def _title(row: Row, group: Sequence[int]) -> str:
    """A word as it stands in the text; a piece as the tokenizer has it."""
    pieces = "".join(row.tokens[number].text for number in group)
    word = row.text[row.tokens[group[0]].first : row.tokens[group[-1]].last].strip() if len(group) > 1 else ""
    text = word or pieces
    if not text.strip():
        return "␠" * len(text) or "∅"
    return re.sub(r"[\n\r\u2028\u2029]", "⏎", text).replace("\t", "⇥")


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def merge(weights_QK: npt.NDArray[np.floating[Any]], queries: Sequence[Label], keys: Sequence[Label]) -> Weights:
    """Words out of pieces: what goes to a word is the sum over its pieces, what comes from it is their mean."""
    wide = np.asarray(weights_QK, np.float64)
    by_key = np.stack([wide[:, label.tokens].sum(1) for label in keys], 1)
    return np.stack([by_key[label.tokens, :].mean(0) for label in queries]).astype(np.float32)
