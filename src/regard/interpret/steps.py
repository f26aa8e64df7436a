"""The computation of one word's attention, step by step, with the numbers of a trace.

Everything is computed anew here in NumPy from queries, keys and values, and compared with what PyTorch computed. The page
does the same in the browser (pages/assets/see/recompute.js).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.errors import TraceError
from regard.interpret.pack import pack_exactly, pack_numbers, pack_weights, unpack
from regard.interpret.step_panels import Panel, panels, script, way_of
from regard.interpret.trace import KINDS, Around, Detail, Map, Token, Trace

Numbers = npt.NDArray[np.float64]
Packer = Callable[[npt.NDArray[Any]], dict[str, Any]]

BUDGET = 1_000_000
"""Numbers that a page keeps for its steps, all layers together."""
# What 16 bits may change of anything recomputed: half that difference at which the page takes alarm.
_ROUGH = 5e-4


class Recomputed(NamedTuple):
    """All heads of one layer, for one word."""

    products_HK: Numbers
    scores_HK: Numbers
    """Scaled, before the mask."""
    weights_HK: Numbers
    other_HK: Numbers
    """The weights if the scores were divided by sqrt(D) where they are not, or not divided where they are."""
    context_HD: Numbers
    input_W: Numbers | None
    """What queries are made from; None where that is not known."""
    joined_W: Numbers | None
    output_W: Numbers | None


@dataclass(frozen=True)
class Steps:
    """One word, one head of one layer: all that is to be shown of it. Counted from 0."""

    detail: Detail
    label: str
    """The layer, in words."""
    head: int
    query: int
    word: str
    keys: tuple[str, ...]
    panels: tuple[Panel, ...]
    numbers: Recomputed
    differences: dict[str, float]
    """By name of what was computed, how far it is from what PyTorch computed."""
    projections: dict[str, Numbers] | None = None
    """The matrices of query, key and value, where they are small enough to be shown."""

    @property
    def difference(self) -> float:
        """The largest."""
        return max(self.differences.values())


def explain(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    word: str | None = None,
) -> Steps:
    """How the weights of `word` came about. Layers and heads count from 1.

    What is not given is chosen: the last layer that can be explained, and a head and a word worth looking at.
    """
    shown = _map_with_detail(trace, kind, layer)
    if head is not None and not 1 <= head <= shown.heads:
        raise TraceError(f"There is no head {head} of {KINDS[shown.kind]}. Choose a number from 1 to {shown.heads}.")
    found = trace.rows[shown.queries].find(word) if word is not None else None
    number, query = _striking(trace, shown, None if head is None else head - 1, found)
    detail = _detail_of(trace, shown)
    assert detail is not None
    numbers = recompute(detail, query)
    return Steps(
        detail,
        f"{KINDS[shown.kind]}, {trace.label(shown)}",
        number,
        query,
        trace.rows[shown.queries].tokens[query].text,
        tuple(token.text for token in trace.rows[shown.keys].tokens),
        panels(detail, way_of(detail)),
        numbers,
        compare(detail, numbers, number, query)
        | {"weights": _apart(numbers.weights_HK, shown.weights_HQK[:, query], number)},
    )


def recompute(detail: Detail, query: int) -> Recomputed:
    """One word's attention, in all heads, from queries, keys and values alone."""
    query_HD, key_HKD = detail.query_HQD[:, query].astype(np.float64), detail.key_HKD.astype(np.float64)
    products_HK: Numbers
    if detail.fit_D is not None:
        products_HK = np.tanh(query_HD[:, None] + key_HKD) @ detail.fit_D.astype(np.float64)
    else:
        products_HK = np.einsum("hd,hkd->hk", query_HD, key_HKD)
    biased_HK: Numbers = products_HK
    if detail.bias_HQK is not None:
        biased_HK = products_HK + detail.bias_HQK[:, query].astype(np.float64)
    scores_HK = biased_HK * detail.scale
    other = 1.0 if detail.scale != 1 else 1 / math.sqrt(query_HD.shape[-1])
    weights_HK = _softmax(scores_HK, detail.seen_QK[query])
    context_HD = np.einsum("hk,hkd->hd", weights_HK, detail.value_HKD.astype(np.float64))
    around = detail.around
    input_W = joined_W = output_W = None
    if around is not None:
        came_W = around.input_QW[query].astype(np.float64)
        input_W = _normalised(came_W, around) if around.norm_first else came_W
        joined_W = around.join_WW.astype(np.float64) @ context_HD.ravel() + around.bias_W
        output_W = came_W + joined_W if around.norm_first else _normalised(came_W + joined_W, around)
    return Recomputed(
        products_HK,
        scores_HK,
        weights_HK,
        _softmax(biased_HK * other, detail.seen_QK[query]),
        context_HD,
        input_W,
        joined_W,
        output_W,
    )


