"""Attention in a terminal: a heat map of cells two columns wide, or one line for each word.

Words of any script keep their columns; control characters in them do nothing.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import TextIO

import numpy as np

from regard.interpret.geometry import LEAST
from regard.interpret.trace import KINDS, Weights
from regard.interpret.views import Shown

FORMS = ("24bit", "256", "shades", "digits")
"""How a cell can show its weight, the finest first."""
SHADES = " ░▒▓█"
# From the background to the colour of the weight one: on light, on dark.
RAMPS = {False: ((255, 255, 255), (11, 92, 173)), True: ((28, 30, 34), (125, 180, 245))}
# Of 256 colours the last are greys, from black to white.
GREYS = {False: (255, 232), True: (234, 255)}
LISTED = 3
"""Words that each line of the compact form names."""
_NAMES = 16  # columns for the words at the left of a heat map, at most
_APART = "\u200e"  # invisible; keeps words read from the right from drawing the numbers beside them along
_SPELLED = {"←": "<-", "→": "->", "…": "...", "“": '"', "”": '"', "⏎": "\\n", "⇥": "\\t", "␠": "_", "∅": '""'}
_RESET = "\x1b[0m"


def compact(shown: Shown, encoding: str = "utf-8") -> str:
    """One line for each word, such as: bench ← Bank .71 einer .12 auf .05

    All of it can be written in `encoding`.
    """
    queries = [_printable(label.text, encoding) for label in shown.queries]
    keys = [_printable(label.text, encoding) for label in shown.keys]
    widest = max(map(columns, queries), default=0)
    lines = _heading(shown, encoding)
    for query, weights_K in zip(queries, shown.weights_QK, strict=True):
        order = np.argsort(-weights_K, kind="stable")[:LISTED]
        parts = [f"{keys[k]} {_short(weights_K[k])}" for k in order if weights_K[k] >= LEAST]
        lines.append(f"{_pad(query, widest)} {_printable('←', encoding)} {' '.join(parts)}")
    return "\n".join(lines)


def heat_map(shown: Shown, *, colours: str, width: int, dark: bool = True, encoding: str = "utf-8") -> str:
    """A row of cells for each word that looks, a cell for each word looked at; these are numbered, with a key below.

    `colours` is one of FORMS and `width` the terminal's: a map that does not fit becomes the compact form, and says so.
    """
    queries = [_printable(label.text, encoding, _NAMES) for label in shown.queries]
    keys = [_printable(label.text, encoding) for label in shown.keys]
    margin = max(map(columns, queries), default=0)
    needed = margin + 1 + 2 * len(keys)
    if needed > width:
        listed = compact(shown, encoding)
        return f"The heat map needs {needed} columns, the terminal has {width}: here are the largest weights.\n{listed}"
    lines = [*_heading(shown, encoding), *_numbers(len(keys), margin)]
    for query, weights_K in zip(queries, shown.weights_QK, strict=True):
        lines.append(f"{_pad(query, margin)} {cells(weights_K, colours, dark=dark)}")
    lines += ["", *_key(keys, width), _scale(margin, colours, dark=dark)]
    return "\n".join(lines)


def cells(weights_K: Weights, colours: str, *, dark: bool) -> str:
    """Weights as cells, two columns each. What is nothing keeps the terminal's own background."""
    if colours == "shades":
        return "".join(2 * SHADES[round(4 * weight)] for weight in weights_K.tolist())
    if colours == "digits":
        return "".join(f"{round(9 * weight) or '.':>2}" for weight in weights_K.tolist())
    return "".join(_coloured(weight, colours, dark=dark) for weight in weights_K.tolist())


def _coloured(weight: float, colours: str, *, dark: bool) -> str:
    if weight < LEAST:
        return "  "
    if colours == "256":
        code = f"5;{GREYS[dark][0] + round((GREYS[dark][1] - GREYS[dark][0]) * weight)}"
    else:
        ends = zip(*RAMPS[dark], strict=True)
        code = "2;" + ";".join(str(round(first + (last - first) * weight)) for first, last in ends)
    return f"\x1b[48;{code}m  {_RESET}"


