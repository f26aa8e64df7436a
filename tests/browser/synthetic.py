"""Data for the attention page without any model: every weight is unlike every other, so that none can stand for another."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.interpret.pack import pack_exactly, pack_weights

SOURCE = ["The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired", "."]
TARGET = [
    "L'",
    "animal",
    "n'",
    "a",
    "pas",
    "traversé",
    "la",
    "rue",
    "parce",
    "qu'",
    "il",
    "était",
    "trop",
    "fatigué",
    ".",
]
Weights = dict[str, np.ndarray]  # kind -> layers, heads, queries, keys


def packed(numbers: np.ndarray, encoding: str = "u16") -> dict[str, Any]:
    """As the page stores numbers."""
    return pack_exactly(numbers) if encoding == "f32" else pack_weights(numbers, fine=encoding == "u16")


def softmax(scores: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def random_weights(shape: Sequence[int], seed: int, causal: bool = False, sharp: float = 2.5) -> np.ndarray:
    """Rows that sum to one, some peaked and some flat; nothing of the future if causal."""
    scores = np.random.default_rng(seed).normal(0.0, sharp, shape)
    if causal:
        scores = np.where(np.tril(np.ones(shape[-2:], dtype=bool)), scores, -np.inf)
    return softmax(scores)


def lifelike(layers: int, heads: int, length: int) -> np.ndarray:
    """Heads as trained ones are: some peaked, some looking at a neighbour, some resting on the first word."""
    random = np.random.default_rng(3)
    scores = random.normal(0.0, 1.0, (layers, heads, length, length))
    near = -np.abs(np.arange(length)[:, None] - np.arange(length)[None, :] - 1)
    scores[:, 0::3] *= 4.0
    scores[:, 1::3] += 1.5 * near
    scores[:, 2::3, :, 0] += 8.0
    return softmax(scores)


def row(words: Sequence[str], begin: str = "", end: str = "") -> dict[str, Any]:
    """One word, one token; begin and end are special. A word `ab|cd` is two pieces."""
    text = " ".join(word.replace("|", "") for word in words)
    tokens: list[list[Any]] = [[begin, 0, 0, 0, 1]] if begin else []
    place = 0
    for word in words:
        number = len({token[3] for token in tokens})
        for n, piece in enumerate(word.split("|")):
            tokens.append([piece, place, place + len(piece), number, 4 if n else 0])
            place += len(piece)
        place += 1
    if end:
        tokens.append([end, len(text), len(text), len({token[3] for token in tokens}), 1])
    return {"text": text, "tokens": tokens}


def attention(kind: str, queries: str, keys: str, weights: np.ndarray, encoding: str) -> dict[str, Any]:
    """One kind of attention; every value vector has a length of its own."""
    layers, heads, _, K = weights.shape
    side = {"encoder": "encoder", "decoder": "decoder"}.get(kind, "decoder")
    lengths = np.random.default_rng(7).uniform(0.5, 2.0, (layers, heads, K))
    title = {
        "encoder": "encoder self-attention",
        "decoder": "decoder self-attention",
        "cross": "attention to the source",
    }
    return {
        "kind": kind, "title": title.get(kind, kind), "queries": queries, "keys": keys, "causal": kind == "decoder",
        "heads": heads,
        "layers": [
            {
                "number": n,
                "label": f"layer {n} → {n + 1} ({side} layer {n + 1} of {layers})",
                "weights": packed(weights[n], encoding),
                "norms": packed(lengths[n], "f32"),
            }
            for n in range(layers)
        ],
    }  # fmt: skip


def synthetic(
    source: Sequence[str] = SOURCE,
    target: Sequence[str] = TARGET,
    layers: int = 3,
    heads: int = 4,
    encoding: str = "u16",
    seed: int = 0,
) -> tuple[dict[str, Any], Weights]:
    """The page's data for a translation, and the weights in it as they were before packing."""
    rows = {"source": row(source, end="</s>"), "target": row(target, begin="<s>"), "predicted": row(target, end="</s>")}
    S, T = len(rows["source"]["tokens"]), len(rows["target"]["tokens"])
    weights = {
        "encoder": random_weights((layers, heads, S, S), seed),
        "decoder": random_weights((layers, heads, T, T), seed + 1, causal=True),
        "cross": random_weights((layers, heads, T, S), seed + 2),
    }
    sides = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}
    maps = [attention(kind, *sides[kind], weights[kind], encoding) for kind in weights]
    return page_data(rows, maps, heads, rows["source"]["text"]), weights


def self_attention(words: Sequence[str], weights: np.ndarray, encoding: str = "u8s") -> dict[str, Any]:
    """The page's data for a single row of words that look at one another."""
    rows = {"text": row(words)}
    return page_data(rows, [attention("encoder", "text", "text", weights, encoding)], weights.shape[1], "words")


def one_kind(
    words: Sequence[str], layers: int, heads: int, encoding: str = "u8s", seed: int = 0, sharp: float = 2.5
) -> tuple[dict[str, Any], Weights]:
    """The same, with random weights."""
    length = len(row(words)["tokens"])
    weights = random_weights((layers, heads, length, length), seed, sharp=sharp)
    return self_attention(words, weights, encoding), {"encoder": weights}


def page_data(rows: dict[str, Any], maps: list[dict[str, Any]], heads: int, title: str) -> dict[str, Any]:
    """One item, with a model card."""
    model = {
        "name": "transformer", "parameters": 1_300_000, "width": 128, "heads": heads, "step": 2000, "folder": "demo",
        "difference": 3.1e-7, "about": ["encoder 3 layers", "decoder 3 layers"],
    }  # fmt: skip
    item = {
        "title": title, "model": model, "rows": rows, "maps": maps, "predictions": None, "halted": None, "details": [],
        "knockouts": None, "beam": None,
    }  # fmt: skip
    start = {"kind": maps[0]["kind"], "layer": 0, "heads": [0]}
    return {"schema": "see/1", "made": "regard", "title": "Attention", "items": [item], "start": start, "lecture": None}
