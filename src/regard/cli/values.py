"""What an option's value may be: refused in one line, by name, before anything is opened or allocated."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

LARGEST = 2**63 - 1
HUGE = 1e300
MOST_THREADS = 1024
MOST_PROCESSES = 1024


def path(text: str) -> Path:
    """The name of a file or folder. An empty one, as from an unset variable, would be the folder one stands in."""
    if not text or "\0" in text:
        raise ArgumentTypeError(f"{text!r} names no file or folder")
    return Path(text)


def whole(low: int = -LARGEST, high: int = LARGEST) -> Callable[[str], int]:
    """Reads a whole number within limits, both included."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{shown(text)} is not a whole number") from None
        if not low <= number <= high:
            most = f"to {high:,}" if high < LARGEST else "or more"
            raise ArgumentTypeError(f"{shown(text)} is {_too(number < low)}; give {low:,} {most}")
        return number

    return read


def number(low: float = -HUGE, high: float = HUGE) -> Callable[[str], float]:
    """Reads a number within limits, both included; nan and the infinities never are."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ArgumentTypeError(f"{shown(text)} is not a number")
        if not low <= value <= high:
            most = f"to {high:g}" if high < HUGE else "or more"
            raise ArgumentTypeError(f"{shown(text)} is {_too(value < low)}; give {low:g} {most}")
        return value

    return read


def shown(text: str) -> str:
    """A value fit for a message, however long."""
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _too(small: bool) -> str:
    return "too small" if small else "too large"
