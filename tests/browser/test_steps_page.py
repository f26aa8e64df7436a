"""The Steps view: it computes attention anew in the browser, and says so if that is not what the model computed."""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import VOCABULARY, small
from opening import Opened, opener, show
from regard.interpret.pack import pack_numbers, unpack
from regard.interpret.page_data import page_data
from regard.interpret.recording import trace_pair
from regard.interpret.trace import Facts, Trace
from regard.models import build
from regard.models.base import Writer
from regard.text.tokenizers.tokenizer import Listed

WORDS = Listed("words", [f"\u2581w{n}" for n in range(4, VOCABULARY)])
SOURCE, TARGET = [7, 8, 9, 10, 11, 12], [6, 13, 14]
RELATIVE: dict[str, dict[str, Any]] = {"lm": {"positions": "relative", "span": 3}}


def trace_of(name: str, **settings: Any) -> Trace:
    torch.manual_seed(1)
    model = build(small(name, **settings).model, VOCABULARY).eval()
    assert isinstance(model, Writer)
    return trace_pair(model, WORDS, Facts(name), SOURCE, TARGET, WORDS.decode(SOURCE)).trace


TRACE = trace_of("transformer", norm="before")
DATA = page_data([TRACE])


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    with opener(browser, tmp_path) as open_:
        yield open_


@pytest.fixture
def page(opened: Opened) -> Any:
    return opened(DATA, "view=steps")


def texts(page: Any, places: str) -> list[str]:
    return [text.strip() for text in page.locator(places).all_inner_texts()]


def column(page: Any, number: int) -> list[float]:
    """The numbers of a column of the table of words."""
    found = texts(page, f".step-rows tbody td:nth-child({number + 1})")
    return [float(text.replace("−", "-").replace("∞", "inf")) for text in found]


def steps(page: Any, **state: Any) -> None:
    """The Steps view in another state, once it is drawn: then its panel has been made anew."""
    page.locator(".step-panel > *").first.evaluate("(part) => part.setAttribute('data-old', '')")
    show(page, view="steps", **state)
    page.locator(".step-panel > :first-child:not([data-old])").wait_for()


def softmax(scores: Any) -> Any:
    exp = np.exp(scores - np.max(scores))
    return exp / exp.sum()


def test_the_numbers_of_every_step_are_those_of_numpy(page: Any) -> None:
    detail = next(one for one in TRACE.details if (one.kind, one.layer) == ("decoder", 1))
    raw = detail.query_HQD[1, 2] @ detail.key_HKD[1].T
    at = {"kind": "decoder", "layer": 1, "heads": [1], "token": 2}
    steps(page, step=3, **at)
    page.locator(".check.right").wait_for()
    assert column(page, 1) == pytest.approx(raw.tolist(), abs=2e-3)
    steps(page, step=4, **at)
    assert texts(page, ".step-rows tbody tr:last-child td")[2:] == ["hidden in step 6"] * 2
    rows = [texts(row, "td") for row in page.locator(".step-rows tbody tr:not(:last-child)").all()]
    expected = np.stack([raw[:3], raw[:3] / np.sqrt(8), softmax(raw[:3] / np.sqrt(8)), softmax(raw[:3])], 1)
    assert np.array([[float(cell.replace("−", "-")) for cell in row] for row in rows]) == pytest.approx(
        expected, abs=2e-3
    )
    steps(page, step=6, **at)
    assert column(page, 3)[:3] == pytest.approx(softmax(raw[:3] / np.sqrt(8)).tolist(), abs=1e-3)
    assert texts(page, ".step-rows tbody tr:last-child td") == ["−∞", "0", "0"]


def test_what_may_not_be_seen_is_hidden(page: Any) -> None:
    steps(page, step=5, kind="decoder", token=1)
    assert texts(page, ".mask .hidden-key") == ["w13\n−∞", "w14\n−∞"]
    assert len(texts(page, ".mask > span")) == 4


