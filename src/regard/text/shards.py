"""Tokenised pairs on disk, memory-mapped: a corpus larger than memory costs only its lengths.

A folder of shards, each two or three flat files (ids of source and target one after the other, lengths with line
numbers, and the text itself where it is needed again), and an index written last.
"""

import json
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.errors import FolderError
from regard.text.pair import Pair

PAIRS_IN_A_SHARD = 500_000
COLUMNS = 4  # of the table: source length, target length, line number, text length


class Tokenised(NamedTuple):
    """One pair on its way to disk."""

    line: int
    source: list[int]
    target: list[int]
    text: Pair | None


class ShardWriter:
    """Collects pairs and writes a shard whenever enough have come together."""

    def __init__(self, folder: Path, vocabulary: int, shard_pairs: int = PAIRS_IN_A_SHARD) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._dtype = np.dtype(np.uint16 if vocabulary <= 2**16 else np.uint32)
        self._shard_pairs = shard_pairs
        self._sizes: list[int] = []
        self._begin()

    def _begin(self) -> None:
        # Flat arrays of machine numbers: a list of small objects would take ten times the memory.
        self._ids = array("H" if self._dtype.itemsize == 2 else "I")
        self._table = array("q")
        self._text = bytearray()

    def add(self, pair: Tokenised) -> None:
        """One more pair."""
        text = "\0".join(pair.text).encode() if pair.text else b""
        self._ids.extend(pair.source)
        self._ids.extend(pair.target)
        self._table.extend((len(pair.source), len(pair.target), pair.line, len(text)))
        self._text.extend(text)
        if len(self._table) >= COLUMNS * self._shard_pairs:
            self._write()

    def close(self) -> None:
        """Write what is left, then the index, without which the folder does not count."""
        if self._table:
            self._write()
        index = {"dtype": self._dtype.name, "pairs": self._sizes}
        (self._folder / "index.json").write_text(json.dumps(index))

    def _write(self) -> None:
        stem = self._folder / f"{len(self._sizes):05d}"
        for suffix, content in ((".ids", self._ids), (".table", self._table), (".text", self._text)):
            stem.with_suffix(suffix).write_bytes(content)
        self._sizes.append(len(self._table) // COLUMNS)
        self._begin()


class Shards:
    """Read any pair of the corpus by its number, and all lengths at once."""

    def __init__(self, folder: Path) -> None:
        try:
            index = json.loads((folder / "index.json").read_text())
            stems = [folder / f"{number:05d}" for number in range(len(index["pairs"]))]
            self._ids = [_map(stem.with_suffix(".ids"), np.dtype(index["dtype"])) for stem in stems]
            self._text = [_map(stem.with_suffix(".text"), np.dtype(np.uint8)) for stem in stems]
            tables = [np.fromfile(stem.with_suffix(".table"), dtype=np.int64).reshape(-1, COLUMNS) for stem in stems]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FolderError(
                f"The tokenised text in {folder} is damaged ({error}). Delete that folder and try again."
            ) from None
        self.source_lengths = _column(tables, 0, np.int32)
        self.target_lengths = _column(tables, 1, np.int32)
        self.lines = _column(tables, 2, np.int64)
        self._shard_first = np.cumsum([0, *(len(table) for table in tables)])
        # Where each pair begins within its shard's files.
        self._ids_at = _concatenate([_starts(table[:, 0] + table[:, 1]) for table in tables])
        self._text_at = _concatenate([_starts(table[:, 3]) for table in tables])
        self._text_lengths = _column(tables, 3, np.int32)

    def __len__(self) -> int:
        return len(self.lines)

    def ids(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Source and target ids of a pair, without begin and end."""
        start = self._ids_at[number]
        middle = start + self.source_lengths[number]
        ids = self._ids[self._shard_of(number)]
        return ids[start:middle], ids[middle : middle + self.target_lengths[number]]

    def text(self, number: int) -> Pair:
        """The pair as it was read; only where the shards were told to keep it."""
        start = self._text_at[number]
        stored = self._text[self._shard_of(number)][start : start + self._text_lengths[number]]
        source, _, target = stored.tobytes().decode().partition("\0")
        return Pair(source, target)

    def _shard_of(self, number: int) -> int:
        return int(np.searchsorted(self._shard_first, number, side="right")) - 1


def _map(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    # An empty file cannot be mapped. As a plain array, a mapped file is cut several times as fast.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r")) if path.stat().st_size else np.empty(0, dtype)


def _starts(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)[:-1]])


def _column(tables: list[npt.NDArray[np.int64]], column: int, dtype: Any) -> npt.NDArray[Any]:
    return _concatenate([table[:, column] for table in tables]).astype(dtype)


def _concatenate(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
