"""The picture that Python writes and the one that the page saves have the same lines; a browser sets its words in place."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from regard.interpret.views import show
from tests.interpret.test_figures import SVG, TRACE, of_words


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page of the trace, opened from a file.

    A browser that is asked for many downloads in a second refuses some: what is saved is caught where it is made.
    """
    path = tmp_path_factory.mktemp("twins") / "see.html"
    TRACE.save(path)
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.goto(path.as_uri())
    opened.evaluate(
        """() => {
            HTMLAnchorElement.prototype.click = () => {};
            const address = URL.createObjectURL;
            URL.createObjectURL = (file) => address(window.saved = file);
        }"""
    )
    yield opened
    opened.close()


def saved(page: Any, **state: Any) -> str:
    """What the button SVG saves when this is shown."""
    wanted = "&".join(f"{name}={quote(str(value).replace(' ', '').lower())}" for name, value in state.items())
    page.evaluate("wanted => { location.hash = wanted; }", wanted)
    page.wait_for_function(
        "state => Object.entries(state).every(([name, value]) => String(regardSee.state()[name]) === String(value))",
        arg=state,
    )
    page.evaluate("window.saved = null")
    page.get_by_role("button", name="SVG", exact=True).click()
    page.wait_for_function("window.saved")
    return str(page.evaluate("window.saved.text()"))


def geometry(svg: str) -> list[tuple[float, ...]]:
    """All lines: both ends and the width, in an order of their own."""
    names = ("x1", "y1", "x2", "y2", "stroke-width")
    return sorted(
        tuple(float(line.attrib[name]) for name in names) for line in ElementTree.fromstring(svg).iter(f"{SVG}line")
    )


def words(svg: str) -> list[tuple[str, ...]]:
    """All words beside the lines, and the rows they stand in; without the numbers printed after some."""
    texts = [text for text in ElementTree.fromstring(svg).iter(f"{SVG}text") if text.get("dy")]
    texts = [text for text in texts if text.attrib["x"] in ("200", "440")]
    marks = "\u2067\u2069"  # of direction
    return sorted((t.attrib["x"], f"{float(t.attrib['y']):g}", next(t.itertext()).strip(marks)) for t in texts)


def agree(one: str, other: str) -> bool:
    """Whether two pictures have the same lines, to a hundredth of a pixel, and the same words."""
    ours, theirs = geometry(one), geometry(other)
    near = len(ours) == len(theirs) and all(a == pytest.approx(b, abs=0.01) for a, b in zip(ours, theirs, strict=True))
    return near and bool(ours) and words(one) == words(other)


LAYERS = [("encoder", 1), ("encoder", 2), ("decoder", 1), ("cross", 1)]


@pytest.mark.parametrize(("kind", "layer"), LAYERS)
def test_a_head_is_drawn_alike(page: Any, kind: str, layer: int) -> None:
    for head, pieces in ((1, False), (3, True)):
        state = {"kind": kind, "layer": layer - 1, "heads": [head - 1], "combine": "heads", "pieces": pieces}
        theirs = saved(page, **state, label="predicted" if kind == "cross" else "input")
        assert agree(TRACE.svg(kind, layer, head, pieces=pieces), theirs)
        assert not agree(TRACE.svg(kind, layer, 2, pieces=pieces), theirs), "another head must not pass for it"


@pytest.mark.parametrize(("kind", "layer"), LAYERS)
@pytest.mark.parametrize("combine", ["mean", "max", "rollout"])
def test_heads_together_are_drawn_alike(page: Any, kind: str, layer: int, combine: str) -> None:
    state = {"kind": kind, "layer": layer - 1, "heads": [0, 1, 2], "combine": combine, "pieces": False}
    assert agree(TRACE.svg(kind, layer, combine, written=False), saved(page, **state, label="input"))


def test_a_chosen_word_is_drawn_alike(page: Any) -> None:
    for word in ("She", "bench", "."):
        row = [label.text for label in show(TRACE, "cross").queries].index(word)
        state = {"kind": "cross", "heads": [1], "combine": "heads", "label": "predicted", "pieces": False}
        theirs = saved(page, **state, side="queries", token=row, pinned=True)
        assert agree(TRACE.svg("cross", 1, 2, word), theirs)
        assert not agree(TRACE.svg("cross", 1, 2), theirs)


def test_words_of_every_script_stand_beside_the_lines(browser: Any) -> None:
    trace = of_words("bench", "«שלום»", "長" * 24, "DONAUDAMPFSCHIFFFAHRTSGE", "عربي.")
    opened = browser.new_page(viewport={"width": 700, "height": 400})
    opened.set_content(f"<!doctype html><body style='margin:0'>{trace.svg(word='bench')}")
    boxes, numbers = opened.evaluate(
        """["text[dy]", "tspan[dx]"].map((kind) => [...document.querySelectorAll(kind)].map((text) => {
            const box = text.getBBox();
            return [text.getAttribute("x"), box.x, box.x + box.width];
        }))"""
    )
    opened.close()
    queries, keys = ([box for box in boxes if box[0] == x] for x in ("200", "440"))
    assert len(queries) == len(keys) == 5 and len(numbers) == 3
    assert all(right == pytest.approx(200, abs=1) and left > 0 for _, left, right in queries)
    assert all(left == pytest.approx(440, abs=1) and right < 640 for _, left, right in keys)
    ends = [right for _, _, right in keys]
    assert all(any(number[2] == pytest.approx(end, abs=1) for end in ends) for number in numbers), "after the word"


def test_it_turns_dark_where_the_reader_prefers_that(browser: Any) -> None:
    opened = browser.new_page()
    opened.set_content(TRACE.svg())
    for scheme, paper in (("light", "rgb(251, 250, 247)"), ("dark", "rgb(20, 23, 27)")):
        opened.emulate_media(color_scheme=scheme)
        assert opened.evaluate("getComputedStyle(document.querySelector('rect')).fill") == paper
    opened.close()
