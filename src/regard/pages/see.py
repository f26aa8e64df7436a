"""The attention page, as a file and inside a notebook."""

import html
from typing import Any

from regard.pages.page import assemble


def see_page(data: dict[str, Any], figure: str = "") -> str:
    """The page that shows `data`, which is as `regard.interpret.page_data` makes it.

    `figure` is an SVG of ours, shown to those who run no scripts.
    """
    return assemble(
        title=data["title"],
        body="see/see.html",
        styles=["page.css", "see/see.css", "see/allheads.css", "see/pairs.css", "see/steps.css"],
        program="see/main.js",
        data=data,
        without=f"<figure>{figure}</figure>" if figure else "",
    )


def notebook_frame(page: str, height: int) -> str:
    """The page in a frame of its own: nothing of the notebook reaches into it, nor it into the notebook."""
    look = (
        f"display:block!important;width:100%;height:{height}px;min-height:240px;resize:vertical;overflow:auto;"
        "border:1px solid #8884;border-radius:6px;background:transparent"
    )
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" title="attention" style="{look}" '
        f'srcdoc="{html.escape(page)}"></iframe>'
    )