def compare(detail: Detail, numbers: Recomputed, head: int, query: int) -> dict[str, float]:
    """How far what was computed here is from what PyTorch computed."""
    found = {
        "scores": _apart(numbers.scores_HK, detail.scores_HQK[:, query], head),
        "context": _apart(numbers.context_HD, detail.context_HQD[:, query], head),
    }
    if detail.around is not None and numbers.joined_W is not None and numbers.output_W is not None:
        found["joined"] = float(np.abs(numbers.joined_W - detail.around.joined_QW[query]).max())
        found["output"] = float(np.abs(numbers.output_W - detail.around.output_QW[query]).max())
    return found


def why_not(shown: Map) -> str:
    """Why this layer has no steps."""
    if shown.kind == "compressed":
        return (
            "In memory-compressed attention a key is several words joined by a convolution, and queries are regrouped to see "
            "only slots that are full. There is no single row of numbers to follow; its weights are in the other pictures."
        )
    return (
        "Local attention cuts the text into blocks, and each block is computed as a text of its own. There is no single row of "
        "numbers to follow; its weights are in the other pictures. A text that is shorter than a block has steps."
    )


# ------------------------------------------------------------------------------------------------- for the page


def details_data(trace: Trace, budget: int = BUDGET) -> list[dict[str, Any]]:
    """What the page needs to compute every layer's attention anew: one entry for each layer.

    Layers that no longer fit the budget, which is so many numbers, are left out; their entries say so.
    """
    found: list[dict[str, Any]] = []
    told: dict[str, int] = {}
    for number, shown in enumerate(trace.maps):
        detail = _detail_of(trace, shown)
        entry: dict[str, Any] = {"kind": shown.kind, "layer": shown.layer}
        size = sum(array.size for array in _arrays(detail)) if detail is not None else 0
        if detail is None:
            entry["why"] = why_not(shown)
        elif size > budget:
            entry["why"] = (
                "The numbers of this layer were left out, so that the page does not grow too large. In a terminal: "
                f'regard explain FOLDER "TEXT" --kind {shown.kind} --layer {shown.layer + 1}'
            )
        else:
            budget -= size
            entry |= _entry(detail, {shown.kind, shown.queries} - told.keys())
            entry["telling"] = [_striking(trace, shown, head, None)[1] for head in range(shown.heads)]
            # Where its panels stand, and the embedding of its words.
            entry["told"] = [told.setdefault(name, number) for name in (shown.kind, shown.queries)]
        found.append(entry)
    return found


def _entry(detail: Detail, new: set[str]) -> dict[str, Any]:
    """One layer. What all layers of a kind, or all of a row, have in common stands with the first of them only."""
    pack, pack_matrix = _packers(detail)
    entry = packed(detail, pack, pack_matrix)
    if detail.kind in new:
        entry["panels"] = [panel._asdict() for panel in panels(detail, way_of(detail))]
        entry["script"] = script(detail)
    if detail.embedding is not None and new - {detail.kind}:
        parts = zip(("word", "position", "x"), detail.embedding, strict=True)
        entry["embedding"] = {name: pack(part) for name, part in parts if part is not None}
    return entry


def packed(detail: Detail, pack: Packer = pack_exactly, pack_matrix: Packer = pack_exactly) -> dict[str, Any]:
    """The numbers of one layer, but for its embedding."""

    def maybe(array: npt.NDArray[Any] | None) -> dict[str, Any] | None:
        return pack(array) if array is not None else None

    around = detail.around
    entry = {
        "kind": detail.kind,
        "layer": detail.layer,
        "score": "additive" if detail.fit_D is not None else "dot",
        "scale": detail.scale,
        "query": pack(detail.query_HQD),
        "key": pack(detail.key_HKD),
        "value": pack(detail.value_HKD),
        "bias": maybe(detail.bias_HQK),
        "v": maybe(detail.fit_D),
        "scores": pack(detail.scores_HQK),
        "context": pack(detail.context_HQD),
        "seen": pack_weights(detail.seen_QK),
        "embedding": None,
    }
    if around is None:
        return entry | dict.fromkeys(("input", "join", "join_bias", "joined", "after", "norm"))
    return entry | {
        "input": pack(around.input_QW),
        "join": pack_matrix(around.join_WW),
        "join_bias": pack(around.bias_W),
        "joined": pack(around.joined_QW),
        "after": pack(around.output_QW),
        "norm": {
            "first": around.norm_first,
            "gain": pack(around.gain_W),
            "shift": pack(around.shift_W),
            "epsilon": around.epsilon,
        },
    }


