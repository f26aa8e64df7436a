"""The page of a comparison: one file that loads nothing, says what the table says, and can be used by anyone."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from conftest import write_digits
from regard.cli.main import main
from regard.experiments.compare import comparison
from regard.experiments.compare.model_facts import KINDS
from regard.experiments.compare.table import said, sort
from regard.pages.compare import compare_page
from regard.pages.page import asset
from tests.experiments.compare.test_compare import OPTIONS, in_process

HOSTILE = "</script><script>document.title = 'taken over'</script><!--"


def a_row(model: str, value: float) -> dict[str, Any]:
    """As if it had been measured."""
    kind = KINDS[model]
    score = {"value": value, "low": value - 1.5, "high": value + 1.5, "signature": "nrefs:1|case:mixed|tok:13a"}
    part = {"sentences": 50, "exact_match": value, "bleu": score, "chrf": score}
    curve = [
        {"step": n, "seconds": n / value, "tokens": 90.0 * n, "loss": 9 - n / 99, "bleu": n / 9} for n in (99, 198)
    ]
    return {
        "model": model, "family": kind.family, "path_within": kind.within, "path_across": kind.across, "failed": None,
        "parameters": 1_000_000 + int(value), "width": 64, "rate": 0.002, "step": 198, "bleu": score, "chrf": score,
        "exact_match": value / 2, "perplexity": 200 / value, "tokens_per_second": 1e5 / value, "peak_memory": 5e8,
        "sentences_per_second": value, "curve": {"train": [], "valid": curve},
        "halves": [{"shortest": 1, "longest": 9, **part}, {"shortest": 10, "longest": 30, **part}],
        "quantiles": [{"shortest": n, "longest": n + 4, **part} for n in (1, 6, 11)],
    }  # fmt: skip


def a_table() -> dict[str, Any]:
    """Every model, and one that failed; with texts that try to break out."""
    rows = [a_row(model, 90.0 - 7 * n) for n, model in enumerate(KINDS)]
    rows.append({**a_row("lm", 1), "model": "broken", "failed": HOSTILE})
    table: dict[str, Any] = {
        "data": HOSTILE, "valid": "held out", "pairs": 1000, "budget": "5 minutes", "metric": "bleu", "beam": 4, "seed": 1,
        "test": {"name": "test", "sentences": 100, "held_out": True, "median": 9}, "batch_tokens": 4096,
        "match": {"reference": "transformer", "parameters": 1_000_000}, "command": "regard compare", "folder": "runs/c",
        "tokenizer": {"kind": "bpe", "size": 8000, "hash": "0123456789abcdef"}, "rows": sort(rows, "bleu"),
        "machine": {"cores": 2, "threads": 2, "device": "cpu", "precision": "float32", "torch": "2", "python": "3"},
    }  # fmt: skip
    return {**table, "said": said(table)}


def some_paths() -> dict[str, Any]:
    """Gradients that fade, one of them to nothing."""
    fading = {"target": [0.9**k for k in range(9)], "source": [0.5**k for k in range(9)], "first": 5}
    blind = {"target": [1.0, 0.5, 0.25] + [0.0] * 6, "source": [1.0] * 9, "first": 5}
    return {
        "gru": {"family": KINDS["gru"].family, "initial": fading, "trained": fading},
        "conv": {"family": KINDS["conv"].family, "initial": blind, "trained": blind},
    }


PAGE = compare_page(a_table(), some_paths())


def parts(tag: str) -> list[str]:
    return re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", PAGE, flags=re.DOTALL)


def test_the_page_refers_to_nothing_outside_itself() -> None:
    known = {"http://www.w3.org/2000/svg"}  # the name of SVG, which is never fetched
    assert set(re.findall(r"\w+://[^\s\"'<>`]+", PAGE)) <= known
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|import\(", PAGE)
    assert set(re.findall(r"""\s(?:src|href|action)=["']([^"']*)""", PAGE)) == {"data:,"}


def test_only_its_own_style_and_script_may_run() -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', PAGE)
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy).split(";"))
    (style,), (_, script) = parts("style"), parts("script")
    for name, text in (("style-src", style), ("script-src", script)):
        assert rules[name] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert rules["default-src"] == "'none'" and not re.search(r"\sstyle=|\son\w+=", PAGE)


def test_hostile_texts_stay_texts() -> None:
    data, _ = parts("script")
    assert json.loads(data)["table"]["data"] == HOSTILE
    assert PAGE.count("<script") == 2 and "<!--" not in data
    assert "<title>Models compared on &lt;/script&gt;" in PAGE


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(scheme: int) -> None:
    """As WCAG 2 asks: 4.5 for text, 3 for lines."""
    colours = re.findall(r":root \{(.*?)\}", asset("page.css"), flags=re.DOTALL)[scheme]
    named = dict(re.findall(r"--([\w-]+): (#\w{6})", colours))
    for text, ground in product(("ink", "quiet", "accent"), ("paper", "raised", "band")):
        assert contrast(named[text], named[ground]) >= 4.5, (text, ground)
    hues = [name for name in named if name.startswith("hue")]
    assert len(hues) == len({kind.family for kind in KINDS.values()})
    assert all(contrast(named[hue], named["paper"]) >= 3 for hue in hues)


