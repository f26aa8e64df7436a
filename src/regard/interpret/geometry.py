"""Where the lines of the Heads picture run, and how wide they are.

The page draws and saves the same lines (pages/assets/see/geometry.js); a test holds the two together.
"""

from typing import NamedTuple

import numpy as np

from regard.interpret.trace import Weights

WIDTH = 640
TOP = 64
ROW = 28
"""Height of a word's row."""
QUERIES, KEYS = 200, 440
"""Words that look end here; words looked at begin here."""
LEFT, RIGHT = 208, 432
"""Where lines begin and end."""
THICKEST = min(12.0, 0.6 * ROW)
"""The width of a line whose weight is one."""
LEAST = 0.01
"""Weights below this are not drawn."""
COVERED, MOST = 0.9, 4000
"""With no word chosen: of each row the largest weights up to this share of it, and so many in all."""


class Line(NamedTuple):
    """From the word that looks to the one looked at."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    query: int
    key: int
    weight: float


def centre(number: int) -> float:
    """The height at which a row's word stands."""
    return TOP + (number + 0.5) * ROW


def lines(weights_QK: Weights, chosen: int | None = None) -> list[Line]:
    """All lines, or those of one chosen query; widest first, so that no narrow one is hidden below a wide one."""
    rows = range(len(weights_QK)) if chosen is None else [chosen]
    cells = [(q, k) for q in rows for k in (_largest(weights_QK[q]) if chosen is None else range(weights_QK.shape[1]))]
    found = [
        Line(LEFT, centre(q), RIGHT, centre(k), THICKEST * weight, q, k, weight)
        for q, k in cells
        if (weight := float(weights_QK[q, k])) >= LEAST
    ]
    found.sort(key=lambda line: -line.weight)
    return found if chosen is not None else found[:MOST]


def _largest(weights_K: Weights) -> list[int]:
    """The keys that make up nearly all of a row."""
    order = [int(k) for k in np.argsort(-weights_K, kind="stable") if weights_K[k] >= LEAST]
    enough = COVERED * weights_K.sum(dtype=np.float64)
    before = np.concatenate([[0.0], np.cumsum(weights_K[order], dtype=np.float64)])
    return [k for k, mass in zip(order, before, strict=False) if mass < enough]
