"""Two sentences contrasted: a hand-made pair whose moves are known, and what must hold of any pair."""

import numpy as np
import pytest

from regard.errors import TraceError
from regard.interpret.contrast import contrast
from regard.interpret.trace import KINDS, Facts, Map, Row, Token, Trace

WORDS = "the cat saw the dog as it was tired"


def row(text, begin=False):
    """Words, in pieces where a + stands."""
    tokens = [Token("<s>", 0, 0, 0, special=True)] if begin else []
    for word in text.split():
        number, pieces = len({token.word for token in tokens}), word.split("+")
        tokens += [Token(piece, 0, 0, number, continues=n > 0) for n, piece in enumerate(pieces)]
    return Row(text, tuple(tokens))


def even(heads, queries, keys):
    """Everybody looks at everything alike."""
    return np.full((heads, queries, keys), 1 / keys, dtype=np.float32)


def looking(weights, head, query, **places):
    """The same, but one query's attention goes where it is told; k3=0.7 gives 0.7 to key 3, the rest to key 0."""
    weights = weights.copy()
    weights[head, query] = 0
    for key, weight in places.items():
        weights[head, query, int(key[1:])] = weight
    weights[head, query, 0] += 1 - weights[head, query].sum()
    return weights


def encoder(text, *layers):
    return Trace(
        Facts("hand"),
        {"source": row(text)},
        tuple(Map("encoder", n, "source", "source", w) for n, w in enumerate(layers)),
    )


def tired_and_wide():
    """In layer 2, head 3, tired looks at cat (key 1), wide at dog (key 4); in layer 1, head 1, it moves half as far back."""
    plain, wide = even(3, 9, 9), WORDS.replace("tired", "wide")
    a = encoder(WORDS, looking(plain, 0, 6, k4=0.6, k1=0.1), looking(plain, 2, 8, k1=0.9, k4=0.05))
    b = encoder(wide, looking(plain, 0, 6, k4=0.1, k1=0.6), looking(plain, 2, 8, k1=0.05, k4=0.95))
    return a, b


def test_the_planted_moves_come_first_with_their_sizes_and_signs():
    first, second, *others = contrast(*tired_and_wide(), "cat", "dog")
    assert (first.kind, first.layer, first.head, first.query_a, first.query_b) == ("encoder", 1, 2, 8, 8)
    assert (first.text_a, first.text_b) == ("tired", "wide")
    np.testing.assert_allclose([first.a_one, first.a_other, first.b_one, first.b_other], [0.9, 0.05, 0.05, 0.95])
    assert first.move == pytest.approx((0.90 + 0.85) / 2)
    assert (second.layer, second.head, second.text_a) == (0, 0, "it") and second.move == pytest.approx(-0.5)
    assert len(others) == 2 * 3 * 9 - 2 and not any(move.move for move in others)


def test_swapping_the_sentences_or_the_words_turns_every_sign():
    a, b = tired_and_wide()

    def signs(moves):
        return {(move.layer, move.head, move.query_a): move.move for move in moves}

    straight = signs(contrast(a, b, "cat", "dog"))
    turned = {place: -move for place, move in straight.items()}
    assert turned == signs(contrast(b, a, "cat", "dog")) == signs(contrast(a, b, "dog", "cat"))
    assert max(straight.values()) > 0.8 and min(straight.values()) < -0.4


def transposed(trace):
    turned = [shown.weights_HQK.transpose(0, 2, 1) for shown in trace.maps]
    return encoder(trace.rows["source"].text, *(weights / weights.sum(-1, keepdims=True) for weights in turned))


def test_in_a_transposed_map_something_else_comes_first():
    a, b = tired_and_wide()
    assert (
        contrast(a, b, "cat", "dog")[0].text_b == "wide" != contrast(*map(transposed, (a, b)), "cat", "dog")[0].text_b
    )


def test_pieces_of_a_key_are_summed_and_those_of_a_query_averaged():
    plain = even(1, 5, 5)
    a = encoder("x an+i+mal street", looking(looking(plain, 0, 4, k1=0.1, k2=0.2, k3=0.4), 0, 1, k4=0.9))
    b = encoder("x an+i+mal street", looking(plain, 0, 4, k4=0.8))
    found = {move.text_a: move for move in contrast(a, b, "animal", "street")}
    assert found.keys() == {"x", "animal", "street"} and found["street"].a_one == pytest.approx(0.7)
    assert found["animal"].query_a == 1 and found["animal"].a_other == pytest.approx((0.9 + 0.2 + 0.2) / 3)


