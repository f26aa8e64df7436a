"""The conductor: contestants take turns, round by round, so that whatever the machine does meanwhile befalls all alike."""

import json
import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

ROOT = Path(__file__).parents[1]
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}
"""For glibc: the same as `regard.system.allocator.keep_memory`, for those who do not do it themselves."""


class ContestError(Exception):
    """A contestant that could not start or go on, and the last it said."""


class Entry(NamedTuple):
    """Who takes part: a worker of `bench.workers`, its settings, and in whose environment it runs."""

    name: str
    worker: str
    settings: dict[str, Any]
    peer: str = ""
    """Of `bench.peers`; without one it runs in ours."""
    keeps_memory: bool = False
    """Whether the C library keeps freed memory for it, as `regard.system.allocator.keep_memory` asks for."""


class Racer(Protocol):
    """Whoever can be told to work."""

    name: str

    def go(self, **order: Any) -> dict[str, Any]:
        """Do it, and say what was done."""
        ...


class Contestant:
    """A worker's process, which sleeps until it is told to work."""

    def __init__(self, entry: Entry, python: Path) -> None:
        self.name = entry.name
        self.last: dict[str, Any] = {}
        """What it answered last."""
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process)
        command = [str(python), "-m", f"bench.workers.{entry.worker}", json.dumps(entry.settings)]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | (KEEP_MEMORY if entry.keeps_memory else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        try:
            self._answer()
        except ContestError:
            self.close()
            raise

    def go(self, **order: Any) -> dict[str, Any]:
        """Send an order; the answer, when it is done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        with self._process, self._said:  # closes what is open, and waits
            pass

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if "error" in answer:
                raise ContestError(answer["error"])
            self.last = answer
            return answer
        self._process.wait(timeout=60)
        self._said.seek(0)
        lines = [line for line in self._said.read().decode(errors="replace").splitlines() if line.strip()]
        raise ContestError(lines[-1].strip() if lines else f"it ended with {self._process.returncode}")


class Line(NamedTuple):
    """How one contestant did: amounts (tokens, sentences) per second, round by round."""

    name: str
    rates: list[float]

    @property
    def best(self) -> float:
        """Of all rounds: what the machine can do when nothing disturbs it."""
        return max(self.rates)

    @property
    def median(self) -> float:
        """Of all rounds."""
        return statistics.median(self.rates)


def turns(names: Sequence[str], number: int) -> list[str]:
    """Everyone once; every other round backwards, so that nobody always follows the same one."""
    return list(names if number % 2 == 0 else reversed(names))


def race(
    racers: Sequence[Racer],
    rounds: int,
    seconds: float = math.inf,
    orders: dict[str, dict[str, Any]] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Line]:
    """Let all take turns. A first turn of each does not count; no round begins when the seconds are over, but for one.

    `orders` are what to tell each.
    """
    by_name, orders, began = {racer.name: racer for racer in racers}, orders or {}, clock()
    rates: dict[str, list[float]] = {name: [] for name in by_name}
    for number in range(rounds + 1):
        if number > 1 and clock() - began > seconds:
            break
        for name in turns(list(by_name), number):
            done = by_name[name].go(**orders.get(name, {}))
            if number:
                rates[name].append(done["amount"] / done["seconds"])
    return [Line(name, found) for name, found in rates.items()]


def ratios(lines: Iterable[Line], ours: str) -> dict[str, float]:
    """How many times as fast as each of them `ours` is, best against best."""
    best = {line.name: line.best for line in lines}
    return {name: best[ours] / rate for name, rate in best.items()}
