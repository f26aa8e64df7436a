"""docs/benchmarks.json -> docs/benchmarks.md; and the same as a table in the terminal."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import plot
from bench.aims import verdicts
from bench.contest import ROOT, Line, ratios
from bench.figures import figure
from bench.result import Result

DOCS = ROOT / "docs"
INTRODUCTION = """# Benchmarks

Written by `make bench` from [benchmarks.json](benchmarks.json); how it measures is in [bench/README.md](../bench/README.md).
All contestants of a table run in turns in the same run, each in its own process; *best* is the best of the rounds. A figure
that falls short stays in the table.

![Rates of Regard and its peers, and how memory and time grow](benchmarks.svg)
"""


def show(result: Result) -> None:
    """Print what a part found."""
    found = result.as_json()
    table = Table(title=f"{result.title} ({result.unit})" if result.unit else result.title)
    header, *rows = rows_of(found)
    for column in header:
        table.add_column(column, justify="left" if column in ("", "note") else "right")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    for name, why in result.failed.items():
        console.print(f"{name}: {why}", style="red", markup=False)


def keep(name: str, result: Result, docs: Path = DOCS) -> None:
    """Store it in the place of what an earlier run found."""
    stored = _stored(docs)
    stored[name] = result.as_json()
    (docs / "benchmarks.json").write_text(json.dumps(stored, indent=1) + "\n")


def write(parts: Iterable[str], docs: Path = DOCS) -> None:
    """Write the page and its picture from what is stored of these parts, in their order."""
    stored = _stored(docs)
    stored = {name: stored[name] for name in parts if name in stored}
    (docs / "benchmarks.md").write_text(page(stored))
    (docs / "benchmarks.svg").write_text(plot.picture(stored))


def page(stored: dict[str, Any]) -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(section(name, found) for name, found in stored.items())])


def section(name: str, found: dict[str, Any]) -> str:
    """One part: what was done, its figures, what failed, and where and when it was measured."""
    title = found["title"] + (f", {found['unit']}" if found.get("unit") else "")
    header, *rows = rows_of(found)
    ruler = [":--" if column in ("", "note") else "--:" for column in header]
    lines = [f"## {title}", "", found["about"], ""]
    lines += ["| " + " | ".join(cells) + " |" for cells in (header, ruler, *rows)] + [""]
    lines += [f"- {said}" for said in verdicts(name, found)]
    lines += [f"- {who} could not take part: {why}" for who, why in found.get("failed", {}).items()]
    machine = found["machine"]
    lines.append(
        f"- `make bench PART={name}`, {found['date']}: {machine['processor']}, {machine['cores']} cores, "
        f"{machine['threads']} threads; {machine['system']}, Python {machine['python']}, torch {machine['torch']}."
    )
    return "\n".join([*lines, ""])


def rows_of(found: dict[str, Any]) -> list[list[str]]:
    """A header and rows, whatever the part measured."""
    if found.get("table"):
        return found["table"]
    return _curves(found["curves"]) if found.get("curves") else _rates(found)


def _rates(found: dict[str, Any]) -> list[list[str]]:
    """A row for each contestant: best, median, how many times as fast ours is, and what is noted."""
    lines = [Line(name, rates) for name, rates in found["rates"].items()]
    notes, ours = found.get("notes", {}), found.get("ours")
    times = ratios(lines, ours) if ours in found["rates"] else {}
    title = [found.get("comparison") or f"{ours} is"] if times else []
    rows = []
    for line in lines:
        row = [line.name, figure(line.best), figure(line.median)]
        if times:
            row.append("" if line.name == ours else f"{times[line.name]:.2f} ×")
        rows.append(row + ([notes.get(line.name, "")] if notes else []))
    return [["", "best", "median", *title, *(["note"] if notes else [])], *rows]


def _curves(curves: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    rows = [
        [
            f"{name} {point['at']:,.0f}",
            f"{point['most']:,.0f}",
            f"{point['most'] - point['before']:,.0f}",
            _micro(point),
        ]
        for name, points in curves.items()
        for point in points
    ]
    return [["", "MB at most", "MB of the step", "µs a target word"], *rows]


def _micro(point: dict[str, float]) -> str:
    return f"{1e6 * point['seconds']:,.0f}"


def _stored(docs: Path) -> dict[str, Any]:
    path = docs / "benchmarks.json"
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return stored