def best_colours(stream: TextIO, environ: Mapping[str, str]) -> str:
    """The finest of FORMS that a stream can show.

    NO_COLOR forbids colours; FORCE_COLOR asks for them even where the stream is no terminal (3: all of them; 0: none).
    """
    plain = "shades" if can_write(SHADES, stream.encoding or "ascii") else "digits"
    forced, term = environ.get("FORCE_COLOR", ""), environ.get("TERM", "")
    if environ.get("NO_COLOR") or forced in ("0", "false"):
        return plain
    if not forced and (not stream.isatty() or term in ("", "dumb")):
        return plain
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct") or forced == "3":
        return "24bit"
    return "256" if forced or "256color" in term else plain


def is_dark(environ: Mapping[str, str]) -> bool:
    """Whether the terminal's background is; where it does not tell, most are."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background not in ("7", *map(str, range(9, 16)))


def can_write(text: str, encoding: str) -> bool:
    """Whether an encoding has these characters."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def columns(text: str) -> int:
    """How many a terminal gives a text: two for a wide character, none for a mark above or below another.

    >>> columns("Bank"), columns("長椅"), columns("e\\u0301")
    (4, 4, 1)
    """
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    if (
        unicodedata.category(letter) in ("Mn", "Me", "Cf") or "\u1160" <= letter <= "\u11ff"
    ):  # parts of a Korean syllable
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _printable(text: str, encoding: str, width: int = 0) -> str:
    """A text that does nothing to the terminal, in this encoding and, if `width` is given, no wider."""
    text = "".join("�" if unicodedata.category(letter) in ("Cc", "Cs") else letter for letter in text)
    # Of the invisible characters only those that join letters may stay: others could turn the whole line round.
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf" or letter in "\u200c\u200d")
    if not can_write(text, encoding):
        text = "".join(_SPELLED.get(letter, letter) for letter in text).encode(encoding, "replace").decode(encoding)
    text = _cut(text, width) if width else text
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text) and can_write(_APART, encoding):
        return f"{_APART}{text}{_APART}"
    return text


def _pad(text: str, width: int) -> str:
    return " " * (width - columns(text)) + text


def _cut(text: str, width: int) -> str:
    """No wider than this."""
    if columns(text) <= width:
        return text
    while columns(text) > width - 2:
        text = text[:-1]
    return text + ".."


def _short(weight: float) -> str:
    """
    >>> _short(0.714), _short(1.0)
    ('.71', '1.00')
    """
    return f"{weight:.2f}".removeprefix("0")


def _heading(shown: Shown, encoding: str) -> list[str]:
    reader = ", for each word written" if shown.row == "predicted" else ""
    model = f"{shown.trace.facts.name}, {shown.trace.label(shown.map)}"
    lines = model, f"{KINDS[shown.map.kind]}, {shown.name}{reader}"
    return [_printable(line, encoding) for line in lines]


def _numbers(count: int, margin: int) -> list[str]:
    """The numbers of the keys above their cells, digits below each other: two columns do not hold 10 and 11 apart."""
    size = len(str(count))
    numbers = [str(number).rjust(size) for number in range(1, count + 1)]
    return [" " * (margin + 1) + "".join(f" {number[place]}" for number in numbers) for place in range(size)]


def _key(words: list[str], width: int) -> list[str]:
    """Which number is which word, in as many columns as fit."""
    entries = [f"{number:>3} {word}" for number, word in enumerate(words, 1)]
    wide = max(map(columns, entries), default=0) + 2
    across = max(1, width // wide)
    lines = [entries[first : first + across] for first in range(0, len(entries), across)]
    return ["".join(entry + " " * (wide - columns(entry)) for entry in line).rstrip() for line in lines]


def _scale(margin: int, colours: str, *, dark: bool) -> str:
    """Cells of known weight."""
    weights = np.array([0.05, 0.25, 0.5, 0.75, 1], np.float32)
    samples = [f"{weight:g} {cells(weights[n : n + 1], colours, dark=dark)}" for n, weight in enumerate(weights)]
    return re.sub(r" +$", "", f"weight: {'  '.join(samples)}")
