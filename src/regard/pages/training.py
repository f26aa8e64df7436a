"""The training page."""

from typing import Any

from regard.pages.page import assemble


def training_page(history: dict[str, Any]) -> str:
    """Curves, samples, and one text's attention as it came about; `history` is as `regard.interpret.training_history`
    makes it."""
    return assemble(
        title=f"Training of {history['title']}",
        body="see/training.html",
        styles=["page.css", "report.css", "see/see.css", "see/training.css"],
        program="see/training.js",
        data=history,
    )
