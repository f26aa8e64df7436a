"""What switching a head off proves, and what a beam search tried: said as it was recorded, and worked out right."""

import math
import re
from typing import Any

import pytest

from synthetic import synthetic
from test_compare_contrast import Open, opened, until

__all__ = ["opened"]  # the fixture that opens pages

TRANSLATION = "L' animal n' a pas traversé la rue parce qu' il était trop fatigué ."
CHANGED = TRANSLATION.replace("il était", "elle était")


def knockouts() -> dict[str, Any]:
    """Two heads matter, one of them so much that another word is written; the others hardly."""
    heads = [
        {
            "kind": kind, "layer": layer, "head": head, "probability": 0.9 + 0.001 * head + 0.01 * layer,
            "instead": "il", "translation": None, "changes": False,
        }
        for kind in ("encoder", "cross") for layer in range(3) for head in range(4)
    ]  # fmt: skip
    heads[6] |= {
        "probability": 0.08,
        "instead": "elle",
        "translation": CHANGED,
        "changes": True,
    }  # encoder layer 2, head 3
    heads[13] |= {"probability": 0.51}  # cross layer 1, head 2
    return {"position": 10, "word": "il", "probability": 0.93, "translation": TRANSLATION, "heads": heads}


def beam() -> dict[str, Any]:
    """Two wide, three steps: `a c` is likelier than `b`, once its length is allowed for."""
    tries = [
        (-1, 0, "<s>", 1.0, "begin"),
        (0, 1, "a", 0.6, "kept"),
        (0, 1, "b", 0.3, "kept"),
        (0, 1, "c", 0.1, "dropped"),
        (1, 2, "c", 0.5, "kept"),
        (1, 2, "d", 0.05, "dropped"),
        (2, 2, "</s>", 0.9, "finished"),
        (4, 3, "</s>", 0.8, "finished"),
    ]
    nodes: list[dict[str, Any]] = []
    for parent, step, text, p, state in tries:
        total = math.log(p) + (nodes[parent]["total"] if parent >= 0 else 0.0)
        score = total / ((5 + step) / 6) ** 0.6 if state == "finished" else None
        nodes.append(
            {"parent": parent, "step": step, "text": text, "total": total, "p": p, "score": score, "state": state}
        )
    results = [
        {"node": n, "text": text, "total": nodes[n]["total"], "length": length, "penalty": ((5 + length) / 6) ** 0.6,
         "score": nodes[n]["score"], "chosen": n == 7}
        for n, text, length in ((7, "a c", 3), (6, "b", 2))
    ]  # fmt: skip
    return {"size": 2, "alpha": 0.6, "nodes": nodes, "results": results}


def page_data(**parts: Any) -> dict[str, Any]:
    data, _ = synthetic()
    data["items"][0] |= parts
    return data


def test_heads_are_ranked_by_what_the_word_loses_without_them(opened: Open) -> None:
    page = opened(page_data(knockouts=knockouts()), "view=knockout")
    page.locator(".knockouts li").first.wait_for()
    falls = [float(text.replace("−", "-")) for text in page.locator(".knockouts .move").all_inner_texts()]
    assert len(falls) == 24 and falls == sorted(falls)
    names = page.locator(".knockouts .name").all_inner_texts()
    assert names[:2] == ["encoder layer 2, head 3", "attention to the source, decoder layer 1, head 2"]
    assert page.locator(".knockouts .amounts").all_inner_texts()[:2] == ["0.93 → 0.08", "0.93 → 0.51"]
    assert falls[:2] == [-0.85, -0.42]
    widths = page.locator(".knockouts .bar b").evaluate_all(
        "(bars) => bars.map((bar) => bar.getBoundingClientRect().width)"
    )
    whole = page.locator(".knockouts .bar").first.bounding_box()["width"]
    assert widths[0] / whole == pytest.approx(0.08, abs=0.01) and widths[1] / whole == pytest.approx(0.51, abs=0.01)


def test_what_is_written_instead_is_shown_with_its_change_marked(opened: Open) -> None:
    page = opened(page_data(knockouts=knockouts()), "view=knockout")
    first = page.locator(".knockouts li").first
    assert first.locator(".instead").inner_text() == "writes elle"
    assert first.locator(".translation").inner_text() == CHANGED
    assert first.locator(".translation mark").all_inner_texts() == ["elle"]
    assert page.locator(".knockouts li.changes").count() == 1
    says = page.locator(".finding").inner_text()
    assert says.startswith(
        "“il” depends most on encoder layer 2, head 3: without it the probability falls from 0.93 to 0.08"
    )
    assert says.endswith("1 of 24 heads, switched off alone, changes what is written.")
    first.get_by_role("button").focus()
    page.keyboard.press("Enter")
    until(page, "regardSee.state().view", "heads")
    state = page.evaluate("regardSee.state()")
    assert (state["kind"], state["layer"], state["heads"]) == ("encoder", 1, [2])


def test_every_head_wears_what_it_is_worth(opened: Open) -> None:
    page = opened(page_data(knockouts=knockouts()), "kind=encoder&layer=1")
    marks = page.locator("#toolbar .tool small")
    marks.first.wait_for()
    assert marks.all_inner_texts() == ["−0.02", "−0.02", "−0.85", "−0.02"]
    says = "Without this head “il” falls from 0.93 to 0.08, and “elle” is written instead."
    assert marks.nth(2).get_attribute("title") == says
    page.locator("body").press("ArrowUp")
    until(page, "document.querySelector('#toolbar small').textContent", "−0.01")


