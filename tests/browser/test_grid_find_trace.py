"""All heads at once, the heads that link two words, and words followed through the layers: each against NumPy."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opening import show
from regard.pages.see import see_page
from synthetic import attention, one_kind, packed, page_data, row, synthetic

PIECED = ["The", "an|im|al", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired", "."]
ANIMAL, IT = 1, 7  # words of the source
DATA, WEIGHTS = synthetic(source=PIECED)
LAYERS, HEADS = WEIGHTS["encoder"].shape[:2]
Open = Callable[..., Any]

# The colours of a canvas at points given in shares of a box of the page.
PIXELS = """([canvas, boxes, across, down]) => {
  const drawn = document.querySelectorAll(canvas[0])[canvas[1]], place = drawn.getBoundingClientRect();
  const copy = Object.assign(document.createElement("canvas"), { width: drawn.width, height: drawn.height }).getContext("2d");
  copy.drawImage(drawn, 0, 0);
  const { data, width } = copy.getImageData(0, 0, drawn.width, drawn.height), scale = drawn.width / place.width;
  return [...document.querySelectorAll(boxes)].map((element) => {
    const box = element.getBoundingClientRect();
    return down.map((y) => across.map((x) => {
      const [left, top] = [box.x - place.x + x * box.width, box.y - place.y + y * box.height].map((n) => Math.floor(n * scale));
      return [...data.slice(4 * (top * width + left), 4 * (top * width + left) + 4)];
    }));
  });
}"""


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens data with a state and a width; at the end, nothing may have been said on the console."""
    said: list[str] = []
    context = browser.new_context(color_scheme="light")

    def opened(
        data: dict[str, Any], state: str = "", width: int = 1400, ready: str = "#view button, #view .words li"
    ) -> Any:
        (tmp_path / "see.html").write_text(see_page(data), encoding="utf-8")
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{(tmp_path / 'see.html').as_uri()}#{state}")
        page.wait_for_selector(ready)
        return page

    yield opened
    context.close()
    assert said == []


def groups(words: dict[str, Any], special: bool = True) -> np.ndarray:
    """Which tokens make up which word (words × tokens)."""
    numbers = [token[3] for token in words["tokens"]]
    kept = [n for n in dict.fromkeys(numbers) if special or not words["tokens"][numbers.index(n)][4] & 1]
    return np.array([[own == n for own in numbers] for n in kept], dtype=float)


