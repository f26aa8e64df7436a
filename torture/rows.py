"""What a torture found out, as a row of a table."""

from collections.abc import Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """One law, tried so many times."""

    check: str
    """Its name, such as T6."""
    what: str
    """What was done, in a few words."""
    tried: int
    seen: str
    """What came of it, with figures."""
    passed: bool


def table(rows: Iterable[tuple[str, Row]]) -> str:
    """Parts and their rows as Markdown, in the order of the checks, as in docs/never-lose-work.md."""
    lines = ["| check | what was tried | how often | what was seen | by which command |", "|---|---|---|---|---|"]
    for part, row in sorted(rows, key=lambda found: (found[1].check[0], int(found[1].check[1:]))):
        seen = row.seen if row.passed else f"**FAILED**: {row.seen}"
        cells = (row.check, row.what, f"{row.tried:,}", seen, f"`make torture PART={part}`")
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines)