def test_a_head_that_serves_all_layers_wears_it_in_each(opened: Open) -> None:
    one = {**knockouts()["heads"][6], "layer": None}
    page = opened(page_data(knockouts={**knockouts(), "heads": [one]}), "kind=encoder&layer=2")
    page.locator("#toolbar .tool small").wait_for()
    assert page.locator("#toolbar .tool small").all_inner_texts() == ["−0.85"]
    page.locator("body").press("o")
    assert page.locator(".knockouts .name").inner_text() == "encoder self-attention, in every layer, head 3"


def test_the_length_penalty_is_worked_out(opened: Open) -> None:
    """log(0.6 × 0.5 × 0.8) = −1.427 over (8 / 6)^0.6 = 1.188, and log(0.3 × 0.9) = −1.309 over (7 / 6)^0.6 = 1.097."""
    page = opened(page_data(beam=beam()), "view=beam")
    page.locator(".results li").first.wait_for()
    assert page.locator(".results .amounts").all_inner_texts() == [
        "−1.43 / ((5 + 3) / 6)^0.6 = −1.43 / 1.19 = −1.20",
        "−1.31 / ((5 + 2) / 6)^0.6 = −1.31 / 1.10 = −1.19",
    ]
    assert page.locator(".results .move").all_inner_texts() == ["chosen", ""]


def test_a_score_that_is_not_what_the_arithmetic_says_is_told(opened: Open) -> None:
    wrong = beam()
    wrong["results"][0]["score"] -= 0.5
    wrong["results"][1] |= {"score": wrong["results"][1]["score"] - 0.25, "coverage": -0.25}
    page = opened(page_data(beam=wrong), "view=beam")
    page.locator(".results li").first.wait_for()
    told = page.locator(".results .amounts").all_inner_texts()
    assert told[0].endswith("= −1.20; but the search says −1.70")
    assert told[1].endswith("= −1.19; with −0.25 for coverage −1.44")


CARDS = "document.querySelectorAll('.tree .node').length"


def cards(page: Any) -> list[tuple[str, ...]]:
    """What stands on each card: token, numbers, state; and the shape beside it."""
    script = """(cards) => cards.map((card) => [...[...card.querySelectorAll("text")].map((text) => text.textContent),
      card.querySelector(".shape").tagName])"""
    return [tuple(card) for card in page.locator(".tree .node").evaluate_all(script)]


def test_the_tree_grows_step_by_step(opened: Open) -> None:
    page = opened(page_data(beam=beam()), "view=beam")
    page.locator(".tree .node").first.wait_for()
    found = cards(page)
    assert len(found) == 8
    assert found[1] == ("a", "p 0.60 · Σ −0.51", "kept", "circle")
    assert found[3] == ("c", "p 0.10 · Σ −2.30", "dropped", "path")
    assert found[7] == ("</s>", "p 0.80 · Σ −1.43", "finished −1.20", "rect")
    radii = page.locator(".tree circle").evaluate_all("(all) => all.map((one) => Number(one.getAttribute('r')))")
    assert [(r / radii[0]) ** 2 for r in radii] == pytest.approx([1.0, 0.6, 0.3, 0.5], abs=1e-3), "area: probability"
    page.get_by_role("slider").focus()
    for step, count in ((2, 7), (1, 4), (0, 1)):
        page.keyboard.press("ArrowLeft")
        until(page, CARDS, count)
        assert page.locator("output").inner_text().startswith(f"{step} of 3")
    page.get_by_role("slider").blur()
    page.keyboard.press(".")
    until(page, CARDS, 4)
    page.keyboard.press(",")
    until(page, CARDS, 1)


def test_no_two_branches_cross_and_the_way_of_a_result_can_be_shown(opened: Open) -> None:
    page = opened(page_data(beam=beam()), "view=beam")
    page.locator(".tree .node").first.wait_for()
    drawn = page.locator(".tree .branch").evaluate_all("(all) => all.map((one) => one.getAttribute('d'))")
    ways = [[float(number) for number in re.findall(r"[\d.]+", d)] for d in drawn]
    ends = [(way[0], way[1], way[-1]) for way in ways]  # where it begins, at what height, and at what height it ends
    for x, y, to in ends:
        assert all((y - other) * (to - below) >= 0 for begin, other, below in ends if begin == x)
    assert page.locator(".tree .node.path .token").all_text_contents() == ["<s>", "a", "c", "</s>"]
    page.locator(".results button").nth(1).focus()
    page.keyboard.press("Enter")
    page.locator(".results li.chosen", has_text="b").wait_for()
    assert page.locator(".tree .node.path .token").all_text_contents() == ["<s>", "b", "</s>"]
    page.locator("body").press("t")
    rows = page.locator("#numbers tbody tr")
    rows.first.wait_for()
    assert rows.nth(7).locator("th, td").all_inner_texts() == [
        "3",
        "<s> a c </s>",
        "0.8000",
        "−1.4271",
        "−1.2009",
        "finished",
    ]


def test_without_a_record_the_page_says_so(opened: Open) -> None:
    page = opened(page_data(), "view=beam")
    page.get_by_text("No beam search was recorded").first.wait_for()
    page.locator("body").press("o")
    page.get_by_text("No heads were switched off").first.wait_for()


def test_wide_trees_scroll_in_their_own_box(opened: Open) -> None:
    long = beam()
    for step in range(4, 30):
        long["nodes"].append({**long["nodes"][4], "parent": len(long["nodes"]) - 1 if step > 4 else 4, "step": step})
    page = opened(page_data(beam=long, knockouts=knockouts()), "view=beam")
    for view, part in (("b", ".tree .node"), ("o", ".knockouts li")):
        page.locator("body").press(view)
        for width in (400, 700, 1400):
            page.set_viewport_size({"width": width, "height": 900})
            page.locator(part).first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
