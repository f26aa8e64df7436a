"""The attention page shows the weights that were stored: in numbers, in the widths of lines, in cells of the matrix."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opening import DATA, WEIGHTS, Opened, drawn, opener, option, show, words_of
from synthetic import Weights, random_weights, self_attention


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    with opener(browser, tmp_path) as opened:
        yield opened


def wrong_cells(page: Any, weights: Weights, count: int) -> list[str]:
    """Words hovered at random, in both columns, and the table read: the cells that are not as `weights` has them."""
    chance = random.Random(0)
    wrong = []
    for _ in range(count // 5):
        kind = chance.choice(list(weights))
        layers, heads, Q, K = weights[kind].shape
        layer, head, asks = chance.randrange(layers), chance.randrange(heads), chance.random() < 0.5
        n = chance.randrange(Q if asks else K)
        show(page, kind=kind, layer=layer, heads=[head], pieces=True, table=True)
        page.mouse.move(2, 2)
        option(page, 0 if asks else 1, n).hover()
        drawn(page)
        said = [float(cell) for cell in page.locator("#numbers td").all_inner_texts()]
        true = weights[kind][layer, head, n] if asks else weights[kind][layer, head, :, n]
        assert len(said) == len(true)
        for k in chance.sample(range(len(true)), 5):
            if abs(said[k] - true[k]) > 6e-5:
                wrong.append(f"{kind} {layer} {head} {n} {k}: {said[k]} for {true[k]:.4f}")
    return wrong


# ------------------------------------------------------------------------------------------------------------- the numbers


def test_hovering_shows_the_weights_that_were_stored(open_page: Opened) -> None:
    assert wrong_cells(open_page(DATA), WEIGHTS, 50) == []


FAULTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda w: w.swapaxes(2, 3) if w.shape[2] == w.shape[3] else np.roll(w, 1, 2),
    "shifted by one": lambda w: np.roll(w, 1, 3),
    "heads exchanged": lambda w: w[:, ::-1],
    "layers exchanged": lambda w: np.roll(w, 1, 0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_would_be_seen(open_page: Opened, fault: str) -> None:
    page = open_page(DATA)
    assert len(wrong_cells(page, {kind: FAULTS[fault](w) for kind, w in WEIGHTS.items()}, 10)) >= 3


def test_rows_that_do_not_sum_to_one_are_told_of_and_not_drawn(open_page: Opened) -> None:
    weights = random_weights((2, 2, 5, 5), 0)
    weights[1, 1, 3] *= 1.3
    page = open_page(self_attention(list("abcde"), weights, "f32"))
    assert page.locator("#problem").is_hidden() and page.locator(".heads").is_visible()
    for view in ("heads", "matrix"):
        show(page, view=view, layer=1, heads=[1])
        assert "“d” in head 2 of layer 1 → 2" in page.locator("#problem").inner_text()
        assert "1.30" in page.locator("#problem").inner_text() and page.locator("#view").is_hidden()
    show(page, view="heads", layer=0, heads=[1])
    assert page.locator("#problem").is_hidden() and page.locator(".heads").is_visible()


def test_the_matrix_says_the_weight_of_the_cell_below_the_pointer(open_page: Opened) -> None:
    page = open_page(DATA, "view=matrix&kind=decoder&layer=2&heads=[3]")
    words = [token[0] for token in DATA["items"][0]["rows"]["target"]["tokens"]]
    box = page.locator("canvas.above").bounding_box()
    seen = set()
    for n in range(20):
        page.mouse.move(box["x"] + box["width"] * (0.15 + 0.04 * (n % 8)), box["y"] + box["height"] * (0.25 + 0.02 * n))
        drawn(page)
        query, key, weight = re.fullmatch(r"(.*) → (.*): " r"([\d.]+)", page.locator("#cell").inner_text()).groups()  # type: ignore[union-attr]
        q, k = words.index(query), words.index(key)
        seen.add((q, k))
        assert abs(float(weight) - WEIGHTS["decoder"][2, 3, q, k]) < 6e-5
    assert len(seen) > 15 and len({k for _, k in seen}) > 3
    page.locator("canvas.above").focus()
    before = page.locator("#cell").inner_text()
    page.keyboard.press("ArrowRight")
    drawn(page)
    assert page.locator("#cell").inner_text() != before


def test_words_are_sums_over_keys_and_means_over_queries(open_page: Opened) -> None:
    page = open_page(DATA, "layer=1&heads=[0,2]&combine=mean&special=false")
    groups = [[0], [1, 2], [3, 4], *([n] for n in range(5, 14))]
    mean = WEIGHTS["encoder"][1, [0, 2]].mean(0)
    shown = page.evaluate(
        "window.regardSee.shown().then((now) => [[...now.w], [...now.hidden], now.keys.map((key) => key.text)])"
    )
    assert np.allclose(shown[0], words_of(mean, groups, groups).ravel(), atol=1e-4)
    assert np.allclose(shown[1], [mean[group, 14].mean() for group in groups], atol=1e-4)
    assert shown[2][1:3] == ["animal", "didn't"]
    share = round(100 * float(np.mean(shown[1])))
    assert f"{share} % of the weight goes to hidden tokens" in page.locator("#mass").inner_text()


def test_rollout_is_the_product_over_layers(open_page: Opened) -> None:
    page = open_page(DATA, "kind=cross&layer=1&combine=rollout&pieces=true")
    rolled = np.eye(15)
    for layer in WEIGHTS["encoder"]:
        rolled = (0.5 * layer.mean(0) + 0.5 * np.eye(15)) @ rolled
    shown = page.evaluate("window.regardSee.shown().then((now) => [...now.w])")
    assert np.allclose(shown, (WEIGHTS["cross"][1].mean(0) @ rolled).ravel(), atol=1e-4)


def test_weights_times_lengths_of_values_are_shares(open_page: Opened) -> None:
    page = open_page(DATA, "layer=2&heads=[1]&value=true&pieces=true")
    lengths = np.random.default_rng(7).uniform(0.5, 2.0, (3, 4, 15))[2, 1]
    weighed = WEIGHTS["encoder"][2, 1] * lengths
    shown = page.evaluate("window.regardSee.shown().then((now) => [...now.w])")
    assert np.allclose(shown, (weighed / weighed.sum(-1, keepdims=True)).ravel(), atol=1e-4)


def test_rows_can_be_named_by_the_word_that_is_written(open_page: Opened) -> None:
    page = open_page(DATA, "kind=cross&pieces=true&label=input")
    assert option(page, 0, 0).inner_text() == "<s>"
    page.get_by_role("checkbox", name="rows by word written").check()
    drawn(page)
    assert [option(page, 0, n).inner_text() for n in (0, 15)] == ["L'", "</s>"]
    for kind, first in (("cross", "L'"), ("decoder", "<s>")):
        show(page, kind=kind, pieces=True)
        assert option(page, 0, 0).inner_text() == first, "what is written, only where another text is looked at"
        assert page.get_by_role("checkbox", name="rows by word written").is_checked() == (kind == "cross")


def test_rollout_needs_every_layer_below(open_page: Opened) -> None:
    data = self_attention(list("abc"), random_weights((3, 1, 3, 3), 0))
    for number, layer in zip((0, 2, 4), data["items"][0]["maps"][0]["layers"], strict=True):
        layer["number"] = number
    page = open_page(data, "combine=rollout")
    assert page.evaluate("window.regardSee.state().combine") == "rollout"
    show(page, combine="rollout", layer=1)
    assert page.evaluate("window.regardSee.state().combine") == "mean"
    assert page.get_by_role("radio", name="rollout").is_disabled()


def test_even_rows_over_many_words_may_be_rounded(open_page: Opened) -> None:
    page = open_page(self_attention([f"w{n}" for n in range(480)], np.full((1, 1, 480, 480), 1 / 480), "u8s"))
    assert page.locator("#problem").is_hidden()


# ---------------------------------------------------------------------------------------------------------------- the lines


def test_the_width_of_every_line_is_its_weight(open_page: Opened) -> None:
    page = open_page(DATA, "pieces=true&layer=1&heads=[0,1,2,3]")
    for root in (False, True):
        show(page, pieces=True, layer=1, heads=[0, 1, 2, 3], root=root)
        lines = page.evaluate("window.regardSee.edges()")
        true = np.array([WEIGHTS["encoder"][1, line["head"], line["q"], line["k"]] for line in lines])
        widths = np.array([line["width"] for line in lines])
        assert len(lines) > 100 and np.corrcoef(widths, np.sqrt(true) if root else true)[0, 1] >= 0.999
        assert root or np.allclose(widths, 12 * true, atol=1e-3)
    for head, q in np.ndindex(4, 15):
        mass = sum(line["w"] for line in lines if (line["head"], line["q"]) == (head, q))
        assert mass >= 0.85, "nine tenths, less what is below one hundredth"


def test_lines_are_drawn_as_wide_as_they_should_be(open_page: Opened) -> None:
    page = open_page(DATA, "pieces=true&layer=0&heads=[1]")
    measured, expected = [], []
    for q in (1, 2, 7, 11):
        option(page, 0, q).hover()
        drawn(page)
        column = """() => {
          const canvas = document.querySelector(".heads canvas"), copy = document.createElement("canvas");
          copy.height = canvas.height;
          copy.getContext("2d").drawImage(canvas, -Math.round(0.9 * canvas.width), 0);
          const data = copy.getContext("2d").getImageData(0, 0, 1, canvas.height).data;
          return Array.from({ length: canvas.height }, (_, y) => data[4 * y + 3] / 255);
        }"""
        ink, lines = np.array(page.evaluate(column)), page.evaluate("window.regardSee.edges()")
        for line in lines:
            weight = WEIGHTS["encoder"][0, 1, q, line["k"]]
            if weight < 0.05:
                continue
            slope = (line["y2"] - line["y1"]) / line["x2"]
            middle = int(line["y1"] + 0.9 * (line["y2"] - line["y1"]))
            measured.append(ink[middle - 12 : middle + 13].sum() / 0.8)
            expected.append(12 * weight * np.hypot(1, slope))
    assert len(measured) >= 6 and np.allclose(measured, expected, rtol=0.12)


def test_a_chosen_word_shows_its_own_lines_and_three_numbers(open_page: Opened) -> None:
    page = open_page(DATA, "pieces=true&layer=2")
    for side, n in ((0, 9), (1, 2)):
        option(page, side, n).hover()
        drawn(page)
        lines = page.evaluate("window.regardSee.edges()")
        row = WEIGHTS["encoder"][2, 0, 9] if side == 0 else WEIGHTS["encoder"][2, 0, :, 2]
        assert {line["qk"[side]] for line in lines} == {n} and len(lines) == (row >= 0.01).sum()
        marked = page.locator(f".words >> nth={1 - side}").locator("[data-weight]")
        assert sorted(marked.evaluate_all("all => all.map((one) => one.dataset.weight)")) == [
            f"{w:.2f}" for w in sorted(row)[-3:]
        ]


def test_the_most_decided_head_is_shown_first(open_page: Opened) -> None:
    page = open_page({**DATA, "start": {"kind": "decoder", "layer": 1, "pieces": True}})
    assert page.evaluate("window.regardSee.state().heads") == [WEIGHTS["decoder"][1].max(-1).mean(-1).argmax()]


def test_a_model_without_attention_is_told_of(open_page: Opened) -> None:
    page = open_page({**DATA, "items": [{**DATA["items"][0], "maps": []}]})
    assert "has no attention" in page.locator("#problem").inner_text()
