"""Pictures and tables of a trace made by hand: every line as wide as its weight, every word as it was written."""

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from regard.errors import TraceError
from regard.interpret.geometry import lines
from regard.interpret.rollout import rollout
from regard.interpret.svg import COLOURS
from regard.interpret.trace import Facts, Map, Row, Token, Trace, Weights
from regard.interpret.views import labels, merge, show
from regard.pages.page import asset

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>"&\x00\ud800]]>'


def row_of(*words: str) -> Row:
    """A row of words; "ban|k" is one of two pieces, <x> is special."""
    tokens: list[Token] = []
    text = " ".join(word.replace("|", "") for word in words if not re.fullmatch(r"</?\w>", word))
    place = 0
    for number, word in enumerate(words):
        special = bool(re.fullmatch(r"</?\w>", word))
        for part, piece in enumerate(word.split("|")):
            first = place if special else text.index(piece, place)
            place = first if special else first + len(piece)
            tokens.append(Token(piece, first, place, number, special=special, continues=part > 0))
    return Row(text, tuple(tokens))


def some_weights(rng: np.random.Generator, *shape: int, causal: bool = False) -> Weights:
    """Rows of 65,535ths that sum to one, as the page stores them: nothing is lost on the way there."""
    rough = rng.gamma(0.4, size=shape) + 1e-9
    rough = np.tril(rough) if causal else rough
    whole = np.floor(rough / rough.sum(-1, keepdims=True) * 65535)
    np.put_along_axis(
        whole, whole.argmax(-1)[..., None], whole.max(-1, keepdims=True) + 65535 - whole.sum(-1)[..., None], -1
    )
    return (whole / 65535).astype(np.float32)


def a_trace() -> Trace:
    """A translation, with pieces, specials, wide and right-to-left letters; no two weights of a map are alike."""
    source = row_of("Sie", "sitz|t", "auf", "der", "Ba|n|k", "長椅", "שלום", ".", "</s>")
    target = row_of("<s>", "She", "sit|s", "on", "the", "ben|ch", ".")
    written = row_of("She", "sit|s", "on", "the", "ben|ch", ".", "</s>")
    rng = np.random.default_rng(5)
    S, T = len(source.tokens), len(target.tokens)
    maps = [Map("encoder", layer, "source", "source", some_weights(rng, 3, S, S)) for layer in (0, 1)]
    maps.append(Map("decoder", 0, "target", "target", some_weights(rng, 3, T, T, causal=True)))
    maps.append(Map("cross", 0, "target", "source", some_weights(rng, 3, T, S)))
    return Trace(
        Facts("transformer"), {"source": source, "target": target, "predicted": written}, tuple(maps), difference=1e-7
    )


def of_words(*words: str, weights: Weights | None = None) -> Trace:
    """An encoder that looks at these words."""
    row = row_of(*words)
    size = len(row.tokens)
    given = some_weights(np.random.default_rng(1), 2, size, size) if weights is None else weights
    return Trace(Facts("bert"), {"text": row}, (Map("encoder", 0, "text", "text", given),))


TRACE = a_trace()

# ------------------------------------------------------------------------------------------------------ words out of pieces


def test_to_a_word_goes_the_sum_and_from_it_comes_the_mean() -> None:
    row = row_of("ba|d", "day")
    tokens = np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2], [0.1, 0.0, 0.9]])
    words = labels(row)
    assert [label.text for label in words] == ["bad", "day"]
    assert merge(tokens, words, words) == pytest.approx(np.array([[0.65, 0.35], [0.1, 0.9]]))
    assert merge(tokens, labels(row, pieces=True), labels(row, pieces=True)) == pytest.approx(tokens)


@pytest.mark.parametrize("kind", TRACE.kinds)
@pytest.mark.parametrize("head", [None, "rollout", 1, 2, 3])
def test_rows_of_words_sum_to_one(kind: str, head: int | str | None) -> None:
    shown = show(TRACE, kind, head=head)
    assert shown.weights_QK.shape == (len(shown.queries), len(shown.keys))
    assert shown.weights_QK.sum(-1) == pytest.approx(1, abs=1e-5)