def test_words_are_paired_before_and_after_the_difference_and_in_it_only_if_equally_many():
    a, b, c = (encoder(text, even(1, n, n)) for text, n in (("a x b c", 4), ("a y b c", 4), ("a y y z b c", 6)))
    assert {(move.text_a, move.text_b) for move in contrast(a, b, "b", "c")} == {
        ("a", "a"),
        ("x", "y"),
        ("b", "b"),
        ("c", "c"),
    }
    assert sorted((move.query_a, move.query_b) for move in contrast(a, c, "b", "c")) == [(0, 0), (2, 4), (3, 5)]
    again = encoder("a a b c", even(1, 4, 4))
    assert len(contrast(encoder("a b c", even(1, 3, 3)), again, "b", "c")) == 3


def test_a_number_names_one_of_several_equal_words():
    plain = even(1, 9, 9)
    a, b = encoder(WORDS, plain), encoder(WORDS, looking(plain, 0, 6, k3=0.9))
    assert contrast(a, b, "the", "cat")[0].b_one == pytest.approx(0.1)
    assert contrast(a, b, 3, 1)[0].b_one == pytest.approx(0.9)


def cross(written, weights):
    """Three source words; what the decoder reads is what it writes, shifted."""
    rows = {
        "source": row("the cat sleeps"),
        "target": row(" ".join(written.split()[:-1]), begin=True),
        "predicted": row(written),
    }
    return Trace(Facts("hand"), rows, (Map("cross", 0, "target", "source", weights),))


def test_in_attention_to_the_source_a_word_is_named_by_what_is_written():
    plain = even(2, 3, 3)
    a, b = cross("le chat dort", plain), cross("le chien dort", looking(plain, 1, 1, k2=0.9))
    first = contrast(a, b, "cat", "sleeps")[0]
    assert (first.text_a, first.text_b, first.query_a, first.head) == ("chat", "chien", 1, 1)
    assert "about to write *chat* / *chien*" in first.sentence()


def test_the_best_move_is_said_in_plain_words():
    first, second, *_ = contrast(*tired_and_wide(), "cat", "dog")
    assert first.sentence() == (
        "In encoder layer 2, head 3, *tired* / *wide* looks at *cat* in the first sentence (0.90) "
        "and at *dog* in the second (0.95)."
    )
    assert "*it* looks at *dog* in the first sentence (0.60) and at *cat* in the second (0.60)" in second.sentence()
    stays = contrast(
        encoder("a b", [[[1, 0], [0.4, 0.6]]] * np.ones(1, np.float32)), encoder("a b", even(1, 2, 2)), "a", "b"
    )
    assert stays[0].sentence() == (
        "In encoder layer 1, head 1, *a* looks at *a* in both sentences (1.00, then 0.50) rather than at *b* "
        "(0.00, then 0.50)."
    )
    away = contrast(
        encoder("a b c", np.eye(3, dtype=np.float32)[None]),
        encoder("a b c", np.eye(3, dtype=np.float32)[None, [2, 1, 0]]),
        "a",
        "b",
    )
    assert away[0].sentence() == (
        "In encoder layer 1, head 1, *a* looks at *a* in the first sentence (1.00) "
        "and at neither *a* nor *b* in the second (0.00)."
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_attention_can_be_contrasted(kind):
    rows = {"source": row("a b"), "text": row("a b")}
    a, b = (
        Trace(Facts("hand"), rows, (Map(kind, 3, "text", "text", np.array([[[1, 0], w]], np.float32)),))
        for w in ([0.8, 0.2], [0.2, 0.8])
    )
    assert contrast(a, b, "a", "b")[0].move == pytest.approx(0.6)
    assert "layer 4, head 1" in contrast(a, b, "a", "b")[0].sentence()


def test_words_that_are_not_looked_at_together_are_refused_by_name():
    with pytest.raises(TraceError, match="'cat' and 'horse'"):
        contrast(*tired_and_wide(), "cat", "horse")
