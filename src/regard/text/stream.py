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
from regard.text.tokenizer import BEGIN, END

WRITTEN_AT_A_TIME = 1 << 20


class StreamWriter:
    """Writes documents one after the other, each opened by BEGIN and closed by END."""

    def __init__(self, folder: Path, vocabulary: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._dtype = np.dtype(np.uint16 if vocabulary <= 2**16 else np.uint32)
        self._ids = array("H" if self._dtype.itemsize == 2 else "I")
        self._file = (folder / "ids").open("wb")
        self._open = False
        self._bytes = 0

    def add(self, ids: Sequence[int], *, size: int, closes: bool) -> None:
        """One more line, of `size` bytes; the last one of its document closes it."""
        if not self._open:
            self._ids.append(BEGIN)
            self._open = True
        self._ids.extend(ids)
        self._bytes += size
        if closes:
            self._ids.append(END)
            self._open = False
        if len(self._ids) >= WRITTEN_AT_A_TIME:
            self._write()

    def close(self) -> None:
        """Write what is left, then the index, without which the folder does not count."""
        if self._open:
            self.add([], size=0, closes=True)
        self._write()
        self._file.close()
        index = {"dtype": self._dtype.name, "bytes": self._bytes}
        (self._folder / "index.json").write_text(json.dumps(index))

    def _write(self) -> None:
        self._ids.tofile(self._file)
        del self._ids[:]


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
            return cls(np.memmap(folder / "ids", dtype=np.dtype(index["dtype"]), mode="r"), int(index["bytes"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FolderError(
                f"The tokenised text in {folder} is damaged ({error}). Delete that folder and try again."
            ) from None

    def __len__(self) -> int:
        return len(self.ids)
