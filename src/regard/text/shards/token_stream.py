"""Running text as one long row of ids on disk, memory-mapped: a text larger than memory costs nothing."""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import FolderError
from regard.system import storage
from regard.text.shards.pair_shards import ID_TYPES
from regard.text.tokenizers.tokenizer import BEGIN, END

WRITTEN_AT_A_TIME = 1 << 20


@dataclass
class Appended:
    """What is safe on disk, ready for JSON."""

    size: int = 0
    """Of the file of ids, in bytes."""
    bytes: int = 0
    """Of the text."""
    open: bool = False
    """Whether a document has begun and not ended."""


class StreamWriter:
    """Writes documents one after the other, each opened by BEGIN and closed by END.

    It goes on after what an earlier writer had `appended`; whatever that one wrote later is cut off.
    """

    def __init__(self, folder: Path, vocabulary: int, appended: Appended | None = None) -> None:
        storage.make_folder(folder)
        storage.sweep(folder)
        self._folder = folder
        self._dtype = np.dtype(np.uint16 if vocabulary <= 2**16 else np.uint32)
        self._ids = array("H" if self._dtype.itemsize == 2 else "I")
        self._at = appended or Appended()
        with storage.disk.open(self._file, "ab") as file:
            if file.tell() < self._at.size:
                raise _damaged(folder, "its ids have lost their end")
            storage.disk.truncate(file, self._at.size)

    def add(self, ids: Sequence[int], *, size: int, closes: bool) -> None:
        """One more line, of `size` bytes; the last one of its document closes it."""
        if not self._at.open:
            self._ids.append(BEGIN)
            self._at.open = True
        self._ids.extend(ids)
        self._at.bytes += size
        if closes:
            self._ids.append(END)
            self._at.open = False
        if len(self._ids) >= WRITTEN_AT_A_TIME:
            self._write()

    def end(self) -> None:
        """End the document here, if one is open."""
        if self._at.open:
            self.add([], size=0, closes=True)

    def save(self) -> Appended:
        """Wait until all that was added is on the disk."""
        self._write()
        storage.sync_file(self._file)
        storage.sync_folder(self._folder)
        return self._at

    def close(self) -> None:
        """Write what is left, then the index, without which the folder does not count."""
        self.end()
        self.save()
        index = {"dtype": self._dtype.name, "bytes": self._at.bytes}
        storage.write_file(self._folder / "index.json", json.dumps(index).encode())

    def _write(self) -> None:
        with storage.disk.open(self._file, "ab") as file:
            storage.append(file, memoryview(self._ids))
            self._at.size = file.tell()
        del self._ids[:]

    @property
    def _file(self) -> Path:
        return self._folder / "ids"


@dataclass(frozen=True)
class Stream:
    """All ids of a text."""

    ids: npt.NDArray[Any]
    bytes: int
    """Of the text itself, before it was cut."""

    @classmethod
    def open(cls, folder: Path) -> "Stream":
        """What a StreamWriter wrote, memory-mapped."""
        try:
            index = json.loads((folder / "index.json").read_text())
            return cls(np.memmap(folder / "ids", dtype=ID_TYPES[index["dtype"]], mode="r"), int(index["bytes"]))
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise _damaged(folder, error) from None

    def __len__(self) -> int:
        return len(self.ids)


def _damaged(folder: Path, why: object) -> FolderError:
    return FolderError(f"The tokenised text in {folder} is damaged ({why}). Delete that folder and try again.")
