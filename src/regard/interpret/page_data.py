"""Traces -> what the attention page reads: the numbers packed, everything else plain."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from regard.interpret import worked_example
from regard.interpret.pack import FINE, pack_numbers, pack_weights
from regard.interpret.steps import details_data
from regard.interpret.trace import CAUSAL, KINDS, Map, Row, Token, Trace
from regard.pages.see import see_page

SPECIAL, UNKNOWN, CONTINUES, MASKED = 1, 2, 4, 8


def page_of(
    traces: Sequence[Trace],
    *,
    titles: Sequence[str] = (),
    extras: Sequence[dict[str, Any]] = (),
    start: dict[str, Any] | None = None,
) -> str:
    """The attention page of one trace or several, the first shown first.

    `extras` are added to the items one by one: "knockouts" and "beam". `start` is what the page shows at first.
    """
    return see_page(page_data(traces, titles=titles, extras=extras, start=start), figure=_figure(traces[0]))


def page_data(
    traces: Sequence[Trace],
    *,
    titles: Sequence[str] = (),
    extras: Sequence[dict[str, Any]] = (),
    start: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What the page is made from; `see/1` names this form."""
    weights = sum(shown.weights_HQK.size for trace in traces for shown in trace.maps)
    items = [item(trace, fine=weights <= FINE) for trace in traces]
    for one, title in zip(items, titles, strict=False):
        one["title"] = title
    for one, extra in zip(items, extras, strict=False):
        one.update(extra)
    return {
        "schema": "see/1",
        "made": f"regard {version('regard')}",
        "title": items[0]["title"],
        "items": items,
        "start": start or {},
        "lecture": worked_example.data(),
    }


def item(trace: Trace, *, fine: bool = True) -> dict[str, Any]:
    """One trace; weights in 16 bits if `fine`, else in 8."""
    facts = trace.facts
    read = trace.rows.get("source", trace.rows.get("text"))
    return {
        "title": read.text if read else facts.name,
        "model": {
            "name": facts.name,
            "parameters": facts.parameters,
            "folder": facts.folder,
            "difference": trace.difference,
            "about": list(facts.settings),
        },
        "rows": {name: row_data(row) for name, row in trace.rows.items()},
        "maps": [kind_data(trace, kind, fine) for kind in trace.kinds],
        "predictions": [[list(guess) for guess in guesses] for guesses in trace.predictions] or None,
        "halted": trace.halted or None,
        "details": details_data(trace),
        "knockouts": None,
        "beam": None,
    }


def row_data(row: Row) -> dict[str, Any]:
    """A text and its tokens."""
    return {"text": row.text, "tokens": [[t.text, t.first, t.last, t.word, flags(t)] for t in row.tokens]}


def flags(token: Token) -> int:
    """What is special about a token, as one number."""
    return SPECIAL * token.special + UNKNOWN * token.unknown + CONTINUES * token.continues + MASKED * token.masked


def kind_data(trace: Trace, kind: str, fine: bool) -> dict[str, Any]:
    """All layers of one kind of attention."""
    layers = list(trace.layers(kind))
    return {
        "kind": kind,
        "title": KINDS[kind],
        "queries": layers[0].queries,
        "keys": layers[0].keys,
        "causal": kind in CAUSAL,
        "heads": layers[0].heads,
        "layers": [_layer(trace, shown, fine) for shown in layers],
    }


def _layer(trace: Trace, shown: Map, fine: bool) -> dict[str, Any]:
    return {
        "number": shown.layer,
        "label": trace.label(shown),
        "weights": pack_weights(shown.weights_HQK, fine),
        "norms": pack_numbers(shown.norms_HK) if shown.norms_HK is not None else None,
    }


def _figure(trace: Trace) -> str:
    return trace.svg() if trace.maps else ""
