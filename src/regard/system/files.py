"""Files that anybody may have written: regular ones alone, of bounded size, and JSON that cannot take more than it gives.

A pipe would keep whoever reads it waiting, a device has no end, and JSON takes up to fifty times its size once it is read.
What is wrong with a file is a ValueError in words that go on after "cannot be read"; whoever asked says what to do.
"""

import json
import os
import stat
import struct
from pathlib import Path
from typing import Any

LARGEST = 32 << 20
"""Bytes of a file that is read as a whole: vocabularies of half a million words take ten million."""
_LARGEST_HEADER = 8 << 20  # of tensors' names and shapes; a model of 500 layers has half a million bytes of them
_MOST_VALUES = 2_000_000
_DEEPEST = 32


def regular(path: Path, most: int | None = None) -> Path:
    """The path itself, if a regular file is there, of at most so many bytes."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is a folder, a pipe or a device, and no file")
    if most is not None and about.st_size > most:
        raise ValueError(f"it has {about.st_size:,} bytes, more than the {most:,} that are read")
    return path


def content(path: Path, most: int = LARGEST) -> bytes:
    """All of a file."""
    with open(regular(path, most), "rb") as file:
        read = file.read(most + 1)
    if len(read) > most:  # some files of the system are larger than they say
        raise ValueError(f"it has more than the {most:,} bytes that are read")
    return read


def tensors(path: Path) -> Path:
    """The path itself, if it may be a safetensors file: what reads the header takes many times its size."""
    with open(regular(path), "rb") as file:
        begin = file.read(8)
    if len(begin) == 8 and (length := struct.unpack("<Q", begin)[0]) > _LARGEST_HEADER:
        raise ValueError(f"its header has {length:,} bytes, more than the {_LARGEST_HEADER:,} that are read")
    return path


def table(path: Path, most: int = LARGEST) -> dict[str, Any]:
    """A JSON file that holds one table."""
    found = parsed(content(path, most))
    if not isinstance(found, dict):
        raise ValueError("it is not a table")
    return found


def parsed(written: bytes, values: int = _MOST_VALUES) -> Any:
    """JSON of so many values at most, nested a little, all of whose texts are text."""
    if sum(map(written.count, (b",", b"[", b"{"))) > values:
        raise ValueError(f"it has more than the {values:,} values that are read")
    try:
        found = json.loads(written.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [found]
    for _ in range(_DEEPEST):
        level = [value for held in level for value in _held(held) if isinstance(value, dict | list)]
        if not level:
            break
    else:
        raise ValueError("it is nested too deeply")
    if b"\\u" in written and _half(found):
        raise ValueError("it holds half a character, which is no text")
    return found


def _held(found: Any) -> Any:
    return found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()


def _half(found: Any) -> bool:
    """Whether JSON escapes gave one half of a pair of surrogates without the other."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def leads_out(path: Path, folder: Path) -> bool:
    """Whether what is written there would be outside the folder, because a link leads out."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
