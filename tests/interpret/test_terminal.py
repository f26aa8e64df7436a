"""Attention in a terminal: cells that can be read back as weights, columns that no script breaks."""

import io
import re

import numpy as np
import pytest

from regard.interpret.terminal import RAMPS, best_colours, cells, columns, compact, heat_map, is_dark
from regard.interpret.trace import Weights
from regard.interpret.views import show
from tests.interpret.test_figures import TRACE, of_words

CELL = re.compile(r"\x1b\[48;2;(\d+);(\d+);(\d+)m  \x1b\[0m|  ")


def mapped(text: str, margin: int) -> list[str]:
    """The cells of a heat map, line by line: what stands right of the margin between the numbers and the key."""
    lines = text.split("\n\n")[0].splitlines()
    rows = len(show(TRACE, "cross").queries)
    found = []
    for line in lines[-rows:]:
        name = next(n for n in range(len(line) + 1) if columns(line[:n]) == margin)
        found.append(line[name + 1 :])
    return found


def read_back(line: str, *, dark: bool) -> list[float]:
    """Weights from 24-bit colours."""
    first, last = np.array(RAMPS[dark], float)
    colours = [cell.groups() for cell in CELL.finditer(line)]
    return [
        0.0 if colour[0] is None else float(((np.array(colour, float) - first) / (last - first)).mean())
        for colour in colours
    ]


@pytest.mark.parametrize("dark", [True, False])
def test_colours_can_be_read_back_as_weights(dark: bool) -> None:
    weights_QK = show(TRACE, "cross", 1, 2).weights_QK
    text = heat_map(show(TRACE, "cross", 1, 2), colours="24bit", width=80, dark=dark)
    found = np.array([read_back(line, dark=dark) for line in mapped(text, 5)])
    assert found.shape == weights_QK.shape
    # Half a step of each of three colours; and what is below a hundredth is left blank.
    assert found == pytest.approx(np.where(weights_QK < 0.01, 0, weights_QK), abs=0.006)
    assert not np.allclose(np.roll(found, 1, axis=1), weights_QK, atol=0.1)


def test_digits_are_ninths() -> None:
    weights_QK = show(TRACE, "cross", 1, 2).weights_QK
    text = heat_map(show(TRACE, "cross", 1, 2), colours="digits", width=80)
    found = [[int(cell) for cell in line.replace(".", "0").split()] for line in mapped(text, 5)]
    assert found == [[round(9 * w) for w in weights_K] for weights_K in weights_QK.tolist()]


def test_shades_and_greys_darken_or_lighten_with_the_weight() -> None:
    weights_K: Weights = np.linspace(0, 1, 41, dtype=np.float32)
    assert cells(weights_K[::10], "shades", dark=True) == "  ░░▒▒▓▓██"
    for dark in (True, False):
        greys = [int(grey) for grey in re.findall(r"48;5;(\d+)m", cells(weights_K, "256", dark=dark))]
        assert greys == sorted(greys, reverse=not dark) and set(greys) <= set(range(232, 256))
        assert len(greys) == 40, "nothing keeps the terminal's own background"


def test_each_number_stands_above_its_cells_and_in_the_key() -> None:
    trace = of_words(*(f"w{n}" for n in range(1, 121)))
    text = heat_map(show(trace), colours="digits", width=260)
    lines = text.splitlines()
    numbers = ["".join(line[5 + 2 * n + 1] for line in lines[2:5]).strip() for n in range(120)]
    assert numbers == [str(n) for n in range(1, 121)]
    key = text.split("\n\n")[1]
    assert re.findall(r"(\d+) w(\d+)", key) == [(str(n), str(n)) for n in range(1, 121)]
    assert max(map(columns, lines)) <= 260


@pytest.mark.parametrize("form", ["24bit", "256", "shades", "digits"])
def test_no_script_breaks_the_columns(form: str) -> None:
    trace = of_words("長椅子", "e\u0301le\u0300ve", "שלום", "नमस्ते", "a\u200db", "word", "\u202eevil", "x" * 40, "한국")
    text = re.sub(r"\x1b\[[\d;]*m", "", heat_map(show(trace), colours=form, width=80))
    rows = text.split("\n\n")[0].splitlines()[3:]
    assert len(rows) == 9 and {columns(row) for row in rows} == {16 + 1 + 2 * 9}
    assert "\u202e" not in text, "a word must not turn the line round"
    assert [columns(word) for word in ("長椅", "e\u0301", "a", "한", "\u1112\u1161\u11ab")] == [4, 1, 1, 2, 2]