def test_a_word_stands_as_in_the_text_and_long_ones_are_shortened() -> None:
    row = Row("Bän-ke", (Token("ban", 0, 3, 0), Token("##ke", 4, 6, 0), Token("\n", 6, 6, 1), Token("x" * 30, 6, 6, 2)))
    assert [label.text for label in labels(row)] == ["Bän-ke", "␠", "x" * 23 + "…"]
    assert labels(row)[2].title == "x" * 30


def test_heads_are_taken_together() -> None:
    token_by_token = TRACE.map("cross", 1).weights_HQK
    assert show(TRACE, head=2, pieces=True).weights_QK == pytest.approx(token_by_token[1])
    assert show(TRACE, pieces=True).weights_QK == pytest.approx(token_by_token.mean(0))
    assert show(TRACE, head="max", pieces=True).weights_QK == pytest.approx(token_by_token.max(0))
    assert [show(TRACE, head=head).name for head in (2, None, "max", "rollout")] == [
        "head 2", "mean of all heads", "max of all heads", "rollout",
    ]  # fmt: skip
    for head in (0, 4, "median"):
        with pytest.raises(TraceError, match="from 1 to 3"):
            show(TRACE, head=head)


def test_rollout_is_the_product_of_layers_mixed_with_the_identity() -> None:
    row = row_of("a", "b")
    first = Map("encoder", 0, "text", "text", np.array([[[1, 0], [0.5, 0.5]]], np.float32))
    second = Map("encoder", 1, "text", "text", np.array([[[0, 1], [0, 1]]], np.float32))
    trace = Trace(Facts("bert"), {"text": row}, (first, second))
    # By hand: [[½, ½], [0, 1]] · [[1, 0], [¼, ¾]].
    assert rollout(trace, second) == pytest.approx(np.array([[0.625, 0.375], [0.25, 0.75]]))
    assert rollout(trace, first) == pytest.approx(np.array([[1, 0], [0.25, 0.75]]))


def test_rollout_of_a_translation_looks_at_what_the_encoder_mixed() -> None:
    cross, encoder = TRACE.map("cross"), [shown.weights_HQK.mean(0) for shown in TRACE.layers("encoder")]
    eye = np.eye(len(encoder[0]))
    expected = cross.weights_HQK.mean(0) @ (encoder[1] / 2 + eye / 2) @ (encoder[0] / 2 + eye / 2)
    assert rollout(TRACE, cross) == pytest.approx(expected, abs=1e-6)


def test_rollout_needs_every_layer() -> None:
    for maps in [TRACE.maps[1:2], TRACE.maps[3:]]:
        with pytest.raises(TraceError, match="Rollout"):
            show(Trace(TRACE.facts, TRACE.rows, maps), head="rollout")


# ------------------------------------------------------------------------------------------------------------- the picture


def drawn(svg: str) -> list[dict[str, float]]:
    """The lines of a picture, read back."""
    names = ("x1", "y1", "x2", "y2", "stroke-width", "data-q", "data-k", "data-w")
    return [
        {name: float(line.attrib[name]) for name in names} for line in ElementTree.fromstring(svg).iter(f"{SVG}line")
    ]


def is_true(svg: str, weights_QK: Weights) -> bool:
    """Whether each line is as wide as the weight between the words at its ends."""
    at = {
        "q": [(one["y1"] - 64) / 28 - 0.5 for one in drawn(svg)],
        "k": [(one["y2"] - 64) / 28 - 0.5 for one in drawn(svg)],
    }
    expected = [12 * weights_QK[int(q), int(k)] for q, k in zip(at["q"], at["k"], strict=True)]
    return bool(expected) and np.allclose([one["stroke-width"] for one in drawn(svg)], expected, atol=1e-3)