def test_the_word_explained_is_the_word_chosen_everywhere(page: Any) -> None:
    steps(page, step=3, kind="cross", token=2)
    assert texts(page, "#view option:checked") == ["w13 → w14"]  # what is read there, and what is written
    page.locator("#view select").select_option("w6 → w13")
    page.locator(".terms th:has-text('q w6')").wait_for()
    page.keyboard.press("h")
    page.locator(".words [aria-selected=true]:has-text('w13')").wait_for()


def test_a_green_mark_says_how_far_it_is_from_pytorch(page: Any) -> None:
    said = page.locator(".check.right").inner_text()
    assert all(name in said for name in ("scores", "context", "weights", "joined", "output"))
    assert float(re.findall(r"computed: ([\de.-]+) ", said)[0]) < 1e-3


@pytest.mark.parametrize("fault", ["context", "scores", "after", "join"])
def test_a_planted_fault_turns_the_mark_red(fault: str, opened: Opened) -> None:
    data = copy.deepcopy(DATA)
    entry = data["items"][0]["details"][0]
    entry[fault] = pack_numbers(unpack(entry[fault])[::-1])  # of a context, that of the other head
    page = opened(data, "view=steps&kind=encoder&layer=0")
    assert page.locator(".check.wrong").inner_text().startswith("✗")
    steps(page, kind="encoder", layer=1)
    page.locator(".check.right").wait_for()


def test_a_link_followed_while_the_address_is_being_written_is_followed(opened: Opened) -> None:
    page = opened(DATA, "view=steps&kind=encoder&layer=0")
    page.evaluate(
        """() => {
          location.hash = "view=steps&kind=encoder&layer=1";
          history.replaceState(null, "", "#view=steps&kind=encoder&layer=0");
        }"""
    )
    page.wait_for_function("regardSee.state().layer === 1")


@pytest.mark.parametrize("name", ["bahdanau", "luong", "conv", "lm", "universal"])
def test_other_models_are_computed_as_they_compute(name: str, opened: Opened) -> None:
    page = opened(page_data([trace_of(name, **RELATIVE.get(name, {}))]), "view=steps")
    page.locator(".check.right").wait_for()
    for step in (2, 3, 4, 7, 0):
        steps(page, step=step)
        page.locator(f".step-panel h2:has-text('{step + 1} · ')").wait_for()


def test_a_layer_without_steps_says_why(opened: Opened) -> None:
    page = opened(page_data([trace_of("memory")]), "view=steps")
    assert "blocks" in texts(page, ".step-panel")[0]
    page.get_by_label("the lecture's example").check()
    page.locator(".check.right").wait_for()


def test_the_lecture_is_always_there(page: Any) -> None:
    steps(page, step=3)
    page.get_by_label("the lecture's example").check()
    page.locator(".step-rows th:has-text('input 1')").wait_for()
    assert column(page, 1) == [2, 4, 4]
    page.locator("#view select").select_option("input 2")
    page.locator(".step-rows td:has-text('16')").wait_for()
    assert column(page, 1) == [4, 16, 12]
    steps(page, step=6, stepsFrom="lecture", stepsInput=0)
    assert column(page, 3) == [0.0634, 0.4683, 0.4683]
    page.get_by_label("÷ √3").check()
    page.locator(".step-rows td:has-text('0.4319')").first.wait_for()
    assert column(page, 3) == pytest.approx(softmax(np.array([2, 4, 4]) / np.sqrt(3)).tolist(), abs=1e-4)
    assert len(texts(page, ".check.right")) == 1


