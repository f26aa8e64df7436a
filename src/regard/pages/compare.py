"""The page of a comparison."""

from typing import Any

from regard.pages.page import assemble


def compare_page(table: dict[str, Any], paths: dict[str, Any] | None) -> str:
    """Table, scores, learning curves, scores by length; and, if there are any, the paths of the gradients."""
    return assemble(
        title=f"Models compared on {table['data']}",
        body="compare.html",
        styles=["page.css", "report.css", "compare.css"],
        program="compare.js",
        data={"table": table, "paths": paths},
    )
