"""Many numbers as a short text that a page can unpack: bytes, compressed (zlib), in base64.

Written out as text, a weight takes twenty bytes; so it takes one or two, and pictures of long texts still fit a mail.
"""

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

# Up to so many weights are stored in 16 bits: four decimals are right then.
FINE = 400_000


def pack_weights(weights: npt.NDArray[Any], fine: bool = True) -> dict[str, Any]:
    """Numbers from 0 to 1: w = q / 65535 in 16 bits, or, if not `fine`, w = (q / 255)² in 8.

    The square keeps small weights apart: at a plain 255th, an even look at 600 words would be a look at nothing.
    """
    if fine:
        return _packed("u16", np.rint(np.clip(weights, 0, 1) * 65535).astype("<u2"))
    return _packed("u8s", np.rint(np.sqrt(np.clip(weights, 0, 1)) * 255).astype("u1"))


def pack_numbers(numbers: npt.NDArray[Any]) -> dict[str, Any]:
    """Any numbers, in 65,536 steps from the lowest to the highest."""
    low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)
    steps = np.rint((numbers - low) / ((high - low) or 1) * 65535) - 32768
    return {**_packed("i16", steps.astype("<i2")), "lo": low, "hi": high}


def pack_exactly(numbers: npt.NDArray[Any]) -> dict[str, Any]:
    """Any numbers, as they are in float32."""
    return _packed("f32", numbers.astype("<f4"))


def unpack(packed: dict[str, Any]) -> npt.NDArray[np.float32]:
    """What the page unpacks: the numbers again, but for rounding."""
    kind = {"u16": "<u2", "u8s": "u1", "i16": "<i2", "f32": "<f4"}[packed["e"]]
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(packed["b"])), kind).astype(np.float64)
    if packed["e"] == "u16":
        numbers = numbers / 65535
    elif packed["e"] == "u8s":
        numbers = (numbers / 255) ** 2
    elif packed["e"] == "i16":
        numbers = packed["lo"] + (numbers + 32768) / 65535 * (packed["hi"] - packed["lo"])
    return numbers.reshape(packed["s"]).astype(np.float32)


def _packed(kind: str, numbers: npt.NDArray[Any]) -> dict[str, Any]:
    text = base64.b64encode(zlib.compress(np.ascontiguousarray(numbers).tobytes(), 6)).decode()
    return {"e": kind, "s": list(numbers.shape), "b": text}