def test_pointing_at_a_score_shows_its_terms(page: Any) -> None:
    steps(page, step=3, stepsFrom="lecture")
    page.locator(".step-rows tbody tr").nth(2).hover()
    assert texts(page, ".terms p") == ["1×2 + 0×3 + 2×1 = 4.000"]
    page.locator(".step-rows tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    assert texts(page, ".terms p") == ["1×4 + 0×4 + 2×0 = 4.000"]


def test_what_if_is_not_what_is(page: Any) -> None:
    steps(page, step=6, stepsFrom="lecture")
    assert page.get_by_text("what if", exact=True).is_visible() and len(texts(page, ".step-rows thead th")) == 4
    page.get_by_label("What if: temperature").fill("1")
    assert texts(page, ".step-rows thead th")[4] == "what if T = 10.00"
    assert column(page, 4) == pytest.approx(softmax(np.array([0.2, 0.4, 0.4])).tolist(), abs=1e-4)
    assert column(page, 3) == [0.0634, 0.4683, 0.4683]


def test_the_keyboard_leads_through_all_steps(page: Any) -> None:
    for number, key in enumerate([" ", "ArrowRight", " ", "ArrowRight", " ", " ", " ", " "], start=2):
        page.keyboard.press(key)
        page.locator(f".step-tab[aria-current=step]:has-text('{min(number, 8)}')").wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator(".step-panel h2:has-text('7 · Softmax')").wait_for()
    assert page.locator("#live").inner_text().startswith("Step 7 of 8: Softmax.")
    page.get_by_role("button", name="‹ back").focus()
    page.keyboard.press(" ")
    page.locator(".step-panel h2:has-text('6 · Mask')").wait_for()
    page.keyboard.press("h")
    page.locator("#tab-heads[aria-selected=true]").wait_for()


def test_it_plays_by_itself(page: Any) -> None:
    page.clock.install()
    page.get_by_role("button", name="play").click()
    for title in ("2 · What comes", "3 · Query"):
        page.clock.run_for(4100)
        page.locator(f".step-panel h2:has-text('{title}')").wait_for()
    page.get_by_role("button", name="stop").click()
    page.clock.run_for(20000)
    assert texts(page, ".step-panel h2")[0].startswith("3")


def test_nothing_plays_where_less_motion_is_asked_for(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    assert page.get_by_role("button", name="play").is_disabled()


@pytest.mark.parametrize("name", ["transformer", "bahdanau", "lm"])
def test_the_script_computes_the_same_context(name: str, opened: Opened) -> None:
    trace = trace_of(name, **RELATIVE.get(name, {}))
    kind = "decoder" if name == "lm" else "cross"
    page = opened(page_data([trace]), f"view=steps&kind={kind}&layer=0&heads=[0]&token=2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="copy as NumPy").click()
    page.get_by_text("copied").wait_for()
    script = page.evaluate("navigator.clipboard.readText()")
    assert script == page.get_by_label("The script").input_value()
    assert len(re.findall(r"^\w", script, flags=re.MULTILINE)) == 10
    show = "\nimport json; print(json.dumps([weights.tolist(), context.tolist()]))"
    done = subprocess.run([sys.executable, "-c", script + show], capture_output=True, text=True, check=True)
    weights, context = json.loads(done.stdout.splitlines()[-1])
    assert weights == pytest.approx(trace.map(kind, 1).weights_HQK[0, 2].tolist(), abs=1e-3)
    detail = next(one for one in trace.details if (one.kind, one.layer) == (kind, 0))
    assert context == pytest.approx(detail.context_HQD[0, 2].tolist(), abs=1e-3)


@pytest.mark.parametrize("width", [400, 700, 1400])
def test_nothing_sticks_out(width: int, opened: Opened) -> None:
    page = opened(DATA, "view=steps", width=width)
    for source, step in [*(("text", step) for step in range(8)), ("lecture", 2), ("lecture", 7)]:
        steps(page, step=step, kind="decoder", stepsFrom=source)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, step
    page.get_by_role("button", name="copy as NumPy").click()
    page.get_by_label("The script").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_table_behind_it_has_every_number(page: Any) -> None:
    steps(page, kind="decoder", layer=0, heads=[0], token=1, table=True)
    page.locator("#numbers caption:has-text('w6')").wait_for()
    weights = [float(row.locator("td").last.inner_text()) for row in page.locator("#numbers tbody tr").all()]
    assert weights == pytest.approx(TRACE.map("decoder", 1).weights_HQK[0, 1].tolist(), abs=1e-4)
