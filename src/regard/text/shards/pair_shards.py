"""Tokenised pairs on disk, memory-mapped: a corpus larger than memory costs only its lengths.

A folder of shards, each four flat files: ids (of source and target one after the other), lengths, a table of places
(line, begin of ids, begin of text), and the text itself where it is needed again. Files only ever grow at their ends, so
whoever knows where they ended once can go on from there. An index is written last.
"""

import itertools
import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.errors import FolderError
from regard.system import storage
from regard.text.pair import Pair

# Each mapped file takes one of the thousand or so that a process may have open.
PAIRS_IN_A_SHARD = 2_000_000
IDS, LENGTHS, TABLE, TEXT = ".ids", ".lengths", ".table", ".text"
LENGTH, PLACE = np.dtype(np.int32), np.dtype(np.int64)
ID_TYPES = {name: np.dtype(name) for name in ("uint16", "uint32")}
WRITTEN_AT_A_TIME = 1 << 24  # bytes
COLUMNS = 3  # of the table: line number, where the ids begin, where the text begins
# Up to here sixteen bits hold a length, begin and end of a sentence counted.
SHORT = 2**16 - 3


class Tokenised(NamedTuple):
    """One pair on its way to disk."""

    line: int
    source: list[int]
    target: list[int]
    text: Pair | None


class Block(NamedTuple):
    """Some pairs on their way to disk, as flat arrays: lists of small objects would take ten times the memory."""

    lines_N: npt.NDArray[np.int64]
    lengths_N2: npt.NDArray[Any]
    ids: npt.NDArray[Any]
    texts: list[bytes]
    """Of each pair, or of none."""


def gathered(pairs: Sequence[Tokenised]) -> Block:
    """These pairs as a block."""
    sides = [side for pair in pairs for side in (pair.source, pair.target)]
    return Block(
        np.array([pair.line for pair in pairs], np.int64),
        np.array([len(side) for side in sides], np.int64).reshape(-1, 2),
        np.fromiter(itertools.chain.from_iterable(sides), np.int32),
        [stored(pair.text) for pair in pairs if pair.text is not None],
    )


def stored(pair: Pair) -> bytes:
    """How the text of a pair is kept: no text holds a NUL."""
    return "\0".join(pair).encode()


@dataclass(frozen=True)
class Written:
    """What is safe on disk, ready for JSON."""

    pairs: list[int] = field(default_factory=lambda: [0])
    """In each shard; the last one grows."""
    longest: int = 0
    """Tokens of the longest side."""
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys((IDS, LENGTHS, TABLE, TEXT), 0))
    """Bytes in each file of the last shard."""


class ShardWriter:
    """Appends pairs to a shard, and begins another when it is full.

    It goes on after what an earlier writer had `written`; whatever that one appended later is cut off.
    """

    def __init__(self, folder: Path, vocabulary: int, written: Written | None = None) -> None:
        self._folder = folder
        self._dtype = np.dtype(np.uint16 if vocabulary <= 2**16 else np.uint32)
        written = written or Written()
        self._pairs, self._longest, self._ends = list(written.pairs), written.longest, dict(written.ends)
        self._safe = dict(written.ends)
        self._new = {suffix: bytearray() for suffix in self._ends}
        storage.make_folder(folder)
        self._cut_off()

    def __len__(self) -> int:
        return sum(self._pairs)

    def add(self, block: Block) -> None:
        """Some more pairs; all of them come into the same shard."""
        if not len(block.lines_N):
            return
        if self._pairs[-1] >= PAIRS_IN_A_SHARD:
            self.save()
            self._pairs.append(0)
            self._ends, self._safe = dict.fromkeys(self._ends, 0), dict.fromkeys(self._ends, 0)
        ids_at_N = self._ends[IDS] // self._dtype.itemsize + _starts(block.lengths_N2.sum(1))
        sizes_N = np.array([len(text) for text in block.texts] or [0] * len(block.lines_N))
        table_N3 = np.stack([block.lines_N, ids_at_N, self._ends[TEXT] + _starts(sizes_N)], axis=1)
        self._append(IDS, block.ids.astype(self._dtype).tobytes())
        self._append(LENGTHS, block.lengths_N2.astype(LENGTH).tobytes())
        self._append(TABLE, table_N3.astype(PLACE).tobytes())
        self._append(TEXT, b"".join(block.texts))
        self._pairs[-1] += len(block.lines_N)
        self._longest = max(self._longest, int(block.lengths_N2.max()))

    def save(self) -> Written:
        """Wait until all that was added is on the disk."""
        for suffix, end in self._ends.items():
            self._write(suffix)
            if end != self._safe[suffix]:
                storage.sync_file(self._file(suffix))
        storage.sync_folder(self._folder)
        self._safe = dict(self._ends)
        return Written(list(self._pairs), self._longest, dict(self._ends))

    def close(self) -> None:
        """Write what is left, then the index, without which the folder does not count."""
        self.save()
        index = {"dtype": self._dtype.name, "pairs": self._pairs, "longest": self._longest}
        storage.write_file(self._folder / "index.json", json.dumps(index).encode())

    def _append(self, suffix: str, content: bytes) -> None:
        self._new[suffix] += content
        self._ends[suffix] += len(content)
        if len(self._new[suffix]) >= WRITTEN_AT_A_TIME:
            self._write(suffix)

    def _write(self, suffix: str) -> None:
        with storage.disk.open(self._file(suffix), "ab") as file:
            storage.append(file, self._new[suffix])
        self._new[suffix].clear()

    def _file(self, suffix: str) -> Path:
        return self._folder / f"{len(self._pairs) - 1:05d}{suffix}"

    def _cut_off(self) -> None:
        stems = {f"{shard:05d}" for shard in range(len(self._pairs))}
        for path in self._folder.iterdir():
            if path.stem not in stems:  # a later shard, or the index
                storage.disk.unlink(path)
        for suffix, end in self._ends.items():
            with storage.disk.open(self._file(suffix), "ab") as file:
                if file.tell() < end:
                    raise _damaged(self._folder, f"{self._file(suffix).name} has lost its end")
                storage.disk.truncate(file, end)


