"""Two texts that differ in a word: both pictures, their difference, and the heads that look elsewhere.

The truth is computed here, with NumPy, from the weights as they were before they were packed.
"""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from regard.pages.see import see_page
from synthetic import packed, synthetic

SOURCE = ["The", "an|imal", "crossed", "the", "st|reet", "it", "was"]  # | between the pieces of a word
TARGET = ["L'|animal", "y", "va"]
ENDS = [("tired", "lui"), ("wide", "elle")]
ANIMAL, STREET, IT = 1, 4, 5  # words of the source

Weights = dict[str, np.ndarray]


class Known(NamedTuple):
    """A page's data, and the weights of its two items as they were before packing."""

    data: dict[str, Any]
    weights: list[Weights]


def known() -> Known:
    """Chance, but for one head: its "it" looks at the animal in the first text, at the street in the second."""
    data, items, weights = {}, [], []
    for n, ((english, french), pieces) in enumerate(zip(ENDS, ([1, 2], [5, 6]), strict=True)):
        data, own = synthetic([*SOURCE, english], [*TARGET, french], layers=2, heads=3, seed=10 * n)
        own["encoder"][1, 2, 7] = 0
        own["encoder"][1, 2, 7, pieces] = 0.5
        items += data["items"]
        weights.append(own)
        repack(items[n], own)
    start = {"view": "contrast", "pick": [ANIMAL, STREET], "other": 1}
    return Known({**data, "items": items, "start": start}, weights)


def repack(item: dict[str, Any], weights: Weights) -> None:
    for entry in item["maps"]:
        for layer in entry["layers"]:
            layer["weights"] = packed(weights[entry["kind"]][layer["number"]])


def words_of(item: dict[str, Any], name: str) -> list[list[int]]:
    """The tokens of each word."""
    numbers = [token[3] for token in item["rows"][name]["tokens"]]
    return [[n for n, word in enumerate(numbers) if word == one] for one in dict.fromkeys(numbers)]


def merged(weights_QK: np.ndarray, queries: list[list[int]], keys: list[list[int]]) -> np.ndarray:
    """What goes to a word is the sum over its pieces; what comes from it, their mean."""
    return np.array([[weights_QK[np.ix_(q, k)].sum(1).mean() for k in keys] for q in queries])


def truth(data: dict[str, Any], weights: list[Weights]) -> list[tuple[Any, ...]]:
    """Every (kind, layer, head, query, four weights, move), farthest move first, as NumPy has it."""
    one, other = data["start"]["pick"]
    found = []
    for kind, queries in (("encoder", "source"), ("cross", "predicted")):
        a_LHQK, b_LHQK = (
            np.array(
                [[merged(w, words_of(item, queries), words_of(item, "source")) for w in layer] for layer in own[kind]]
            )
            for item, own in zip(data["items"], weights, strict=True)
        )
        move_LHQ = ((b_LHQK[..., other] - b_LHQK[..., one]) - (a_LHQK[..., other] - a_LHQK[..., one])) / 2
        for place, move in np.ndenumerate(move_LHQ):
            four = (*a_LHQK[place][[one, other]], *b_LHQK[place][[one, other]])
            found.append((kind, *place, four, move))
    return sorted(found, key=lambda entry: -abs(entry[-1]))


