"""Model folders that somebody spoiled or made up to do harm: every command ends, in bounds, with one line."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import hostile
import lawful
from hostile import Hostile
from lawful import Tried, as_process, in_process
from torture.rows import Row

DRAWN, PROCESSES = 200, 300
Bases = Callable[[str], Path]
Found = tuple[str, Tried]


def run(scratch: Path) -> Iterator[Row]:
    bases = bases_in(scratch)
    listed, more = range(len(hostile.LISTED)), range(len(hostile.LISTED), len(hostile.LISTED) + DRAWN)
    for what, numbers in (("each harm by itself", listed), ("damage of chance", more)):
        tried = list(in_processes(scratch, bases, hostile, numbers))
        yield row("X2", f"{len(numbers)} hostile folders, {what}: every command that opens one, both engines", tried)
        pickles = [one for one in tried if "pickle" in one[0]]
        if pickles:
            yield row("X2", "of these, a pickle under every name that is read: never runs", pickles)
    tried = list(alone(scratch, bases, hostile, len(listed) + DRAWN, PROCESSES))
    yield row("X2", "drawn folders and commands, each a process under RLIMIT_CPU and RLIMIT_AS", tried)


def bases_in(scratch: Path) -> Bases:
    """Whole folders, each made once."""
    (scratch / "bases").mkdir()
    return cache(lambda name: hostile.make_base(name, scratch / "bases" / name))


def made(scratch: Path, bases: Bases, kind: Any, numbers: Iterable[int]) -> Iterator[tuple[Hostile, Path, Path]]:
    """Each folder, and one outside that it may lead to. `kind` is the module that tells of them."""
    for number in numbers:
        one = kind.hostile(number)
        at, outside = scratch / "hostile", scratch / "outside"
        shutil.copytree(bases(one.base), at, symlinks=True)
        outside.mkdir()
        (outside / "kept").write_text("as it was")
        one.change(at, outside)
        yield one, at, outside
        shutil.rmtree(at)
        shutil.rmtree(outside)


def in_processes(scratch: Path, bases: Bases, kind: Any, numbers: Iterable[int]) -> Iterator[Found]:
    """All commands on each folder, in one child of this process for each."""
    import regard.api
    import regard.interpret.trace  # noqa: F401 (what a child need not import again)

    for one, at, outside in made(scratch, bases, kind, numbers):
        yield from ((one.name, tried) for tried in in_process(at, outside, kind.commands))


def alone(scratch: Path, bases: Bases, kind: Any, folders: int, count: int) -> Iterator[Found]:
    """Drawn commands on drawn folders, each in a Python of its own."""
    random, room = Random(1), addresses()
    numbers = [random.randrange(folders) for _ in range(count)]
    for one, at, outside in made(scratch, bases, kind, numbers):
        work = scratch / "work"
        work.mkdir()
        name, arguments = random.choice(list(kind.commands(at, work)))
        yield one.name, as_process(name, arguments, at, outside, room)
        shutil.rmtree(work)


def addresses() -> float:
    """Megabytes of addresses that a Python takes which has imported all, and done nothing."""
    code = "import torch, ctranslate2, regard.api, regard.interpret.trace; print(open('/proc/self/status').read())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return int(told.partition("VmPeak:")[2].split()[0]) / 1000


def row(check: str, what: str, tried: list[Found]) -> Row:
    faults = [f"{name}, {one.command}: {one.fault}" for name, one in tried if one.fault]
    for fault in faults:
        print(fault, file=sys.stderr, flush=True)
    slowest, largest = max(one.seconds for _, one in tried), max(one.megabytes for _, one in tried)
    seen = f"{len(faults)} broke the law; {slowest:.1f} CPU seconds and {largest:,.0f} MB at most"
    limits = f"{lawful.SECONDS} CPU seconds, {lawful.MEGABYTES} MB and twice the folder"
    return Row(check, f"{what} ({limits})", len(tried), seen, not faults)