@pytest.mark.parametrize("head", [1, 3, None, "max"])
def test_every_line_is_as_wide_as_its_weight(head: int | str | None) -> None:
    for kind in TRACE.kinds:
        shown = show(TRACE, kind, head=head)
        assert is_true(TRACE.svg(kind, head=head), shown.weights_QK), kind
        shifted = np.roll(shown.weights_QK, 1, axis=0)
        assert not is_true(TRACE.svg(kind, head=head), shifted), "a wrong picture must not pass"
        if kind == "encoder":
            assert not is_true(TRACE.svg(kind, head=head), shown.weights_QK.T)


def test_without_a_word_the_largest_weights_cover_nine_tenths_of_each_row() -> None:
    weights_QK = show(TRACE, "encoder", 2, 1).weights_QK
    found = {(line.query, line.key) for line in lines(weights_QK)}
    for q, weights_K in enumerate(weights_QK):
        kept = sorted((float(weights_K[k]) for one, k in found if one == q), reverse=True)
        left = [w for k, w in enumerate(weights_K) if (q, k) not in found]
        assert kept and min(kept) >= max([0.0, *left])
        assert sum(kept) >= 0.9 or max(left) < 0.01
        assert sum(kept[:-1]) < 0.9
    widths = [line.width for line in lines(weights_QK)]
    assert widths == sorted(widths, reverse=True)


def test_no_more_lines_than_can_be_drawn_and_none_too_thin() -> None:
    assert len(lines(np.full((80, 80), 1 / 80, np.float32))) == 4000
    assert lines(np.full((200, 200), 1 / 200, np.float32)) == []


def test_a_chosen_word_shows_its_row_alone_with_numbers() -> None:
    shown = show(TRACE, "cross", 1, 2)
    row = [label.text for label in shown.queries].index("bench")
    weights_K = shown.weights_QK[row]
    svg = TRACE.svg("cross", 1, 2, "Bench")
    assert {int(one["data-k"]) for one in drawn(svg)} == set(np.flatnonzero(weights_K >= 0.01))
    assert {int(one["data-q"]) for one in drawn(svg)} == {row}
    largest = np.argsort(-weights_K)[:3]
    printed = {span.text for span in ElementTree.fromstring(svg).iter(f"{SVG}tspan") if "dx" in span.attrib}
    assert printed == {f"{weights_K[k]:.2f}" for k in largest}
    told = ", ".join(f"{shown.keys[k].text} {weights_K[k]:.2f}" for k in largest)
    assert f"“bench” looks at {told}." in svg
    with pytest.raises(TraceError, match="no word 'chair'"):
        TRACE.svg(word="chair")


def test_a_position_is_named_by_what_it_writes_or_by_what_it_reads() -> None:
    texts = [[label.text for label in show(TRACE, kind).queries] for kind in ("cross", "decoder")]
    assert texts[0][-1] == "</s>" and texts[1][0] == "<s>"
    read = show(TRACE, "cross", pieces=True, written=False)
    assert read.queries[0].text == "<s>"
    assert (read.weights_QK == show(TRACE, "cross", pieces=True).weights_QK).all()


def test_each_word_is_in_it_as_text_and_it_says_what_it_shows() -> None:
    svg = TRACE.svg("encoder", 1, 3)
    texts = [
        "".join(element.itertext()).strip("\u2067\u2069") for element in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]
    for word in ("Sie", "sitzt", "Bank", "長椅", "שלום", "</s>"):
        assert texts.count(word) == 2, word
    assert "encoder self-attention, head 3" in texts
    assert "transformer, layer 0 → 1 (encoder layer 1 of 2). Width of a line: its weight." in texts
    assert {"sitz", "t"} <= set(re.findall(r">(\w+)</text>", TRACE.svg("encoder", 1, 3, pieces=True)))


def test_hostile_words_stay_words() -> None:
    trace = of_words(HOSTILE, "ok")
    for word in ("", HOSTILE):
        root = ElementTree.fromstring(trace.svg(word=word))
        assert not list(root.iter(f"{SVG}script"))
        assert HOSTILE.replace("\x00", "�").replace("\ud800", "�") in ["".join(text.itertext()) for text in root.iter()]