KNOWN = known()

Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens pages from files; whatever one complains of, or asks the network for, fails the test."""
    pages: list[Any] = []
    trouble: list[str] = []

    def open_page(data: dict[str, Any], fragment: str = "", width: int = 1400, scheme: str = "light") -> Any:
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(see_page(data))
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(8000)
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto(f"{path.as_uri()}#{fragment}")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not [one for one in trouble if one != "data:,"]


def until(page: Any, script: str, value: Any) -> None:
    """Wait for the page to say so. (Playwright's own waiting evaluates strings, which the page's policy forbids.)"""
    for _ in range(100):
        if page.evaluate(script) == value:
            return
        page.wait_for_timeout(50)
    pytest.fail(f"{script} is {page.evaluate(script)}, not {value}")


def signed(number: float) -> str:
    size = f"{abs(number):.2f}"
    return size if float(size) == 0 else ("−" if number < 0 else "+") + size


def listed(page: Any) -> list[dict[str, str]]:
    page.locator(".contrasts li").first.wait_for()
    names = ("name", "query", "amounts", "move")
    parts = [page.locator(f".contrasts .{name}").all_inner_texts() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]


def expected(entry: tuple[Any, ...], words: tuple[str, str] = ("animal", "street")) -> dict[str, str]:
    kind, layer, head, query, (a1, a2, b1, b2), move = entry
    names = {
        "encoder": ["The", "animal", "crossed", "the", "street", "it", "was", "tired / wide", "</s>"],
        "cross": ["L'animal", "y", "va", "lui / elle", "</s>"],
    }[kind]
    place = f"encoder layer {layer + 1}" if kind == "encoder" else f"attention to the source, decoder layer {layer + 1}"
    return {
        "name": f"{place}, head {head + 1}",
        "query": ("writing " if kind == "cross" else "") + names[query],
        "amounts": f"{words[0]} {a1:.2f} → {b1:.2f}\n{words[1]} {a2:.2f} → {b2:.2f}",
        "move": signed(move),
    }


def test_heads_are_ranked_as_numpy_ranks_them_and_the_first_is_said_in_words(opened: Open) -> None:
    page = opened(KNOWN.data)
    found = listed(page)
    assert found == [expected(entry) for entry in truth(*KNOWN)[:20]]
    assert found[0]["name"] == "encoder layer 2, head 3" and found[0]["query"] == "it"
    assert found[0]["amounts"] == "animal 1.00 → 0.00\nstreet 0.00 → 1.00" and found[0]["move"] == "+1.00"
    assert page.locator(".finding").inner_text() == (
        "In encoder layer 2, head 3, the word “it” looks at “animal” in the first text (1.00) "
        "and at “street” in the second (1.00)."
    )


def planted(fault: str) -> dict[str, Any]:
    data = copy.deepcopy(KNOWN.data)
    if fault == "items swapped":
        data["items"].reverse()
    elif fault == "key words swapped":
        data["start"]["pick"].reverse()
    else:
        repack(data["items"][1], {kind: w[:, [0, 2, 1]] for kind, w in KNOWN.weights[1].items()})
    return data


@pytest.mark.parametrize("fault", ["items swapped", "key words swapped", "heads permuted"])
def test_a_planted_fault_changes_the_answer(opened: Open, fault: str) -> None:
    first = listed(opened(planted(fault)))[0]
    assert first != expected(truth(*KNOWN)[0])
    if fault != "heads permuted":
        assert first["move"] == "−1.00", "the same head, the other way round"


def test_a_head_that_looks_at_the_same_word_in_both_is_not_said_to_turn(opened: Open) -> None:
    """The farthest move here is of a head that only leans: 0.9 and 0.1, then 0.6 and 0.4."""
    data, weights = copy.deepcopy(KNOWN.data), copy.deepcopy(KNOWN.weights)
    for item, animal, own in ((data["items"][0], 0.9, weights[0]), (data["items"][1], 0.6, weights[1])):
        for w in own.values():
            w[:] = 1 / w.shape[-1]  # all others look at everything alike
        own["encoder"][1, 2, 7] = 0
        own["encoder"][1, 2, 7, [1, 5]] = animal, 1 - animal
        repack(item, own)
    page = opened(data)
    assert listed(page)[0]["move"] == "+0.30"
    says = "looks at “animal” in both texts (0.90, then 0.60) rather than at “street” (0.10, then 0.40)."
    assert page.locator(".finding").inner_text().endswith(says)


def test_any_two_words_can_be_chosen(opened: Open) -> None:
    data = copy.deepcopy(KNOWN.data)
    data["start"]["pick"] = [None, None]
    page = opened(data)
    page.get_by_text("Choose two words").first.wait_for()
    assert page.locator(".contrasts li").count() == 0
    page.get_by_label("from", exact=True).select_option(label="it")
    page.get_by_label("to", exact=True).select_option(label="tired / wide")
    data["start"]["pick"] = [IT, 7]
    assert listed(page)[:9] == [expected(entry, ("it", "tired / wide")) for entry in truth(data, KNOWN.weights)[:9]]
    page.keyboard.press("Escape")
    page.locator("body").press("w")  # pieces instead of words: the choice stays
    page.locator(".contrasts li .amounts", has_text="it ").first.wait_for()
    assert (
        page.get_by_label("to", exact=True).evaluate("(select) => select.selectedOptions[0].textContent")
        == "tired / wide"
    )


def test_texts_of_different_lengths_are_paired_from_both_ends(opened: Open) -> None:
    """The second text has a word more before its last; words before that and after keep their partners."""
    data, weights = copy.deepcopy(KNOWN.data), copy.deepcopy(KNOWN.weights)
    longer, random = synthetic([*SOURCE, "very", "wide"], [*TARGET, "elle"], layers=2, heads=3, seed=5)
    for layer, head, query in ((1, 2, 7), (0, 1, 8), (0, 0, -1)):  # "it", "was" and </s> look at the street
        random["encoder"][layer, head, query] = 0
        random["encoder"][layer, head, query, [5, 6]] = 0.5
    data["items"][1], weights[1] = longer["items"][0], random
    repack(data["items"][1], random)
    page = opened(data)
    found = listed(page)
    assert found[0] == expected(truth(*KNOWN)[0])
    words = {row["query"] for row in found}
    assert {"was", "</s>"} <= words and not any("very" in word or "tired" in word for word in words)
    last = random["encoder"][0, 0, -1]  # </s> in the first head: its numbers are those of the last row of both
    first = KNOWN.weights[0]["encoder"][0, 0, -1]
    sums = [w[pieces].sum() for w in (first, last) for pieces in ([1, 2], [5, 6])]
    row = next(row for row in found if (row["name"], row["query"]) == ("encoder layer 1, head 1", "</s>"))
    assert row["amounts"] == f"animal {sums[0]:.2f} → {sums[2]:.2f}\nstreet {sums[1]:.2f} → {sums[3]:.2f}"
    page.locator("body").press("c")
    page.get_by_text("different numbers of words (9 × 9 and 10 × 10)").wait_for()


def test_a_row_of_the_list_opens_both_pictures_by_keyboard(opened: Open) -> None:
    page = opened(KNOWN.data, "view=heads")
    page.locator("#view canvas").first.wait_for()
    page.keyboard.press("n")
    page.locator(".contrasts button").first.focus()
    page.keyboard.press("Enter")
    page.locator(".difference li").first.wait_for()
    state = page.evaluate("regardSee.state()")
    assert (state["view"], state["kind"], state["layer"], state["heads"]) == ("compare", "encoder", 1, [2])
    assert (state["side"], state["token"], state["pinned"]) == ("queries", IT, True)
    lines = page.evaluate("regardSee.edges()")
    assert [(line["q"], line["k"]) for line in lines] == [(IT, ANIMAL), (IT, STREET)], "one line in each picture"
    page.keyboard.press("ArrowRight")
    until(page, "regardSee.state().token", 6)


def test_the_largest_differences_are_told_in_words(opened: Open) -> None:
    page = opened(KNOWN.data, "view=compare&layer=1&heads=[0]")
    words = [words_of(item, "source") for item in KNOWN.data["items"]]
    a, b = (merged(w["encoder"][1, 0], own, own) for w, own in zip(KNOWN.weights, words, strict=True))
    names = ["The", "animal", "crossed", "the", "street", "it", "was", "tired / wide", "</s>"]
    order = sorted(np.ndindex(a.shape), key=lambda cell: -abs(b[cell] - a[cell]))[:5]
    says = [
        f"{names[q]} → {names[k]}: {a[q, k]:.2f} in the first, {b[q, k]:.2f} in the second ({signed(b[q, k] - a[q, k])})"
        for q, k in order
    ]
    page.locator(".difference li").first.wait_for()
    assert page.locator(".difference li").all_inner_texts() == says
    page.locator("body").press("t")
    page.locator("#numbers tbody tr").first.wait_for()
    cells = page.locator("#numbers tbody tr").first.locator("th, td").all_inner_texts()
    q, k = order[0]
    assert cells == [names[q], names[k], f"{a[q, k]:.2f}", f"{b[q, k]:.2f}", signed(b[q, k] - a[q, k])]


SEEN = """(canvas) => {
  const pen = canvas.getContext("2d"), { data, width } = pen.getImageData(0, 0, canvas.width, canvas.height);
  const boxes = {};
  for (let n = 0; n < data.length; n += 4) {
    const [red, green, blue, alpha] = data.subarray(n, n + 4);
    const name = alpha > 250 && blue > red + 90 ? "blue" : alpha > 250 && red > blue + 90 ? "orange" : null;
    const x = (n / 4) % width;
    if (name) boxes[name] = [Math.min(x, boxes[name]?.[0] ?? x), Math.max(x, boxes[name]?.[1] ?? x)];
  }
  return boxes;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_blue_is_more_in_the_first_and_orange_more_in_the_second(opened: Open, scheme: str) -> None:
    data, weights = copy.deepcopy(KNOWN.data), copy.deepcopy(KNOWN.weights[0])
    weights["encoder"][1, 2, 7] = KNOWN.weights[1]["encoder"][1, 2, 7]  # the two texts differ in nothing but "it"
    repack(data["items"][1], weights)
    page = opened(data, "view=compare&layer=1&heads=[2]", scheme=scheme)
    page.locator(".difference li").first.wait_for()
    seen = page.locator(".difference canvas").evaluate(SEEN)
    assert seen["blue"][1] < seen["orange"][0], "the animal, left, loses what the street, further right, gains"


def test_words_that_differ_are_marked_and_a_word_chosen_in_one_is_chosen_in_both(opened: Open) -> None:
    page = opened(KNOWN.data, "view=compare")
    page.locator(".difference li").first.wait_for()
    assert page.locator(".pair .sentence mark").all_inner_texts() == ["tired", "lui", "wide", "elle"]
    assert page.locator(".half .differs").all_inner_texts() == ["tired", "tired", "wide", "wide"]
    page.locator(".half").nth(1).get_by_role("option", name="wide").first.click()
    page.locator(".half [aria-selected=true]").nth(1).wait_for()
    assert page.locator(".half [aria-selected=true]").all_inner_texts() == ["tired", "wide"]
    assert page.evaluate("regardSee.state().pinned")


def test_what_the_second_lacks_is_said(opened: Open) -> None:
    data = copy.deepcopy(KNOWN.data)
    data["items"][1]["maps"][0]["layers"].pop()
    page = opened(data, "view=compare&layer=1")
    page.get_by_text("The second has no layer 1 → 2 (encoder layer 2 of 2).").wait_for()


def test_one_text_alone_has_nothing_to_compare(opened: Open) -> None:
    page = opened({**KNOWN.data, "items": KNOWN.data["items"][:1]})
    page.get_by_text("only one text").first.wait_for()


def test_nothing_is_wider_than_the_window(opened: Open) -> None:
    page = opened(KNOWN.data)
    for view, part in (("n", ".contrasts li"), ("c", ".difference li")):
        page.locator("body").press(view)
        for width in (400, 700, 1400):
            page.set_viewport_size({"width": width, "height": 900})
            page.locator(part).first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
