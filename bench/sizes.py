"""The models that are measured, in plain numbers that every peer can be told."""

from typing import Any

TINY: dict[str, Any] = {"depth": 4, "width": 128, "inner": 256, "heads": 4, "dropout": 0.3}
BASE: dict[str, Any] = {"depth": 6, "width": 512, "inner": 2048, "heads": 8, "dropout": 0.1}
BASE_VOCABULARY = 37_000

SMOOTHING = 0.1
CLIP = 1.0
RATE = 1e-4
"""Of every optimiser. What is learned is not measured; the weights must only stay numbers."""
PAD, UNKNOWN, BEGIN, END = range(4)