def test_it_needs_nothing_from_elsewhere() -> None:
    svg = TRACE.svg()
    assert set(re.findall(r"\w+://[^\s\"'<>]+", svg)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"href|url\(|@import|@font-face", svg)


def test_words_read_from_the_right_have_their_direction() -> None:
    svg = of_words("«عربي", "ab").svg()
    texts = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert texts.count("\u2067«عربي\u2069") == texts.count("ab") == 2, "by the first letter that has one"


def test_colours_are_those_of_the_pages_in_light_and_dark() -> None:
    for scheme in (0, 1):
        css = "".join(
            re.findall(r":root \{(.*?)\}", asset(name), flags=re.DOTALL)[scheme] for name in ("page.css", "see/see.css")
        )
        named = dict(re.findall(r"--([\w-]+): (#\w{6})", css))
        assert {name: named[name] for name in COLOURS} == {name: pair[scheme] for name, pair in COLOURS.items()}
    light, dark = TRACE.svg(head=1, theme="light"), TRACE.svg(head=1, theme="dark")
    assert "prefers-color-scheme: dark" in TRACE.svg() and "<style>" not in light + dark
    assert set(re.findall(r"#\w{6}", light)) == {COLOURS[name][0] for name in ("paper", "ink", "quiet", "hue-1")}
    assert set(re.findall(r"#\w{6}", dark)) == {COLOURS[name][1] for name in ("paper", "ink", "quiet", "hue-1")}
    with pytest.raises(TraceError, match="no theme 'pink'"):
        TRACE.svg(theme="pink")


# ---------------------------------------------------------------------------------------------------------- tables and files


def test_the_table_holds_every_weight() -> None:
    rows = list(csv.DictReader(io.StringIO(TRACE.csv())))
    assert len(rows) == sum(shown.weights_HQK.size for shown in TRACE.maps)
    for row in rows:
        shown = TRACE.map(row["kind"], int(row["layer"]))
        q, k = int(row["query_number"]) - 1, int(row["key_number"]) - 1
        weight = shown.weights_HQK[int(row["head"]) - 1, q, k]
        assert float(row["weight"]) == pytest.approx(float(weight), rel=1e-5)
        words = TRACE.rows[shown.queries].tokens[q].text, TRACE.rows[shown.keys].tokens[k].text
        assert (row["query"], row["key"]) == words


def test_the_ending_says_what_is_saved(tmp_path: Path) -> None:
    for name in ("a.svg", "a.csv", "a.txt", "a.html"):
        TRACE.save(tmp_path / name, kind="cross", layer=1, head=2)
    assert (tmp_path / "a.svg").read_text() == TRACE.svg("cross", 1, 2)
    assert (tmp_path / "a.csv").read_text() == TRACE.csv()
    assert (tmp_path / "a.txt").read_text() == TRACE.text("cross", 1, 2) + "\n"
    assert "<!doctype html>" in (tmp_path / "a.html").read_text().lower()
    TRACE.save(tmp_path / "it.SVG", word="bench", pieces=True)
    assert (tmp_path / "it.SVG").read_text() == TRACE.svg(word="bench", pieces=True) != TRACE.svg(word="bench")
    with pytest.raises(TraceError, match=r"press e\. Name it a\.svg"):
        TRACE.save(tmp_path / "a.png")
    with pytest.raises(TraceError, match=r"\.html \.svg \.csv \.txt"):
        TRACE.save(tmp_path / "a")
    assert len(list(tmp_path.iterdir())) == 5


def test_a_notebook_gets_the_page_a_picture_and_text() -> None:
    bundle = TRACE._repr_mimebundle_()
    assert bundle["text/html"].startswith("<iframe") and "srcdoc" in bundle["text/html"]
    assert bundle["image/svg+xml"] == TRACE.svg() and bundle["text/plain"] == repr(TRACE) == TRACE.text()
    nothing = Trace(Facts("lstm"), TRACE.rows, ())
    assert nothing._repr_mimebundle_() == {"text/plain": "lstm has no attention: there is nothing to draw."}
