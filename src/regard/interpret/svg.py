"""The Heads picture as SVG: real text, no font from elsewhere, the same lines as on the page.

Colours are attributes, so that any program can print it; a style turns them dark where the reader prefers that.
"""

import re
import unicodedata
from collections.abc import Sequence
from html import escape

from regard.errors import TraceError
from regard.interpret.geometry import KEYS, QUERIES, ROW, THICKEST, TOP, WIDTH, Line, centre, lines
from regard.interpret.trace import KINDS
from regard.interpret.views import Label, Shown

FACE = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif"
SIZE = 15
# Small letters that fit beside the lines at this size; longer words are set smaller.
_FITTING = 20
SAMPLES = (0.1, 0.25, 0.5, 1.0)
"""Weights of the lines that explain how wide a line is."""
NUMBERED = 3
"""Weights of a chosen word that are printed, the largest first."""
HUES = 8
# By name, on light paper and on dark: those of the pages.
COLOURS = {
    "paper": ("#fbfaf7", "#14171b"),
    "ink": ("#1d2126", "#e7e5df"),
    "quiet": ("#59616b", "#a0a7b0"),
    "hue-1": ("#b86e00", "#eda93b"),
    "hue-2": ("#c2410c", "#ff8552"),
    "hue-3": ("#a23b82", "#e28fc3"),
    "hue-4": ("#00795a", "#3ccb9f"),
    "hue-5": ("#0b5cad", "#6ea8ff"),
    "hue-6": ("#2b8fc6", "#8fd6f7"),
    "hue-7": ("#6d5bd0", "#b3a5ff"),
    "hue-8": ("#8a6d3b", "#cfae77"),
}
THEMES = ("auto", "light", "dark")


def heads_figure(shown: Shown, word: str = "", theme: str = "auto") -> str:
    """Two columns of words, and lines from each word to those it looks at; with `word`, from this one only.

    `theme` is "light", "dark", or "auto": as the reader has set it.
    """
    if theme not in THEMES:
        raise TraceError(f"There is no theme {theme!r}. Choose one of: {', '.join(THEMES)}.")
    trace = shown.trace
    chosen = _find(shown, word) if word else None
    drawn = lines(shown.weights_QK, chosen)
    name = f"{KINDS[shown.map.kind]}, {shown.name}"
    title = name if chosen is None else f"{name}, “{shown.queries[chosen].text}”"
    caption = f"{trace.facts.name}, {trace.label(shown.map)}. Width of a line: its weight."
    printed = {line.key: line.weight for line in drawn[:NUMBERED]} if chosen is not None else {}
    height = round(TOP + ROW * max(len(shown.queries), len(shown.keys)) + 64)
    reader = "when writing" if shown.row == "predicted" else "each word"
    hue = "ink" if shown.head is None else f"hue-{shown.head % HUES + 1}"
    body = [
        f"<title>{_text(title)}</title>",
        f"<desc>{_text(' '.join([caption, *_told(shown, drawn, chosen)]))}</desc>",
        *([_style()] if theme == "auto" else []),
        f'<rect width="{WIDTH}" height="{height}" rx="8"{_paint("fill", "paper", theme)}/>',
        _line_of_text(title, 30, SIZE, "ink", theme, "600"),
        *(_side(text, at, theme) for text, at in ((reader, QUERIES), ("looks at", KEYS))),
        *(_line(line, hue, theme) for line in drawn),
        *(_word(label, QUERIES, n, theme, strong=n == chosen) for n, label in enumerate(shown.queries)),
        *(_word(label, KEYS, n, theme, printed.get(n)) for n, label in enumerate(shown.keys)),
        *_legend(height - 42, theme),
        _line_of_text(caption, height - 14, 11, "quiet", theme),
    ]
    return "\n".join([_opening(height), *body, "</svg>\n"])


def _find(shown: Shown, word: str) -> int:
    """The number of the label that a word is part of."""
    token = shown.trace.rows[shown.row].find(word)
    return next(number for number, label in enumerate(shown.queries) if token in label.tokens)


def _told(shown: Shown, drawn: Sequence[Line], chosen: int | None) -> list[str]:
    """The picture of one word, in words."""
    if chosen is None:
        return []
    parts = [f"{shown.keys[line.key].text} {line.weight:.2f}" for line in drawn[:NUMBERED]]
    return [f"“{shown.queries[chosen].text}” looks at {', '.join(parts)}."]


