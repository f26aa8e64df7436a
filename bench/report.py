"""docs/benchmarks.json -> docs/benchmarks.md; and the same as a table in the terminal."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.contest import ROOT, Line, ratios
from bench.result import Result

DOCS = ROOT / "docs"
STORED = DOCS / "benchmarks.json"


def show(result: Result) -> None:
    """Print what a part found."""
    table = Table(title=f"{result.title} ({result.unit})")
    header, *rows = rows_of(result.as_json())
    for column in header:
        table.add_column(column, justify="left" if column in ("", "note") else "right")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    for name, why in result.failed.items():
        console.print(f"{name}: {why}", style="red", markup=False)


def keep(name: str, result: Result) -> None:
    """Store it in the place of what an earlier run found."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    stored[name] = result.as_json()
    STORED.write_text(json.dumps(stored, indent=1) + "\n")


def write() -> None:
    """Write the page from all that is stored."""


def rows_of(found: dict[str, Any]) -> list[list[str]]:
    """A header, then a row for each contestant: best, median, how many times as fast ours is, and what is noted."""
    lines = [Line(name, rates) for name, rates in found["rates"].items()]
    notes = found.get("notes", {})
    times = ratios(lines, found["ours"]) if found.get("ours") in found["rates"] else {}
    header = ["", "best", "median"] + ([f"{found['ours']} is"] if times else []) + (["note"] if notes else [])
    rows = []
    for line in lines:
        row = [line.name, figure(line.best), figure(line.median)]
        if times:
            row.append("" if line.name == found["ours"] else f"{times[line.name]:.2f} ×")
        rows.append(row + ([notes.get(line.name, "")] if notes else []))
    return [header, *rows]


def figure(value: float) -> str:
    """A number with as many digits as mean something.

    >>> figure(12345.6), figure(3.14159), figure(1.3e12)
    ('12,346', '3.14', '1,300 G')
    """
    if value >= 1e9:
        return f"{value / 1e9:,.0f} G"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
