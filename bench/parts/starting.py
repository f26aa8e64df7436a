"""Contestants of a part, started together and ended together."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import peers
from bench.contest import Contestant, ContestError, Entry
from bench.result import Result


@contextmanager
def started(entries: Iterable[Entry], result: Result) -> Iterator[list[Contestant]]:
    """All that can start; why the others cannot is kept in the result."""
    racers: list[Contestant] = []
    try:
        for entry in entries:
            try:
                python = peers.python_of(entry.peer) if entry.peer else Path(sys.executable)
                racers.append(Contestant(entry, python))
                if entry.peer:
                    result.notes[entry.name] = peers.version_of(entry.peer)
            except ContestError as error:
                result.failed[entry.name] = str(error)
        yield racers
    finally:
        for racer in racers:
            racer.close()
