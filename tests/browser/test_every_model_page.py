"""The page of every model, made from a model and not from a table: each view opens, and says in words what it cannot show."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

import regard
from conftest import SMALL
from opening import drawn, show
from regard.interpret.exhibit import look
from untrained import NO_ATTENTION, made

VIEWS = ["heads", "matrix", "grid", "find", "trace", "compare", "contrast", "knockout", "beam", "steps"]


@pytest.mark.parametrize("name", SMALL)
def test_every_view_opens_for_every_model(name: str, browser: Any, tmp_path: Path) -> None:
    model = regard.load(made(name, tmp_path / name), threads=1)
    path = tmp_path / "page.html"
    path.write_text(look([model], ["a b <mask> c", "a b d c"], beam=2).html())
    page: Page = browser.new_page(viewport={"width": 1400, "height": 900})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(path.as_uri())
    drawn(page)
    if name in NO_ATTENTION:
        assert "no attention" in page.locator("main").inner_text()
    else:
        for view in VIEWS:
            show(page, view=view)
            assert page.locator("[role=tab][aria-selected=true]").count() == 1
            assert page.locator("main [role=tabpanel]:visible").inner_text().strip(), view
    page.close()
    assert not trouble