def test_words_cannot_command_the_terminal() -> None:
    trace = of_words("\x1b[2Jgone", "bell\x07", "\ud800")
    for text in (compact(show(trace)), heat_map(show(trace), colours="digits", width=80)):
        assert not set(text) & {"\x1b", "\x07", "\ud800"} and "�[2Jgone" in text
        text.encode()


def test_a_map_that_is_too_wide_becomes_lines_and_says_so() -> None:
    needed = 5 + 1 + 2 * 9
    wide = heat_map(show(TRACE, "cross"), colours="digits", width=needed)
    narrow = heat_map(show(TRACE, "cross"), colours="digits", width=needed - 1)
    assert "needs" not in wide
    assert (
        narrow
        == f"The heat map needs {needed} columns, the terminal has {needed - 1}: here are the largest weights.\n"
        + compact(show(TRACE, "cross"))
    )


def test_the_compact_form_names_the_three_largest() -> None:
    shown = show(TRACE, "cross", 1, 2)
    lines = compact(shown).splitlines()
    assert lines[:2] == [
        "transformer, layer 0 → 1 (decoder layer 1 of 1)",
        "attention to the source, head 2, for each word written",
    ]
    for query, weights_K, line in zip(shown.queries, shown.weights_QK, lines[2:], strict=True):
        largest = [k for k in np.argsort(-weights_K)[:3] if weights_K[k] >= 0.01]
        named = [f"{shown.keys[k].text} {f'{weights_K[k]:.2f}'.removeprefix('0')}" for k in largest]
        assert line.replace("\u200e", "").strip() == f"{query.text} ← {' '.join(named)}"
    assert len({columns(line.split("←")[0]) for line in lines[2:]}) == 1


def test_where_there_is_no_unicode_it_speaks_ascii() -> None:
    for encoding in ("ascii", "latin-1", "cp437"):
        text = compact(show(TRACE, "encoder"), encoding)
        text.encode(encoding)
        assert "Bank" in text and "<-" in text
    heat_map(show(TRACE, "encoder"), colours="digits", width=99, encoding="ascii").encode("ascii")
    assert "->" in compact(show(TRACE), "ascii")


class Stream(io.StringIO):
    """Something to write to."""

    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal, self._encoding = terminal, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


TRUE = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


@pytest.mark.parametrize(
    ("terminal", "environ", "best"),
    [
        (True, TRUE, "24bit"),
        (True, {"TERM": "xterm-direct"}, "24bit"),
        (True, {"TERM": "screen-256color"}, "256"),
        (True, {"TERM": "vt100"}, "shades"),
        (True, {"TERM": "dumb", "COLORTERM": "truecolor"}, "shades"),
        (True, {}, "shades"),
        (False, TRUE, "shades"),
        (False, {**TRUE, "FORCE_COLOR": "1"}, "24bit"),
        (False, {"FORCE_COLOR": "3"}, "24bit"),
        (False, {"FORCE_COLOR": "1", "TERM": "dumb"}, "256"),
        (True, {**TRUE, "FORCE_COLOR": "0"}, "shades"),
        (True, {**TRUE, "NO_COLOR": "1"}, "shades"),
        (True, {**TRUE, "NO_COLOR": ""}, "24bit"),
        (True, {**TRUE, "NO_COLOR": "1", "FORCE_COLOR": "3"}, "shades"),
    ],
)
def test_the_finest_form_that_the_stream_can_show(terminal: bool, environ: dict[str, str], best: str) -> None:
    assert best_colours(Stream(terminal), environ) == best
    plain = "digits" if best == "shades" else best
    assert best_colours(Stream(terminal, "ascii"), environ) == plain, "without Unicode there are no shades"


def test_the_background_is_dark_unless_the_terminal_says_otherwise() -> None:
    told = {"15;0": True, "0;15": False, "0;default;15": False, "0;7": False, "7;8": True, "": True}
    assert {text: is_dark({"COLORFGBG": text}) for text in told} == told and is_dark({})
