"""log.jsonl: one JSON object a line. Fields that depend on the clock end a line, so that the rest can be compared.

Training lines have step, epoch, loss (per target token, smoothed), rate, gradient, tokens (seen so far) and padding;
validation lines have step and valid_loss, valid_perplexity, valid_bleu, valid_chrf, valid_exact. CLOCK fields may
differ between two runs that are otherwise the same. probe.jsonl is written in the same way, with a line for each
validation: step, samples, and what the job's probe saw. Nothing in it depends on the clock.
"""

import json
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from regard.errors import FolderError
from regard.system import files, storage

_LARGEST, _MOST_LINES, _MOST_VALUES = 256 << 20, 250_000, 4_000_000
"""Bytes, lines and values of a log that is read."""
CLOCK = ("tokens_per_second", "seconds")


class Log:
    """Appends lines; can be cut back to where a checkpoint left it."""

    def __init__(self, path: Path, size: int) -> None:
        """Open the log as it was when it had `size` bytes: lines written after that are written again."""
        self._path = path
        with storage.explained(path):
            self._file = storage.disk.open(path, "ab")
            try:
                storage.disk.truncate(self._file, min(size, self._file.tell()))
                self._file.seek(0, os.SEEK_END)
            except BaseException:
                self._file.close()
                raise

    def write(self, **fields: Any) -> None:
        """One more line."""
        with storage.explained(self._path):
            storage.append(self._file, json.dumps(fields, ensure_ascii=False).encode() + b"\n")

    def sync(self) -> int:
        """Make sure that all lines are on the disk; the log's size in bytes."""
        with storage.explained(self._path):
            storage.disk.sync(self._file.fileno())
        return self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()


class NoLog:
    """The log of a process that does not lead: another one writes it."""

    def write(self, **fields: Any) -> None:
        """Nothing."""

    def sync(self) -> int:
        """No bytes."""
        return 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Nothing is open."""


def read_log(path: Path) -> list[dict[str, Any]]:
    """All lines of a log; one that is just being written does not count yet."""
    lines: list[dict[str, Any]] = []
    left = _MOST_VALUES
    try:
        with open(files.regular(path, _LARGEST), "rb") as file:
            # Nothing but a line feed ends a line: the texts in it may hold other breaks.
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                if number > _MOST_LINES:
                    raise ValueError(f"it has more than the {_MOST_LINES:,} lines that are read")
                lines.append(_table(line, number, left))
                left -= line.count(b",")
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read ({error}). Restore it from a copy, or move it away.") from None
    return lines


def _table(line: bytes, number: int, values: int) -> dict[str, Any]:
    try:
        found = files.parsed(line.decode(errors="replace").encode(), values)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"line {number}: it is not a table")
    return {sys.intern(name): value for name, value in found.items()}  # the same names in every line