def in_words(weights: np.ndarray, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Mean over the tokens that look, sum over the tokens looked at."""
    return np.asarray((queries / queries.sum(1, keepdims=True)) @ weights @ keys.T)


ROWS = DATA["items"][0]["rows"]
SOURCE, TARGET = groups(ROWS["source"]), groups(ROWS["target"])
ENCODER = in_words(WEIGHTS["encoder"], SOURCE, SOURCE)


def table(page: Any) -> list[list[str]]:
    """The table behind the picture, row by row."""
    page.wait_for_selector("#numbers table")
    found: list[list[str]] = page.eval_on_selector_all(
        "#numbers tbody tr", "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    return found


def state(page: Any) -> Any:
    return page.evaluate("regardSee.state()")


def ramp(page: Any, weights: np.ndarray) -> np.ndarray:
    """Paper, accent, ink: the colour of each weight, by its root."""
    names = ["--paper", "--accent", "--ink"]
    texts = [page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('{name}')") for name in names]
    ends = np.array([[int(text.strip()[n : n + 2], 16) for n in (1, 3, 5)] for text in texts], dtype=float)
    at = (np.rint(255 * np.sqrt(weights)) + 0.5) / 256
    return np.stack([np.interp(at, [0, 0.65, 1], ends[:, n]) for n in range(3)], -1)


def centres(count: int) -> list[float]:
    return [(n + 0.5) / count for n in range(count)]


@pytest.mark.parametrize(("kind", "pieces"), [("encoder", False), ("encoder", True), ("cross", False)])
def test_every_thumbnail_is_its_own_head_pixel_by_pixel(open_page: Open, kind: str, pieces: bool) -> None:
    page = open_page(DATA, f"view=grid&kind={kind}&pieces={str(pieces).lower()}")
    weights = WEIGHTS[kind]
    if not pieces:
        weights = in_words(weights, TARGET if kind == "cross" else SOURCE, SOURCE)
    _, _, Q, K = weights.shape
    seen = page.evaluate(PIXELS, [[".grid-stack canvas", 0], ".grid-stack button", centres(K), centres(Q)])
    drawn = np.array(seen, dtype=float)[..., :3].reshape(LAYERS, HEADS, Q, K, 3)
    assert np.abs(drawn - ramp(page, weights)).max() <= 4


def test_a_cell_smaller_than_its_words_still_shows_each_large_weight(open_page: Open) -> None:
    sharp = np.eye(300)[np.random.default_rng(0).permutation(300)].reshape(1, 1, 300, 300)
    looks = attention("encoder", "text", "text", np.repeat(sharp, 12, 1), "u16")
    data = page_data({"text": row([f"w{n}" for n in range(300)])}, [looks], 12, "")
    page = open_page(data, "view=grid", width=700)
    box = page.locator(".grid-stack button").first.bounding_box()
    down, across = np.argwhere(sharp[0, 0])[:40].T
    sizes = ((across, box["width"]), (down, box["height"]))
    place = [((np.floor(at * size / 300) + 0.5) / size).tolist() for at, size in sizes]
    seen = np.array(page.evaluate(PIXELS, [[".grid-stack canvas", 0], ".grid-stack button:first-child", *place]))[0]
    assert np.abs(np.diagonal(seen)[:3].T - ramp(page, np.ones(40))).max() <= 4


def statistics(w: np.ndarray, special: np.ndarray) -> list[float]:
    """Entropy, distance, and the shares of previous, next, itself, first and special: of one head over its own words."""
    size = len(w)
    bits = -(w * np.log2(np.where(w > 0, w, 1))).sum(1).mean()
    distance = (w * np.abs(np.subtract.outer(range(size), range(size)))).sum(1).mean()
    neighbours = [np.diagonal(w, -1).mean(), np.diagonal(w, 1).mean(), np.diagonal(w).mean()]
    return [bits, distance, *neighbours, w[:, 0].mean(), w[:, special].sum(1).mean()]


def test_the_statistics_of_every_head_are_right_whatever_the_picture_hides(open_page: Open) -> None:
    special = np.array([token == "</s>" for token in [*PIECED, "</s>"]])
    expected = [statistics(w, special) for w in ENCODER.reshape(-1, *ENCODER.shape[2:])]
    for hide in ("", "&special=false", "&value=true"):
        found = table(open_page(DATA, f"view=grid&table=true{hide}"))
        assert np.allclose([[float(cell) for cell in line[1:8]] for line in found], expected, atol=0.0051)
        assert found[6][0] == "layer 1 → 2 (encoder layer 2 of 3), head 3"


def test_words_have_no_neighbours_in_another_text(open_page: Open) -> None:
    for line in table(open_page(DATA, "view=grid&kind=cross&table=true")):
        assert line[2:6] == ["–"] * 4
        assert float(line[1]) > 0


def test_marking_dims_all_heads_but_those_that_look_there(open_page: Open) -> None:
    weights = WEIGHTS["encoder"].copy()
    weights[1, 2] = 0.9 * np.eye(len(weights[0, 0]), k=-1) + 0.1 / weights.shape[-1]
    weights[1, 2] /= weights[1, 2].sum(1, keepdims=True)
    data = page_data(ROWS, [attention("encoder", "source", "source", weights, "u16")], HEADS, "")
    page = open_page(data, "view=grid&pieces=true")
    look = [[".grid-stack canvas", 0], ".grid-stack button", centres(weights.shape[-1]), centres(weights.shape[-2])]
    before = np.array(page.evaluate(PIXELS, look))
    page.get_by_label("mark heads that look at").select_option(label="the previous word")
    page.get_by_text("1 of 12 heads look at the previous word").wait_for()
    after = np.array(page.evaluate(PIXELS, look))
    kept = [np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert kept == [n == 1 * HEADS + 2 for n in range(12)]


def test_hovering_draws_on_the_upper_canvas_only_and_tells_the_numbers(open_page: Open) -> None:
    page = open_page(DATA, "view=grid")
    picture = "n => document.querySelectorAll('.grid-stack canvas')[n].toDataURL()"
    before = [page.evaluate(picture, n) for n in (0, 1)]
    box = page.locator(".grid-stack button").nth(6).bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + (IT + 0.5) / len(ENCODER[0, 0]) * box["height"])
    said = page.locator(".grid-said").text_content()
    assert before[0] == page.evaluate(picture, 0)
    assert before[1] != page.evaluate(picture, 1)
    words = [word.replace("|", "") for word in [*PIECED, "</s>"]]
    row_of_it = ENCODER[1, 2, IT]
    most = [f"{words[k]} {row_of_it[k]:.2f}" for k in np.argsort(-row_of_it)[:3]]
    assert said.startswith("layer 1 → 2 (encoder layer 2 of 3), head 3")
    assert said.endswith(f"“it” looks at {', '.join(most)}")


def test_the_chosen_word_is_traced_as_a_row_of_every_head(open_page: Open) -> None:
    page = open_page(DATA, "view=grid")
    count = ENCODER.shape[2]
    look = [[".grid-stack canvas", 1], ".grid-stack button", [0.5], [n / (4 * count) for n in range(4 * count)]]
    assert not np.any(page.evaluate(PIXELS, look))
    show(page, view="grid", token=IT, pinned=True)
    for opaque in np.array(page.evaluate(PIXELS, look))[:, :, 0, 3] > 0:
        at = np.flatnonzero(opaque) / 4
        assert IT - 0.5 <= at.min() <= IT
        assert IT + 0.5 <= at.max() <= IT + 1.5


def test_a_head_shows_what_is_lost_without_it(open_page: Open) -> None:
    data, _ = synthetic()
    lost = {"kind": "cross", "layer": 1, "head": 2, "probability": 0.41, "instead": "il", "changes": False}
    known = {"position": 10, "word": "elle", "probability": 0.83, "translation": "elle", "heads": [lost]}
    data["items"][0]["knockouts"] = known
    page = open_page(data, "view=grid&kind=cross")
    texts = page.locator(".grid-stack button").all_text_contents()
    assert [n for n, text in enumerate(texts) if text] == [6]
    assert texts[6] == "−0.42"
    assert "“elle”" in page.locator(".grid-stack button").nth(6).get_attribute("aria-label")


def test_the_grid_by_keyboard(open_page: Open) -> None:
    page = open_page(DATA, "")
    page.keyboard.press("g")
    page.wait_for_selector(".grid-stack button")
    page.locator(".grid-stack button").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    assert "1 → 2 (encoder layer 2 of 3), head 3: entropy" in page.evaluate("document.activeElement.ariaLabel")
    assert page.locator(".grid-stack button[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_function("regardSee.state().view === 'heads'")
    assert (state(page)["layer"], state(page)["heads"]) == (1, [2])


def ranking(page: Any) -> list[tuple[str, float]]:
    line = re.compile(r"layer (\d+) → \d+ \(.*\), head (\d+)(\d\.\d\d)")
    found = [line.fullmatch(text) for text in page.locator(".ranked button").all_text_contents()]
    return [(f"{one[1]} {int(one[2]) - 1}", float(one[3])) for one in found if one]


def expected_ranking(weights: np.ndarray, q: int, k: int) -> list[tuple[str, float]]:
    of_pair = weights[:, :, q, k]
    places = [np.unravel_index(n, of_pair.shape) for n in np.argsort(-of_pair, axis=None)]
    return [(f"{layer} {head}", round(float(of_pair[layer, head]), 2)) for layer, head in places]


def told(page: Any, text: str) -> None:
    page.locator("#view p").get_by_text(text).first.wait_for()


def choose(page: Any, source: str, target: str) -> None:
    for n, word in enumerate((source, target)):
        page.locator("#view select").nth(n).select_option(label=word)
    told(page, f"that “{source}” gives to “{target}”")


def test_heads_are_ranked_by_the_weight_between_two_words(open_page: Open) -> None:
    page = open_page(DATA, "view=find")
    choose(page, "it", "animal")
    told(page, "12 heads of encoder self-attention")
    assert ranking(page) == expected_ranking(ENCODER, IT, ANIMAL)
    page.keyboard.press("w")  # now only the first piece counts
    told(page, "that “it” gives to “an”")
    assert ranking(page) == expected_ranking(WEIGHTS["encoder"], 9, 1)


def test_a_pair_across_the_texts_is_ranked_by_the_attention_that_joins_them(open_page: Open) -> None:
    page = open_page(DATA, "view=find&kind=cross&label=input")
    choose(page, "a", "it")
    told(page, "12 heads of attention to the source")
    assert ranking(page) == expected_ranking(in_words(WEIGHTS["cross"], TARGET, SOURCE), 4, IT)


def test_the_search_begins_with_the_word_chosen_and_its_strongest_link(open_page: Open) -> None:
    page = open_page(DATA, f"view=find&token={IT}&pinned=true&layer=1&heads=%5B2%5D")
    strongest = np.argmax(np.where(np.arange(len(ENCODER[0, 0])) == IT, -1, ENCODER[1, 2, IT])[:-1])
    names = [page.locator("#view select").nth(n).evaluate("s => s.selectedOptions[0].text") for n in (0, 1)]
    assert names == ["it", PIECED[strongest].replace("|", "")]


def test_the_first_twenty_are_shown_and_the_table_has_all(open_page: Open) -> None:
    data, _ = one_kind(["a", "b", "c"], layers=6, heads=8, encoding="u16")
    page = open_page(data, "view=find&table=true")
    assert page.locator(".ranked li").count() == 20
    assert "48 heads" in page.locator("#view p").first.text_content()
    weights = [float(line[1]) for line in table(page)]
    assert (len(weights), weights) == (48, sorted(weights, reverse=True))


def test_which_head_links_it_and_animal_by_keyboard(open_page: Open) -> None:
    page = open_page(DATA, f"token={IT}&pinned=true&findKey=1")
    page.keyboard.press("f")
    page.wait_for_selector(".ranked button")
    page.locator(".ranked button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function("regardSee.state().view === 'heads'")
    second = np.unravel_index(np.argsort(-ENCODER[:, :, IT, ANIMAL], axis=None)[1], (LAYERS, HEADS))
    now = state(page)
    assert (now["kind"], now["layer"], now["heads"][0]) == ("encoder", *second)
    assert (now["side"], now["token"], now["pinned"]) == ("queries", IT, True)


def rollout(weights: np.ndarray, halted: list[int] | None = None) -> list[np.ndarray]:
    """What each token at the end was made of before each layer: the last first is the identity."""
    size = weights.shape[-1]
    found = [np.eye(size)]
    for layer in reversed(range(len(weights))):
        mixed = weights[layer].mean(0) + np.eye(size)
        mixed /= mixed.sum(1, keepdims=True)
        for token, count in enumerate(halted or []):
            if count <= layer:
                mixed[token] = np.eye(size)[token]
        found.insert(0, found[0] @ mixed)
    return found


def shares(page: Any) -> list[float]:
    return [float(text) for text in page.locator(".trace-in b").all_text_contents()]


def test_rollout_says_out_of_which_words_a_word_is_made(open_page: Open) -> None:
    page = open_page(DATA, f"view=trace&token={IT}&pinned=true&table=true")
    expected = np.array([in_words(through, SOURCE, SOURCE)[IT] for through in rollout(WEIGHTS["encoder"])]).T
    assert np.allclose(shares(page), expected[:, 0], atol=0.0051)
    assert np.allclose([[float(cell) for cell in line[1:]] for line in table(page)], expected, atol=1e-4)


def test_rollout_counts_hidden_tokens_and_follows_only_the_heads_asked_for(open_page: Open) -> None:
    page = open_page(DATA, f"view=trace&token={IT}&pinned=true&special=false&heads=%5B1,3%5D&traceHeads=chosen")
    through = in_words(rollout(WEIGHTS["encoder"][:, [1, 3]])[0], SOURCE, SOURCE)[IT]
    assert np.allclose(shares(page), through[:-1], atol=0.0051)
    told(page, f"{through[-1]:.2f} is from special tokens that are hidden")


def test_a_word_that_has_halted_is_carried_on_unchanged(open_page: Open) -> None:
    data, weights = synthetic(layers=4, heads=2)
    halted = [1, 3, 2, 4, 4, 2, 3, 1, 4, 2, 3, 4, 4]
    data["items"][0]["halted"] = {"source": halted, "target": [4] * 16}
    page = open_page(data, "view=trace&token=2&pinned=true")
    assert np.allclose(shares(page), rollout(weights["encoder"], halted)[0][2], atol=0.0051)
    took = page.locator(".trace .words li").evaluate_all("words => words.map((word) => Number(word.dataset.weight))")
    assert took == halted
    assert "how many repetitions" in page.locator("#view").text_content()


def test_between_two_texts_each_layer_stands_alone(open_page: Open) -> None:
    page = open_page(DATA, "view=trace&kind=cross&token=4&pinned=true&table=true")
    expected = in_words(WEIGHTS["cross"].mean(1), TARGET, SOURCE)[:, 4]
    assert np.allclose([[float(cell) for cell in line[1:]] for line in table(page)], expected.T, atol=1e-4)
    assert np.allclose(shares(page), expected.mean(0), atol=0.0051)


def test_one_layer_and_layers_passed_over_are_said_in_words(open_page: Open) -> None:
    single, _ = one_kind(["a", "b", "c"], layers=1, heads=2)
    assert "only one layer" in open_page(single, "view=trace").locator("#view").text_content()
    skipping, _ = one_kind(["a", "b", "c"], layers=3, heads=2)
    for n, layer in enumerate(skipping["items"][0]["maps"][0]["layers"]):
        layer["number"] = 2 * n
    said = open_page(skipping, "view=trace").locator("#view").text_content()
    assert "layer 2, 4" in said
    assert "only one layer" not in said


def test_a_line_is_as_wide_as_what_it_brings(open_page: Open) -> None:
    looks = np.eye(9).reshape(1, 1, 9, 9)
    looks[0, 0, 4] = [0.75, 0, 0, 0, 0, 0, 0, 0, 0.25]
    data = page_data({"text": row(list("abcdefghi"))}, [attention("encoder", "text", "text", looks, "u16")], 1, "")
    page = open_page(data, "view=trace&token=4&pinned=true")
    slice_ = [[".trace canvas", 0], ".trace canvas", [0.5], [n / 2000 for n in range(2000)]]
    ink = np.array(page.evaluate(PIXELS, slice_))[0, :, 0, 3]
    height = page.locator(".trace canvas").bounding_box()["height"]
    middle = (24 + 28 * 4.5) / height
    above, below = ink[: int(2000 * (middle - 0.03))].sum(), ink[int(2000 * (middle + 0.03)) :].sum()
    assert above == pytest.approx(3 * below, rel=0.1)


def test_words_are_followed_by_keyboard(open_page: Open) -> None:
    page = open_page(DATA, "")
    page.keyboard.press("y")
    page.wait_for_selector(".trace-in li")
    page.get_by_role("listbox", name="words that come out").get_by_role("option").first.focus()
    for _ in range(IT):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("regardSee.state().pinned")
    assert state(page)["token"] == IT
    page.keyboard.press("Escape")
    told(page, "On average, a word at the end is made of")
    assert state(page)["token"] is None
    assert np.allclose(shares(page), in_words(rollout(WEIGHTS["encoder"])[0], SOURCE, SOURCE).mean(0), atol=0.0051)


def test_weights_that_do_not_sum_to_one_are_not_drawn(open_page: Open) -> None:
    data, weights = synthetic()
    data["items"][0]["maps"][0]["layers"][1]["weights"] = packed(weights["encoder"][1] * 0.9)
    page = open_page(data, "view=grid")
    seen = np.array(page.evaluate(PIXELS, [[".grid-stack canvas", 0], ".grid-stack button", [0.5], [0.5]]))[:, 0, 0, 3]
    assert (seen == 0).tolist() == [False] * 4 + [True] * 4 + [False] * 4
    assert "not to 1" in page.locator("#view").text_content()
    assert open_page(data, "view=find").locator(".ranked li").count() == 8
    trace = open_page(data, f"view=trace&token={IT}&pinned=true", ready=".said")
    told(trace, "not to 1")
    assert trace.locator(".trace").is_hidden()


@pytest.mark.parametrize("view", ["grid", "find", "trace"])
def test_no_width_needs_scrolling_sideways(open_page: Open, view: str) -> None:
    page = open_page(DATA, f"view={view}&token={IT}&pinned=true")
    for width in (1400, 700, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width, timeout=5000)
