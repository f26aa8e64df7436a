"""A model folder's weights as float32 arrays, checked before they get to a library that would not look."""

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from regard.errors import FolderError, TrainingError
from regard.fast.weight_shapes import Shapes
from regard.folder.layout import check_type

Weights = Mapping[str, NDArray[np.generic]]


def checked(path: Path, shapes: Shapes) -> Weights:
    """The weights in a file, if they are those of the model, in number, shape and type."""
    try:
        with safe_open(path, framework="np") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from None
    for name in sorted(set(shapes) | set(found)):
        if found.get(name) != shapes.get(name):
            raise FolderError(
                f"{path} does not fit its config.json: {name!r} is {found.get(name, 'missing')}, "
                f"not {shapes.get(name, 'there')}. Copy the folder again."
            )
    weights = read(path, shapes)
    if not all(bool(np.isfinite(weight).all()) for weight in weights.values()):
        raise TrainingError(
            f"{path} holds weights that are not numbers (NaN), so nothing can be written: its training has diverged, or "
            "it is damaged. Use an earlier checkpoint, or train again with a lower train.rate."
        )
    return weights


def read(path: Path, names: Iterable[str]) -> Weights:
    """Some weights of a file, of the types that a model may have."""
    try:
        with safe_open(path, framework="np") as file:
            kinds = {name: _plain(file.get_slice(name).get_dtype()) for name in names}
            for name, found in kinds.items():
                check_type(path, name, found)
            halves = [name for name, found in kinds.items() if found == "bfloat16"]
            weights = {name: file.get_tensor(name).astype(np.float32, copy=False) for name in kinds.keys() - halves}
        return {**weights, **_bfloat16(path, halves)} if halves else weights
    except (OSError, SafetensorError, ValueError) as error:
        raise _unreadable(path, error) from None


def _bfloat16(path: Path, names: Iterable[str]) -> dict[str, NDArray[np.generic]]:
    """Numpy has no such type: it is the upper half of a float32."""
    found: dict[str, NDArray[np.generic]] = {}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header: dict[str, Any] = json.loads(file.read(length))
        for name in names:
            begin, end = header[name]["data_offsets"]
            file.seek(8 + length + begin)
            upper = np.frombuffer(file.read(end - begin), "<u2").astype(np.uint32)
            found[name] = (upper << 16).view(np.float32).reshape(header[name]["shape"])
    return found


def _plain(code: str) -> str:
    """The name of a type, from safetensors' code for it.

    >>> _plain("BF16"), _plain("I64"), _plain("F8_E4M3")
    ('bfloat16', 'int64', 'float8_e4m3')
    """
    kinds = {"BF": "bfloat", "F": "float", "I": "int", "U": "uint", "C": "complex"}
    match = re.fullmatch(r"(BF|[FIUC])(\d.*)", code)
    return kinds[match[1]] + match[2].lower() if match else code.lower()


def _unreadable(path: Path, error: Exception) -> FolderError:
    return FolderError(f"{path} cannot be read as weights ({error}). Copy the folder again.")
