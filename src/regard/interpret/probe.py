"""One text that is looked at again at every validation of a training, so that one can see how attention comes about.

It is always read in the same way: a translation's target is the reference, not what the model would write by then. What
is kept of it, rows and coarse weights, is plain data: a line of probe.jsonl, beside the log.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import ConfigError, RegardError
from regard.interpret.page_data import kind_data, row_data
from regard.interpret.trace import Trace
from regard.models.base import Model
from regard.text.tokenizers.tokenizer import BEGIN, END, Tokenizer

FILE = "probe.jsonl"
"""Where a model folder keeps what was seen at each validation."""
SHORTEST, LONGEST = 6, 24
"""Tokens of a text that is worth looking at, and in which each can still be told apart."""
MOST = 64
"""Tokens that are looked at in any case: weights grow with the square."""

Look = Callable[[Model], Trace]


def recorder(look: Look) -> Callable[[Model], dict[str, Any]]:
    """What to keep of a model, seen so. What cannot be seen is said; training goes on."""

    def record(model: Model) -> dict[str, Any]:
        try:
            return recorded(look(model))
        except RegardError as error:
            return {"problem": str(error)}

    return record


def recorded(trace: Trace) -> dict[str, Any]:
    """Rows of tokens, and for each kind of attention all its layers; nothing for a model without attention."""
    if not trace.maps:
        return {}
    rows = {name: row_data(row) for name, row in trace.rows.items()}
    maps = [kind_data(trace, kind, fine=False) for kind in trace.kinds]
    for layer in (layer for one in maps for layer in one["layers"]):
        del layer["norms"]
    return {"rows": rows, "maps": maps}


def fitting(*lengths: npt.NDArray[np.integer[Any]]) -> int:
    """The number of the first text neither short nor long on any side; if there is none, of that which is nearest."""
    sides = np.stack(lengths)
    longest = sides.max(0).astype(np.int64)  # lengths may be unsigned
    good = np.flatnonzero((sides.min(0) >= SHORTEST) & (longest <= LONGEST))
    return int(good[0]) if len(good) else int(np.abs(longest - LONGEST).argmin())


def passage(tokenizer: Tokenizer, stream: npt.NDArray[np.integer[Any]]) -> str:
    """The first words of running text, from the first document that is not too short."""
    marks = np.flatnonzero(np.isin(stream, (BEGIN, END)))
    starts = np.concatenate([[0], marks + 1])
    sizes = np.minimum(np.concatenate([marks, [len(stream)]]) - starts, LONGEST)
    number = fitting(sizes)
    return tokenizer.decode([int(i) for i in stream[starts[number] :][: sizes[number]]])


def beginning(tokenizer: Tokenizer, text: str) -> str:
    """As much of a text as is looked at in any case."""
    (ids,) = tokenizer.encode([text])
    return text if len(ids) <= MOST else tokenizer.decode(ids[:MOST])


def own_text(tokenizer: Tokenizer, text: str) -> str:
    """A text that the user wants to see, if it is not too long; it may be empty."""
    (ids,) = tokenizer.encode([text])
    if len(ids) > MOST:
        raise ConfigError(
            f"train.probe has {len(ids)} tokens; {MOST} at most can be followed. Take one sentence of it."
        )
    return text