def _packers(detail: Detail) -> tuple[Packer, Packer]:
    """How to store the numbers of words, and the one large matrix: in 16 bits if what is computed from them bears it."""
    if _bears(_rounded(detail)):
        return pack_numbers, pack_numbers
    around = detail.around
    if around is not None:
        around = replace(around, join_WW=unpack(pack_numbers(around.join_WW)))
        if _bears(replace(detail, around=around)):
            return pack_exactly, pack_numbers
    return pack_exactly, pack_exactly


def _bears(rough: Detail) -> bool:
    _, queries, _ = rough.query_HQD.shape
    for query in range(queries):
        numbers = recompute(rough, query)
        if any(max(compare(rough, numbers, head, query).values()) > _ROUGH for head in range(len(numbers.scores_HK))):
            return False
    return True


def _rounded(whole: Any) -> Any:
    """A detail, or what is around it, with every array as it comes back from 16 bits."""
    changed: dict[str, Any] = {}
    for name, value in _values(whole):
        if is_dataclass(value):
            changed[name] = _rounded(value)
        elif isinstance(value, np.ndarray) and value.dtype != np.bool_:
            changed[name] = unpack(pack_numbers(value))
    return replace(whole, **changed)


def _arrays(whole: Detail | Around) -> Iterable[npt.NDArray[Any]]:
    for _, value in _values(whole):
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, Around):
            yield from _arrays(value)
        elif isinstance(value, tuple):
            yield from (part for part in value if part is not None)


def _values(whole: Any) -> list[tuple[str, Any]]:
    return [(field.name, getattr(whole, field.name)) for field in fields(whole)]


# ------------------------------------------------------------------------------------------------- which one


def _detail_of(trace: Trace, shown: Map) -> Detail | None:
    return next((one for one in trace.details if (one.kind, one.layer) == (shown.kind, shown.layer)), None)


def _map_with_detail(trace: Trace, kind: str | None, layer: int | None) -> Map:
    asked = trace.map(kind, layer)
    if _detail_of(trace, asked) is not None:
        return asked
    others = [one for one in trace.maps if one.kind == (kind or one.kind) and _detail_of(trace, one) is not None]
    if layer is not None or not others:
        raise TraceError(why_not(asked))
    return others[-1]


def _striking(trace: Trace, shown: Map, head: int | None, query: int | None) -> tuple[int, int]:
    """Of a word, the head in which it looks hardest at another; else the word that looks at two others at once."""
    words, keys = trace.rows[shown.queries].tokens, trace.rows[shown.keys].tokens
    weights_HQK = shown.weights_HQK.astype(np.float64)
    weights_HQK[:, :, [not _says_something(key) for key in keys]] -= 1
    if shown.queries == shown.keys:
        weights_HQK -= np.eye(len(words), len(keys))
    if query is None:
        weights_HQK[:, [not _says_something(word) for word in words]] -= 2
    heads = range(shown.heads) if head is None else [head]
    queries = range(len(words)) if query is None else [query]
    rank = 1 if query is not None else min(2, len(keys))
    return max(((h, q) for h in heads for q in queries), key=lambda place: np.sort(weights_HQK[place])[-rank])


def _says_something(token: Token) -> bool:
    return not token.special and any(letter.isalnum() for letter in token.text)


# ------------------------------------------------------------------------------------------------- arithmetic


def _softmax(scores_HK: Numbers, seen_K: npt.NDArray[np.bool_]) -> Numbers:
    hidden_HK = np.where(seen_K, scores_HK, -np.inf)
    exp_HK = np.exp(hidden_HK - hidden_HK.max(-1, keepdims=True))
    result: Numbers = exp_HK / exp_HK.sum(-1, keepdims=True)
    return result


def _normalised(x_W: Numbers, around: Around) -> Numbers:
    even_W = (x_W - x_W.mean()) / np.sqrt(x_W.var() + around.epsilon)
    result: Numbers = even_W * around.gain_W + around.shift_W
    return result


def _apart(ours_H: Numbers, theirs_H: npt.NDArray[Any], head: int) -> float:
    return float(np.abs(ours_H[head] - theirs_H[head]).max())