def _opening(height: int) -> str:
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="regard-heads" role="img" font-family="{FACE}">'


def _style() -> str:
    rules = [
        f".regard-heads .{way}-{name} {{ {way}: {dark}; }}"
        for name, (_, dark) in COLOURS.items()
        for way in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"


def _paint(way: str, name: str, theme: str) -> str:
    """`way` is "fill" or "stroke"."""
    light, dark = COLOURS[name]
    by_reader = f' class="{way}-{name}"' if theme == "auto" else ""
    return f'{by_reader} {way}="{dark if theme == "dark" else light}"'


def _line(line: Line, hue: str, theme: str) -> str:
    ends = f'x1="{line.x1:g}" y1="{line.y1:g}" x2="{line.x2:g}" y2="{line.y2:g}"'
    of = f'data-q="{line.query}" data-k="{line.key}" data-w="{line.weight:.6f}"'
    return f'<line {ends}{_paint("stroke", hue, theme)} stroke-width="{line.width:.3f}" stroke-opacity="0.8" {of}/>'


def _word(label: Label, x: int, row: int, theme: str, weight: float | None = None, *, strong: bool = False) -> str:
    """Words that look end at their place, others begin there, whichever way they are read."""
    size = SIZE * min(1, _FITTING / max(1, sum(map(_breadth, label.text))))
    anchor = "end" if x == QUERIES else "start"
    parts = [f'x="{x}" y="{centre(row):g}" dy="0.35em" text-anchor="{anchor}" font-size="{size:.4g}"']
    parts += ['font-weight="700"'] if strong else []
    whole = f"<title>{_text(label.title)}</title>" if label.title != label.text else ""
    # Marks in the text, because programs do not agree on where an element of another direction is anchored.
    word = f"\u2067{_text(label.text)}\u2069" if is_right_to_left(label.text) else _text(label.text)
    number = f'<tspan dx="8" font-size="12">{weight:.2f}</tspan>' if weight is not None else ""
    return f"<text {' '.join(parts)}{_paint('fill', 'ink', theme)}>{whole}{word}{number}</text>"


def _breadth(letter: str) -> float:
    """About how wide, in small letters; the font is the reader's, so that nobody here knows."""
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1.5 if letter.isupper() else 1


def _side(text: str, x: int, theme: str) -> str:
    anchor = "end" if x == QUERIES else "start"
    return f'<text x="{x}" y="{TOP - 8}" text-anchor="{anchor}" font-size="11"{_paint("fill", "quiet", theme)}>{text}</text>'


def _legend(y: int, theme: str) -> list[str]:
    """Lines of known weight."""
    first = WIDTH / 2 - 150
    found = [f'<text x="{first:g}" y="{y}" dy="0.35em" font-size="11"{_paint("fill", "quiet", theme)}>weight</text>']
    for number, weight in enumerate(SAMPLES):
        x, width = first + 52 + 66 * number, THICKEST * weight
        bar = f'x="{x:g}" y="{y - width / 2:g}" width="28" height="{width:g}"'
        at = f'x="{x + 34:g}" y="{y}" dy="0.35em" font-size="11"'
        found.append(f'<rect {bar}{_paint("fill", "quiet", theme)} fill-opacity="0.8"/>')
        found.append(f"<text {at}{_paint('fill', 'quiet', theme)}>{weight:g}</text>")
    return found


def _line_of_text(text: str, y: int, size: int, colour: str, theme: str, weight: str = "400") -> str:
    at = f'x="{WIDTH // 2}" y="{y}" text-anchor="middle" font-size="{size}" font-weight="{weight}"'
    return f"<text {at}{_paint('fill', colour, theme)}>{_text(text)}</text>"


def is_right_to_left(text: str) -> bool:
    """By the first letter that has a direction.

    >>> is_right_to_left("«שלום»"), is_right_to_left("7 words")
    (True, False)
    """
    strong = (unicodedata.bidirectional(letter) for letter in text)
    return next((way for way in strong if way in ("L", "R", "AL")), "L") != "L"


def _text(text: str) -> str:
    """As XML can hold it: no control characters, no halves of characters."""
    return escape(re.sub(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text))
