"""The worked example of introductory lectures: three inputs, three small matrices, whole numbers. It needs no model.

Lectures leave out the division by sqrt(3); here both are computed, by the attention that all models use.
"""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import torch

from regard.interpret.step_panels import panels, script
from regard.interpret.steps import Steps, explain, packed
from regard.interpret.trace import Detail, Facts, Map, Row, Token, Trace
from regard.layers.attention import attend

INPUTS = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
PROJECTIONS = {
    "query": [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
    "key": [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]],
    "value": [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
}
TITLE = "The lecture's example"


@cache
def trace(*, scaled: bool = False) -> Trace:
    """Each input looks at all three; `scaled` divides the scores by sqrt(3)."""
    inputs_TW = torch.tensor(INPUTS, dtype=torch.float32)
    query, key, value = (inputs_TW @ torch.tensor(p, dtype=torch.float32) for p in PROJECTIONS.values())
    asked = query[None, None], key[None, None], value[None, None]
    scale = 3**-0.5 if scaled else 1.0
    context, weights = attend(*asked, scale=scale)
    inputs = inputs_TW.numpy()
    detail = Detail(
        "encoder",
        0,
        query[None].numpy(),
        key[None].numpy(),
        value[None].numpy(),
        scores_HQK=(query @ key.T * scale).numpy()[None],
        context_HQD=context[0].numpy(),
        seen_QK=np.ones((3, 3), np.bool_),
        scale=scale,
        embedding=(inputs, None, inputs),
    )
    names = [f"input {n}" for n in (1, 2, 3)]
    row = Row(" ".join(names), tuple(Token(name, 8 * n, 8 * n + 7, n) for n, name in enumerate(names)))
    shown = Map("encoder", 0, "text", "text", weights[0].numpy())
    return Trace(Facts(TITLE), {"text": row}, (shown,), details=(detail,))


def steps(word: str | None = None, *, scaled: bool = False) -> Steps:
    """All that happens to one input, by default the first."""
    found = explain(trace(scaled=scaled), word=word or "input 1")
    matrices = {name: np.array(matrix, np.float64) for name, matrix in PROJECTIONS.items()}
    return dataclasses.replace(found, panels=panels(found.detail, "lecture"), projections=matrices, label=TITLE)


@cache
def data() -> dict[str, Any]:
    """What the page shows: the example without the division, and with it."""
    both = [trace(scaled=scaled).details[0] for scaled in (False, True)]
    return {
        "words": [token.text for token in trace().rows["text"].tokens],
        "inputs": INPUTS,
        # Side by side, as a table of rows that have no names.
        "matrices": [["", *rows] for rows in zip(*PROJECTIONS.values(), strict=True)],
        "script": script(both[0]),
        "details": [{**packed(one), "panels": [panel._asdict() for panel in panels(one, "lecture")]} for one in both],
    }