def test_the_path_is_measured_before_and_after_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison, "in_child", in_process)
    arguments = [
        *write_digits(tmp_path, 200),
        "--to",
        str(tmp_path / "c"),
        "--models",
        "gru",
        "--steps",
        "30",
        *OPTIONS,
    ]
    found = {}
    for when in ("before", "after"):
        assert main(["compare", *arguments, "--path"]) == 0
        found[when] = json.loads((tmp_path / "c" / "path.json").read_text())["gru"]
        assert json.dumps(found[when]["initial"]["target"])[1:-1] in (tmp_path / "c" / "compare.html").read_text()
        if when == "before":
            assert not (tmp_path / "c" / "gru").exists(), "it trains nothing"
            assert main(["compare", *arguments]) == 0
            assert '"paths": {"gru"' in (tmp_path / "c" / "compare.html").read_text()
    assert found["before"]["trained"] is None
    assert found["after"]["initial"] == found["before"]["initial"] != found["after"]["trained"]
    assert json.loads((tmp_path / "c" / "table.json").read_text())["rows"][0]["step"] == 30


# ---------------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture
def page(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page, opened from a file; whatever it complains of or asks the network for fails the test."""
    path = tmp_path / "compare.html"
    path.write_text(PAGE)
    width, scheme = getattr(request, "param", (1280, "light"))
    opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith("file:") else None)
    opened.goto(path.as_uri())
    yield opened
    opened.close()
    assert not [one for one in trouble if one != "data:,"]


def first_column(page: Any) -> list[str]:
    names: list[str] = page.locator("#table tbody th").all_inner_texts()
    return [name.split()[0] for name in names]


@pytest.mark.parametrize(
    "page", [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")], indirect=True, ids=str
)
def test_it_fits_every_width_and_scheme(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() != "taken over" and HOSTILE in page.locator("h1").inner_text()
    assert first_column(page) == [*KINDS, "broken"]
    assert page.locator("svg.chart").count() == 5
    overlaps = """[...document.querySelectorAll("svg.chart")].flatMap((svg) => {
      const boxes = [...svg.querySelectorAll("text.name")].map((text) => text.getBoundingClientRect());
      return boxes.flatMap((a, n) => boxes.slice(n + 1).filter((b) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top + 4 < b.bottom && b.top + 4 < a.bottom));
    }).length"""
    assert page.evaluate(overlaps) == 0, "no name of a line lies on another"
    outside = """[...document.querySelectorAll("svg.chart text")].map((text) => text.getBoundingClientRect())
      .filter((box) => box.left < 0 || box.right > innerWidth).length"""
    assert page.evaluate(outside) == 0


def test_headings_sort_by_keyboard_too(page: Any) -> None:
    page.locator("#table thead button", has_text="perplexity").focus()
    page.keyboard.press("Enter")
    assert first_column(page) == [*KINDS, "broken"], "the lowest first"
    page.keyboard.press("Enter")
    assert first_column(page) == [*reversed(KINDS), "broken"], "and those that failed always last"
    assert page.locator("#table th[aria-sort=descending]").inner_text().startswith("perplexity")
    page.locator("#table thead button", has_text="model").click()
    assert first_column(page) == [*sorted(KINDS), "broken"]


def test_models_can_be_left_out_of_the_pictures(page: Any) -> None:
    def lines() -> list[str]:
        names: list[str] = page.locator("#curves text.name").all_text_contents()
        return names

    assert sorted(lines()) == sorted(KINDS)
    page.get_by_role("checkbox", name="conv").focus()
    page.keyboard.press("Space")
    assert sorted(lines()) == sorted(set(KINDS) - {"conv"})
    assert page.locator("#path-target text.name").all_text_contents() == ["gru"]


def test_choices_redraw_the_pictures_and_their_numbers(page: Any) -> None:
    for choice, says in (("tokens", "target tokens learned from"), ("steps", "steps")):
        page.get_by_role("radio", name=choice).check()
        assert says in page.locator("#curves svg").text_content()
    page.locator("#curve-controls").get_by_role("radio", name="BLEU").check()
    assert "validation BLEU" in page.locator("#curves svg").text_content()
    page.locator("#path-source summary").focus()
    page.keyboard.press("Enter")
    cells = page.locator("#path-source tbody tr").first.locator("th, td").all_inner_texts()
    assert cells[:4] == ["gru", "1.0", "0.50", "0.25"], "the numbers behind the picture, nearest word = 1"
    dead = page.locator("#path-target tbody tr").nth(1).locator("th, td").all_text_contents()
    assert dead[:5] == ["conv", "1.0", "0.50", "0", "0"], "what is out of sight is nothing, not a point on a log scale"


def test_everything_can_be_reached_by_keyboard(page: Any) -> None:
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = "document.activeElement.closest('[id]')?.id ?? ''"
        reached.add(page.evaluate(focused))
    assert {
        "table",
        "models",
        "scores",
        "curve-controls",
        "curves",
        "lengths",
        "path-controls",
        "path-target",
    } <= reached