class Shards:
    """Read any pair of the corpus by its number, and all lengths at once. Only the lengths are held in memory."""

    def __init__(self, folder: Path) -> None:
        try:
            index = json.loads((folder / "index.json").read_text())
            pairs, ids = list(map(int, index["pairs"])), ID_TYPES[index["dtype"]]
            stems = [folder / f"{number:05d}" for number in range(len(pairs))]
            self._ids = [_map(stem.with_suffix(IDS), ids) for stem in stems]
            self._text = [_map(stem.with_suffix(TEXT), np.dtype(np.uint8)) for stem in stems]
            self._tables = [_map(stem.with_suffix(TABLE), PLACE).reshape(-1, COLUMNS) for stem in stems]
            self._first = [0, *itertools.accumulate(pairs)]
            sizes = [stem.with_suffix(LENGTHS).stat().st_size for stem in stems]
            # Before so much room is made for them.
            if sizes != [count * 2 * LENGTH.itemsize for count in pairs] or list(map(len, self._tables)) != pairs:
                raise ValueError("there are not as many pairs as there should be")
            length = np.dtype(np.uint16 if int(index["longest"]) <= SHORT else np.int32)
            self.source_lengths, self.target_lengths = (np.empty(self._first[-1], length) for _ in range(2))
            for stem, (first, last) in zip(stems, itertools.pairwise(self._first), strict=True):
                lengths_N2 = np.fromfile(stem.with_suffix(LENGTHS), LENGTH).reshape(last - first, 2)
                self.source_lengths[first:last], self.target_lengths[first:last] = lengths_N2.T
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise _damaged(folder, error) from None

    def __len__(self) -> int:
        return len(self.source_lengths)

    def line(self, number: int) -> int:
        """Where in the corpus a pair stands."""
        shard, row = self._place(number)
        return int(self._tables[shard][row, 0])

    def ids(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Source and target ids of a pair, without begin and end."""
        shard, row = self._place(number)
        start = int(self._tables[shard][row, 1])
        middle = start + int(self.source_lengths[number])
        ids = self._ids[shard]
        return ids[start:middle], ids[middle : middle + int(self.target_lengths[number])]

    def text(self, number: int) -> Pair:
        """The pair as it was read; only where the shards were told to keep it."""
        shard, row = self._place(number)
        # It ends where the next one begins; the last one, where all do.
        start, end = [*self._tables[shard][row : row + 2, 2].tolist(), len(self._text[shard])][:2]
        source, _, target = self._text[shard][start:end].tobytes().decode().partition("\0")
        return Pair(source, target)

    def _place(self, number: int) -> tuple[int, int]:
        shard = bisect_right(self._first, number) - 1
        return shard, number - self._first[shard]


class Chosen(Shards):
    """Some pairs of other shards, under numbers of their own: 0 is the first one chosen."""

    def __init__(self, shards: Shards, numbers: npt.NDArray[np.int64]) -> None:
        self._shards, self._numbers = shards, numbers
        self.source_lengths, self.target_lengths = shards.source_lengths[numbers], shards.target_lengths[numbers]

    def line(self, number: int) -> int:
        return self._shards.line(int(self._numbers[number]))

    def ids(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        return self._shards.ids(int(self._numbers[number]))

    def text(self, number: int) -> Pair:
        return self._shards.text(int(self._numbers[number]))


def _damaged(folder: Path, why: object) -> FolderError:
    return FolderError(f"The tokenised text in {folder} is damaged ({why}). Delete that folder and try again.")


def _map(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    # An empty file cannot be mapped. As a plain array, a mapped file is cut several times as fast.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r")) if path.stat().st_size else np.empty(0, dtype)


def _starts(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    starts: npt.NDArray[np.int64] = np.cumsum(lengths, dtype=np.int64) - lengths
    return starts
