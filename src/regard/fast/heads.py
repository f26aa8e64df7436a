"""What a reading model says of its last layer: labels, and guesses for hidden words. As models/bert.py, in numpy."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.fast.stored_weights import read

Array = NDArray[np.float32]
_erf = np.frompyfunc(math.erf, 1, 1)


class LabelHead:
    """The pooler, and a score for every label."""

    def __init__(self, weights: Path) -> None:
        self._weights = _read(weights, "body.pooler.weight", "body.pooler.bias", "labels.weight", "labels.bias")

    def chances(self, first_BW: Array) -> Array:
        """From the first token of each text, the probability of each label."""
        pooler_WW, pooler_W, labels_LW, labels_L = self._weights
        return _softmax(np.tanh(first_BW @ pooler_WW.T + pooler_W) @ labels_LW.T + labels_L)


class WordHead:
    """A score for every word."""

    def __init__(self, weights: Path, activation: str, epsilon: float) -> None:
        names = [f"guesser.{name}" for name in ("dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias")]
        self._weights = _read(weights, *names, "body.embedding.words.weight")
        self._activation = activation
        self._epsilon = epsilon

    def chances(self, hidden_NW: Array) -> Array:
        """From the last layer at some places, the probability of each word."""
        dense_WW, dense_W, scale_W, shift_W, bias_V, words_VW = self._weights
        x_NW = _activated(hidden_NW @ dense_WW.T + dense_W, self._activation)
        x_NW = x_NW - x_NW.mean(1, keepdims=True)
        x_NW = x_NW / np.sqrt((x_NW**2).mean(1, keepdims=True) + self._epsilon) * scale_W + shift_W
        return _softmax(x_NW @ words_VW.T + bias_V)


def _read(weights: Path, *names: str) -> list[Any]:
    """Some weights of a model folder; they have been checked when the model was converted."""
    found = read(weights, names)
    return [found[name] for name in names]


def _activated(x: Array, name: str) -> Array:
    if name == "relu":
        return np.maximum(x, np.float32(0))
    if name == "gelu":
        below: Array = _erf(x / np.float32(math.sqrt(2))).astype(np.float32)
    else:
        below = np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x))
    return x * (np.float32(0.5) + np.float32(0.5) * below)


def _softmax(scores: Array) -> Array:
    raised: Array = np.exp(scores - scores.max(1, keepdims=True))
    chances: Array = raised / raised.sum(1, keepdims=True)
    return chances
