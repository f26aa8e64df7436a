"""Published models that somebody spoiled or made up to do harm: `regard import` ends, in bounds, with one line."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hostile_imports
from torture.parts.folders import alone, in_processes, row
from torture.rows import Row

DRAWN, PROCESSES = 100, 100


def run(scratch: Path) -> Iterator[Row]:
    (scratch / "bases").mkdir()
    bases = cache(lambda name: hostile_imports.make_base(name, scratch / "bases" / name))
    count = len(hostile_imports.LISTED) + DRAWN
    tried = list(in_processes(scratch, bases, hostile_imports, range(count)))
    yield row("X2", f"{count} malformed folders of published models, imported and used", tried)
    yield row("X2", "the same as processes", list(alone(scratch, bases, hostile_imports, count, PROCESSES)))
