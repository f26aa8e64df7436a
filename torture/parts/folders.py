"""Model folders that somebody spoiled or made up to do harm: every command ends, in bounds, with one line."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import lawful
from hostile import LISTED, Hostile, commands, hostile, make_base
from lawful import Tried, as_process, in_process
from torture.rows import Row

DRAWN, PROCESSES = 200, 300


def run(scratch: Path) -> Iterator[Row]:
    bases = cache(lambda name: make_base(name, scratch / "bases" / name))
    (scratch / "bases").mkdir()
    listed, drawn = range(len(LISTED)), range(len(LISTED), len(LISTED) + DRAWN)
    for what, numbers in (("each harm by itself", listed), ("damage of chance", drawn)):
        tried = [
            (one.name, each)
            for one, at, out in _made(scratch, bases, numbers)
            for each in in_process(at, out, commands)
        ]
        yield row(f"{len(numbers)} hostile folders, {what}: every command that opens one, both engines", tried)
    yield row("drawn folders and commands, each a process under RLIMIT_CPU and RLIMIT_AS", list(alone(scratch, bases)))


def _made(scratch: Path, bases, numbers) -> Iterator[tuple[Hostile, Path, Path]]:
    for number in numbers:
        one = hostile(number)
        at, outside = scratch / "hostile", scratch / "outside"
        shutil.copytree(bases(one.base), at, symlinks=True)
        outside.mkdir()
        (outside / "kept").write_text("as it was")
        one.change(at, outside)
        yield one, at, outside
        shutil.rmtree(at)
        shutil.rmtree(outside)


def alone(scratch: Path, bases) -> Iterator[tuple[str, Tried]]:
    random = Random(1)
    numbers = [random.randrange(len(LISTED) + DRAWN) for _ in range(PROCESSES)]
    room = addresses()
    for one, at, outside in _made(scratch, bases, numbers):
        work = scratch / "work"
        work.mkdir()
        name, arguments = random.choice(list(commands(at, work)))
        yield one.name, as_process(name, arguments, at, outside, room)
        shutil.rmtree(work)


def addresses() -> float:
    """Megabytes of addresses that a Python takes which has imported all, and done nothing."""
    import subprocess
    import sys

    code = "import torch, ctranslate2, regard.api, regard.see.trace; print(open('/proc/self/status').read())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return int(told.partition("VmPeak:")[2].split()[0]) / 1000


def row(what: str, tried: list[tuple[str, Tried]]) -> Row:
    faults = [f"{name}, {one.command}: {one.fault}" for name, one in tried if one.fault]
    for fault in faults:
        print(fault, flush=True)
    slowest, largest = max(one.seconds for _, one in tried), max(one.megabytes for _, one in tried)
    seen = f"{len(faults)} broke the law; {slowest:.1f} CPU seconds and {largest:,.0f} MB at most"
    limits = f"{lawful.SECONDS} CPU seconds, {lawful.MEGABYTES} MB"
    return Row("X1", f"{what} ({limits})", len(tried), seen, not faults)
