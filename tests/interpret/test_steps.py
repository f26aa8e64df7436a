"""The eight steps: what they compute is what the model computed, and what they say is where it is said."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from conftest import SMALL, VARIANTS, VOCABULARY, small
from regard.errors import TraceError
from regard.interpret import worked_example
from regard.interpret.pack import unpack
from regard.interpret.recording import trace_pair, trace_reading, trace_text
from regard.interpret.step_panels import Panel, panels, way_of
from regard.interpret.steps import compare, details_data, explain, recompute
from regard.interpret.trace import Detail, Facts, Trace
from regard.models import build
from regard.models.base import LanguageModel, Writer
from regard.models.bert import Bert, Classifier
from regard.text.tokenizers.tokenizer import Listed

SOURCE, TARGET = [7, 8, 9, 10, 11, 12], [6, 13, 14]
VARIOUS = [(name, settings) for name, several in VARIANTS.items() for settings in several]
SRC = Path(regard.__file__).parent


WORDS = Listed("words", [f"\u2581w{n}" for n in range(4, VOCABULARY)])


def trace_of(name: str, **settings: Any) -> Trace:
    """A model that has learned nothing, and what it does."""
    torch.manual_seed(1)
    model = build(small(name, **settings).model, VOCABULARY, 3 if name == "classifier" else 0).eval()
    text = WORDS.decode(SOURCE)
    if isinstance(model, Bert | Classifier):
        return trace_reading(model, WORDS, Facts(name), SOURCE, text).trace
    if isinstance(model, LanguageModel):
        return trace_text(model, WORDS, Facts(name), SOURCE, text).trace
    assert isinstance(model, Writer)
    return trace_pair(model, WORDS, Facts(name), SOURCE, TARGET, text).trace


def stored(entry: dict[str, Any], detail: Detail) -> Detail:
    """The detail as a page gets it."""
    around = detail.around and dataclasses.replace(
        detail.around,
        input_QW=unpack(entry["input"]),
        join_WW=unpack(entry["join"]),
        bias_W=unpack(entry["join_bias"]),
        joined_QW=unpack(entry["joined"]),
        output_QW=unpack(entry["after"]),
        gain_W=unpack(entry["norm"]["gain"]),
        shift_W=unpack(entry["norm"]["shift"]),
    )
    return dataclasses.replace(
        detail,
        query_HQD=unpack(entry["query"]),
        key_HKD=unpack(entry["key"]),
        value_HKD=unpack(entry["value"]),
        scores_HQK=unpack(entry["scores"]),
        context_HQD=unpack(entry["context"]),
        seen_QK=unpack(entry["seen"]) == 1,
        bias_HQK=unpack(entry["bias"]) if entry["bias"] else None,
        fit_D=unpack(entry["v"]) if entry["v"] else None,
        around=around,
    )


def worst(detail: Detail) -> float:
    heads, queries, _ = detail.query_HQD.shape
    places = [(head, query) for head in range(heads) for query in range(queries)]
    return max(max(compare(detail, recompute(detail, query), head, query).values()) for head, query in places)


def test_the_lecture_gives_what_lectures_give() -> None:
    found = worked_example.steps()
    assert found.detail.query_HQD[0].tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert found.detail.key_HKD[0].tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert found.detail.value_HKD[0].tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]
    assert found.numbers.products_HK[0].tolist() == [2, 4, 4]
    assert found.numbers.weights_HK[0] == pytest.approx([0.0634, 0.4683, 0.4683], abs=1e-4)
    assert found.numbers.context_HD[0] == pytest.approx([1.9366, 6.6831, 1.5951], abs=1e-4)


def test_the_lecture_divided_by_the_root_of_three() -> None:
    low, high = math.exp(2 / math.sqrt(3)), math.exp(4 / math.sqrt(3))
    found = worked_example.steps(scaled=True)
    assert found.numbers.weights_HK[0] == pytest.approx([part / (low + 2 * high) for part in (low, high, high)])
    assert worked_example.steps().numbers.other_HK == pytest.approx(found.numbers.weights_HK)
    assert found.difference < 1e-6 and worked_example.steps("input 3").word == "input 3"


@pytest.mark.parametrize(("name", "settings"), VARIOUS, ids=[f"{name}{settings}" for name, settings in VARIOUS])
def test_the_steps_of_every_model_are_what_it_computed(name: str, settings: dict[str, Any]) -> None:
    trace = trace_of(name, **settings)
    for detail in trace.details:
        assert worst(detail) < 1e-4
        found = explain(trace, detail.kind, detail.layer + 1)
        assert found.differences["weights"] < 1e-5 and not found.word.startswith("<")
    entries = {(entry["kind"], entry["layer"]): entry for entry in details_data(trace)}
    for detail in trace.details:
        assert worst(stored(entries[detail.kind, detail.layer], detail)) < 1e-3  # else the page would show a fault


def test_what_may_not_be_seen_has_a_weight_of_exactly_zero() -> None:
    trace = trace_of("lm")
    for query in range(len(trace.rows["text"].tokens)):
        weights_HK = recompute(trace.details[0], query).weights_HK
        assert (weights_HK[:, query + 1 :] == 0).all() and (weights_HK[:, : query + 1] > 0).all()
    assert unpack(details_data(trace)[0]["seen"]).tolist() == np.tril(np.ones((7, 7))).tolist()


def test_the_context_of_another_head_is_found_out() -> None:
    detail = trace_of("transformer").details[0]
    swapped = dataclasses.replace(detail, context_HQD=detail.context_HQD[::-1])
    assert (
        compare(swapped, recompute(swapped, 2), 0, 2)["context"]
        > 1e-3
        > compare(detail, recompute(detail, 2), 0, 2)["context"]
    )


def test_additive_scores_by_hand() -> None:
    detail = trace_of("bahdanau").details[0]
    assert detail.fit_D is not None
    by_hand = [
        sum(v * math.tanh(q + k) for v, q, k in zip(detail.fit_D, detail.query_HQD[0, 1], key_D, strict=True))
        for key_D in detail.key_HKD[0]
    ]
    assert recompute(detail, 1).scores_HK[0] == pytest.approx(by_hand, abs=1e-6)


def test_without_the_scale_the_weights_are_those_of_the_bare_products() -> None:
    detail = trace_of("transformer").details[0]
    bare = np.exp(detail.query_HQD[0, 3] @ detail.key_HKD[0].T)
    assert recompute(detail, 3).other_HK[0] == pytest.approx(bare / bare.sum(), abs=1e-5)


def test_numbers_that_do_not_bear_rounding_are_stored_exactly() -> None:
    trace = trace_of("luong")
    (detail,) = trace.details
    large = dataclasses.replace(detail, value_HKD=detail.value_HKD * 1e3, context_HQD=detail.context_HQD * 1e3)
    kinds = [details_data(dataclasses.replace(trace, details=(one,)))[0]["value"]["e"] for one in (detail, large)]
    assert kinds == ["i16", "f32"]


def test_what_does_not_fit_the_page_is_left_out_and_said() -> None:
    trace = trace_of("transformer")
    entries = details_data(trace, budget=3000)
    there = [(entry["kind"], entry["layer"]) for entry in entries if "query" in entry]
    assert ("encoder", 0) in there and 1 <= len(there) < len(trace.maps) == len(entries)
    assert all("--kind" in entry["why"] for entry in entries if "query" not in entry)
    assert [("query" in entry) for entry in details_data(trace, budget=10)] == [False] * 6
    assert all("query" in entry for entry in details_data(trace))


def test_what_layers_have_in_common_is_stored_once() -> None:
    entries = details_data(trace_of("transformer"))
    told = [(entry["kind"], entry["layer"]) for entry in entries if "panels" in entry]
    assert sorted(kind for kind, _ in told) == ["cross", "decoder", "encoder"]
    assert [entry["kind"] for entry in entries if entry["embedding"]] in (["encoder", "decoder"], ["encoder", "cross"])


def test_layers_without_steps_say_why() -> None:
    trace = trace_of("memory")
    assert [entry["why"][:5] for entry in details_data(trace)] == ["Local", "In me", "Local"]
    with pytest.raises(TraceError, match="several words joined by a convolution"):
        explain(trace, "compressed", 2)
    with pytest.raises(TraceError, match="blocks"):
        explain(trace, "local")
    with pytest.raises(TraceError, match="no attention at all"):
        explain(trace_of("seq2seq"))
    with pytest.raises(TraceError, match="head 9"):
        explain(trace_of("lm"), head=9)
    assert details_data(trace_of("seq2seq")) == []


def all_panels() -> list[Panel]:
    details = [detail for name in SMALL for detail in trace_of(name).details]
    return [panel for one in details for panel in panels(one, way_of(one))] + [*worked_example.steps().panels]


def test_the_line_named_stands_where_it_is_said_to_stand() -> None:
    codes = {code for panel in all_panels() for code in panel.code}
    assert {code.where.split(":")[0] for code in codes} == {
        "layers/attention.py", "layers/blocks.py", "models/bert.py", "models/conv.py", "models/seq2seq.py",
    }  # fmt: skip
    for where, line in codes:
        name, number = where.split(":")
        assert (SRC / name).read_text().splitlines()[int(number) - 1].strip() == line


def test_each_way_of_attention_is_told_by_its_own_formula() -> None:
    formulas = {
        name: [p.formula for p in explain(trace_of(name)).panels] for name in ("bahdanau", "luong", "conv", "lm")
    }
    assert formulas["bahdanau"][3] == "s_j = v · tanh(q + k_j)" and formulas["luong"][3] == "s_j = q · k_j"
    assert formulas["luong"][4] == formulas["conv"][4] == "s_j ← s_j" and formulas["lm"][4] == "s_j ← s_j / √8"
    assert "LayerNorm(x + y)" in explain(trace_of("transformer")).panels[7].formula
    assert "q · r" in explain(trace_of("lm", positions="relative", span=3)).panels[3].formula


def test_a_word_and_its_head_are_found() -> None:
    trace = trace_of("transformer")
    found = explain(trace, "encoder", 1, word="w9")
    assert (found.query, found.word) == (2, "w9")
    weights_HK = np.delete(trace.maps[0].weights_HQK[:, 2], [2, 6], axis=1)  # neither itself nor the end
    assert found.head == weights_HK.max(1).argmax()


def test_the_page_begins_with_the_word_that_a_terminal_would_show() -> None:
    trace = trace_of("transformer")
    for entry in details_data(trace):
        found = [explain(trace, entry["kind"], entry["layer"] + 1, head).query for head in (1, 2)]
        assert entry["telling"] == found


def test_the_lecture_on_the_page_is_small_and_plain() -> None:
    data = worked_example.data()
    assert len(json.dumps(data)) < 8000 and data["inputs"] == [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
    assert [entry["scale"] for entry in data["details"]] == [1.0, pytest.approx(3**-0.5)]
    assert all(len(entry["panels"]) == 8 for entry in data["details"])
