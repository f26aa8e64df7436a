"""Pages in a browser: opened from a file, driven and watched."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from regard.pages.see import see_page
from synthetic import synthetic

PIECES = ["The", "an|imal", "didn|'t", "cross", "the", "street", "because", "it", "was", "too", "tired", "."]
DATA, WEIGHTS = synthetic(source=PIECES)
Opened = Callable[..., Any]


@contextmanager
def opener(browser: Any, folder: Path) -> Iterator[Opened]:
    """A function that opens data as a file; whatever a page complains of or asks the network for is an error at the end."""
    trouble: list[str] = []
    opened: list[Any] = []

    def open_(data: Any, state: str = "", width: int = 1400, scheme: str = "light", host: str = "") -> Any:
        path = folder / f"page{len(opened)}.html"
        path.write_text(host or see_page(data), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith("file:") else None)
        opened.append(page)
        page.goto(f"{path.as_uri()}#{state}")
        if not host:
            drawn(page)
        return page

    yield open_
    for page in opened:
        page.close()
    assert not [one for one in trouble if not one.startswith(("data:", "blob:"))]


def drawn(page: Any) -> None:
    """Waits until what was asked for has been drawn."""
    page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))"
    )


def show(page: Any, **state: Any) -> None:
    page.evaluate(
        "state => location.hash = state", "&".join(f"{name}={json.dumps(value)}" for name, value in state.items())
    )
    drawn(page)


def option(page: Any, side: int, n: int) -> Any:
    return page.locator(".words").nth(side).locator("li").nth(n)


def words_of(weights: np.ndarray, queries: list[list[int]], keys: list[list[int]]) -> np.ndarray:
    """Pieces merged: summed over keys, averaged over queries."""
    return np.array([[sum(weights[q, k] for q in one for k in other) / len(one) for other in keys] for one in queries])
