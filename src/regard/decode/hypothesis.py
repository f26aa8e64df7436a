"""What a search finds: a text with its score; and how long it may be. The same for every engine; no torch."""

from typing import NamedTuple

from regard.config import DecodeConfig

# Tokens a text may have beyond its source's, if no limit is set (Vaswani et al. 2017, section 6.1).
_ROOM = 50


class Hypothesis(NamedTuple):
    """One text that a search wrote."""

    ids: list[int]
    """Without begin and end."""
    score: float
    """What searches compare: the log-probability, normalised for length."""
    log_probability: float
    """Natural logarithm of the model's own probability of these ids and the end."""


def length_penalty(length: int, alpha: float) -> float:
    """What a log-probability is divided by (Wu et al. 2016, eq. 14); `length` counts the end token.

    >>> length_penalty(13, alpha=1.0)
    3.0
    """
    return float(((5 + length) / 6) ** alpha)


def most_tokens(config: DecodeConfig, source: int, prefix: int = 0, places: int | None = None) -> int:
    """Tokens a text may have, the end not counted, for a source and after a prefix of so many.

    `places` are those the model has for the text; None = any number. A prefix stands above them, and min_length above
    all.

    >>> most_tokens(DecodeConfig(), source=10), most_tokens(DecodeConfig(), source=10, places=20)
    (60, 20)
    """
    limit = config.max_length or source + _ROOM
    if places is not None:
        limit = max(0, min(limit, places))
    return max(limit, prefix, config.min_length)
