"""A sentence and its translation: what every reader yields and every corpus is made of."""

from typing import NamedTuple


class Pair(NamedTuple):
    """One training example: the text to read and the text to write."""

    source: str
    target: str
