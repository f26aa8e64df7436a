"""CTranslate2's model file: a name, a revision, then every variable with its shape and type, then names shared.

Written here rather than by the library's own converters, because those import torch.
"""

import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Variables = dict[str, NDArray[np.generic]]
_VERSION = 6
_TYPES = ("float32", "int8", "int16", "int32")  # in the library's order


def model_file(name: str, revision: int, variables: Variables, same: Mapping[str, str]) -> bytes:
    """The file's content. `same` gives further names to variables that are used more than once."""
    parts = [struct.pack("I", _VERSION), _text(name), struct.pack("I", revision), struct.pack("I", len(variables))]
    for key, value in sorted(variables.items()):
        parts += [_text(key), struct.pack("B", value.ndim), struct.pack(f"{value.ndim}I", *value.shape)]
        parts += [struct.pack("B", _TYPES.index(str(value.dtype))), struct.pack("I", value.nbytes), value.tobytes()]
    parts.append(struct.pack("I", len(same)))
    for key, target in sorted(same.items()):
        parts += [_text(key), _text(target)]
    return b"".join(parts)


def in_eight_bits(variables: Variables) -> Variables:
    """Every matrix of weights as int8, with a scale for each of its rows."""
    result: Variables = {}
    for key, value in variables.items():
        if not key.endswith("/weight"):
            result[key] = value
            continue
        weight = value.astype(np.float32)
        largest = np.abs(weight).max(axis=1)
        scale = (127 / np.where(largest == 0, 127, largest)).astype(np.float32)
        result[key] = np.rint(weight * scale[:, None]).astype(np.int8)
        result[f"{key}_scale"] = scale
    return result


def _text(text: str) -> bytes:
    content = text.encode() + b"\0"
    return struct.pack("H", len(content)) + content
