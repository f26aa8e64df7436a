"""What is shown of attention is what the model did: for every model, against the equations and torch's own module."""

from itertools import product

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from conftest import READERS, SMALL, VARIANTS, VOCABULARY, WRITERS, small
from regard.config import TextConfig
from regard.errors import DataError, TraceError
from regard.interpret.pack import pack_exactly, pack_numbers, pack_weights, unpack
from regard.interpret.recording import LONGEST, Watched, trace_pair, trace_reading, trace_text
from regard.interpret.tokens import row_of
from regard.interpret.trace import Facts, Map, Row, Token, Trace
from regard.layers import recorder
from regard.models import build
from regard.models.base import LanguageModel, Model, Writer
from regard.text.tokenizers.tokenizer import BEGIN, END, Listed, Tokenizer, learn_tokenizer
from regard.text.tokenizers.wordpiece import WordPiece

LETTERS = Listed("words", [f"\u2581{letter}" for letter in "abcdefghijklmnop"])
FACTS = Facts("small")
SOURCE, TARGET = [4, 9, 6, 11, 5, 7], [8, 4, 13, 10]
CASES = [(name, variant) for name in SMALL for variant in VARIANTS[name]]
NO_ATTENTION = {"rnn", "lstm", "gru", "seq2seq"}


def model_of(name: str, **settings: object) -> Model:
    return build(small(name, **settings).model, VOCABULARY).eval()


def watched(model: Model) -> Watched:
    if isinstance(model, Writer):
        return trace_pair(model, LETTERS, FACTS, SOURCE, TARGET, LETTERS.decode(SOURCE))
    return trace_reading(model, LETTERS, FACTS, SOURCE, LETTERS.decode(SOURCE))  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "variant"), CASES, ids=lambda x: str(x))
def test_every_model_shows_its_attention_or_has_none(name: str, variant: dict[str, object]) -> None:
    trace = watched(model_of(name, **variant)).trace
    assert (trace.maps == ()) == (name in NO_ATTENTION)
    assert trace.difference < 1e-5
    for shown in trace.maps:
        assert_allclose(shown.weights_HQK.sum(-1), 1, atol=1e-5)
        assert "of" in trace.label(shown)
    if name in NO_ATTENTION:
        assert "no attention" in repr(trace)
        with pytest.raises(TraceError, match="no attention at all"):
            trace.map()


@pytest.mark.parametrize(("name", "variant"), CASES, ids=lambda x: str(x))
def test_steps_lead_to_the_weights_and_on_to_the_next_layer(name: str, variant: dict[str, object]) -> None:
    trace = watched(model_of(name, **variant)).trace
    for detail in trace.details:
        shown = trace.map(detail.kind, detail.layer + 1)
        chances = np.exp(detail.scores_HQK.astype(np.float64)) * detail.seen_QK
        weights = chances / chances.sum(-1, keepdims=True)
        assert_allclose(weights, shown.weights_HQK, atol=1e-5)
        assert_allclose(weights @ detail.value_HKD, detail.context_HQD, atol=1e-4)
        if (around := detail.around) is not None:
            side_by_side = np.concatenate(list(detail.context_HQD), -1)
            assert_allclose(side_by_side @ around.join_WW.T + around.bias_W, around.joined_QW, atol=1e-4)
        if detail.embedding is not None and name not in ("bert", "classifier"):
            word, place, total = detail.embedding
            assert_allclose(word + (0 if place is None else place), total, atol=1e-5)


def test_weights_are_those_of_torchs_own_module() -> None:
    model = model_of("transformer")
    with torch.inference_mode(), recorder.watching() as events:
        model(*_batch(), attention=True)
    look = next(event for event in events if isinstance(event, recorder.Look))
    came_in = next(event for event in events if isinstance(event, recorder.Joined)).input_BTW
    own = look.of
    peer = torch.nn.MultiheadAttention(own.width, own.heads, batch_first=True)  # type: ignore[arg-type]
    weights = {
        "in_proj_weight": own.project.weight,  # type: ignore[union-attr]
        "in_proj_bias": own.project.bias,  # type: ignore[union-attr]
        "out_proj.weight": own.join.weight,  # type: ignore[union-attr]
        "out_proj.bias": own.join.bias,  # type: ignore[union-attr]
    }
    peer.load_state_dict(weights)
    with torch.inference_mode():
        _, expected = peer(came_in, came_in, came_in, average_attn_weights=False)
    shown = watched(model).trace.map("encoder", 1)
    assert_allclose(shown.weights_HQK, expected[0].numpy(), atol=1e-6)
    assert not np.allclose(shown.weights_HQK[::-1], expected[0].numpy(), atol=1e-3), "heads can be told apart"
    assert not np.allclose(shown.weights_HQK.transpose(0, 2, 1), expected[0].numpy(), atol=1e-3)


def _batch() -> tuple[object, torch.Tensor]:
    from regard.models.base import Source

    return Source(torch.tensor([[*SOURCE, END]]), torch.tensor([len(SOURCE) + 1])), torch.tensor([[BEGIN, *TARGET]])


@pytest.mark.parametrize("name", [name for name in WRITERS if name not in NO_ATTENTION])
def test_layers_are_named_in_the_order_in_which_they_run(name: str) -> None:
    model = model_of(name)
    with torch.inference_mode():
        seen = model(*_batch(), attention=True).attention
    found = {(shown.kind, shown.layer): shown.weights_HQK for shown in watched(model).trace.maps}
    kinds = {"self": "decoder", "source": "cross"}
    for key, weights in seen.items():
        side, *number, sees = key.split(".")
        kind = "encoder" if side == "encoder" else kinds.get(sees, sees)
        expected = weights[0, :, : found[kind, int([*number, 0][0])].shape[1]]
        assert_allclose(found[kind, int([*number, 0][0])], expected, atol=1e-6)
    assert len(found) == len(seen)


@pytest.mark.parametrize("name", [n for n in WRITERS if issubclass(type(model_of(n)), LanguageModel)])
def test_a_language_model_is_traced_without_a_source_too(name: str) -> None:
    model = model_of(name)
    trace = trace_text(model, LETTERS, FACTS, SOURCE, LETTERS.decode(SOURCE)).trace  # type: ignore[arg-type]
    assert [token.text for token in trace.rows["text"].tokens] == ["<s>", *"afchbd"]
    assert [token.text for token in trace.rows["predicted"].tokens[:6]] == list("afchbd")
    assert len(trace.predictions) == 7


def test_predictions_are_the_models_own() -> None:
    model = model_of("transformer")
    with torch.inference_mode():
        chances = model.words(model(*_batch()).hidden_BTW[0]).softmax(-1)  # type: ignore[operator,union-attr]
    for guesses, expected in zip(watched(model).trace.predictions, chances, strict=True):
        assert_allclose([p for _, p in guesses], expected.topk(5).values, atol=1e-5)


def test_words_halt_where_the_model_says() -> None:
    model = model_of("universal")
    read, written = model.steps(*_batch())  # type: ignore[operator]
    trace = watched(model).trace
    assert trace.halted == {"source": read[0].tolist(), "target": written[0].tolist()}
    assert "repetition 1 → 2 (encoder repetition 2 of" in trace.label(trace.map("encoder", 2))


def test_slots_of_a_compressed_memory_hold_its_words() -> None:
    trace = watched(model_of("memory", kernel=2)).trace
    shown = trace.map("compressed")
    slots = [token.text for token in trace.rows[shown.keys].tokens]
    assert slots == ["a", "a f", "c h", "b d", "</s> <s>", "e a", "j g"]
    for query, row in enumerate(shown.weights_HQK[0]):
        assert row[(query + 1) // 2 + 1 :].sum() == 0, "no slot is seen before its last word"


# ------------------------------------------------------------------------------------------------------- it refuses


def refused(weights: list[list[float]], kind: str = "encoder") -> str:
    with pytest.raises(TraceError) as error:
        Map(kind, 0, "text", "text", np.array([weights], dtype=np.float32))
    return str(error.value)


def test_weights_that_cannot_be_right_are_refused() -> None:
    assert "does not sum to one" in refused([[0.5, 0.4], [0.5, 0.5]])
    assert "not finite" in refused([[float("nan"), 1.0], [0.5, 0.5]])
    assert "not finite" in refused([[-0.5, 1.5], [0.5, 0.5]])
    assert "later one" in refused([[0.5, 0.5], [0.5, 0.5]], "decoder")
    row = Row("a", (Token("a", 0, 1, 0),))
    square = Map("encoder", 0, "text", "text", np.full((1, 2, 2), 0.5, dtype=np.float32))
    with pytest.raises(TraceError, match="do not fit 1 tokens"):
        Trace(FACTS, {"text": row}, (square,))


def test_a_path_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.layers import attention

    plain = attention.attend
    monkeypatch.setattr(attention, "attend", lambda q, k, *rest, **more: plain(q, 1.5 * k, *rest, **more))
    with pytest.raises(TraceError, match="differ by"):
        watched(model_of("transformer"))


def test_a_text_too_long_to_be_drawn_is_refused() -> None:
    with pytest.raises(DataError, match="too long to be drawn"):
        trace_pair(model_of("transformer"), LETTERS, FACTS, [5] * LONGEST, TARGET, "")  # type: ignore[arg-type]


def test_asking_for_what_is_not_there_says_what_is() -> None:
    trace = watched(model_of("transformer")).trace
    with pytest.raises(TraceError, match="It has: encoder, decoder, cross"):
        trace.map("local")
    with pytest.raises(TraceError, match="There are: 1, 2"):
        trace.map("cross", 3)
    with pytest.raises(TraceError, match="no word 'zebra'"):
        trace.rows["source"].find("zebra")


# ---------------------------------------------------------------------------------------------------- tokens, numbers

TEXTS = [
    "The animals didn't sleep, did they?",
    "Zwölf  Boxkämpfer — jagen!",
    "naïve Straße\tend",
    "שלום עולם",
    "日本語 です",
]


def tokenizers() -> list[tuple[str, Tokenizer]]:
    corpus = [*TEXTS, "the animal slept there and they did not", "ein Boxer jagt zwölf Kämpfer"] * 3
    kinds = [("words", {}), ("characters", {}), ("bpe", {"vocabulary": 90}), ("unigram", {"vocabulary": 90})]
    learned = [(kind, learn_tokenizer(corpus, TextConfig(tokenizer=kind, **more))) for kind, more in kinds]  # type: ignore[arg-type]
    pieces = ["the", "animal", "##s", "did", "##n", "'", "t", "sleep", ",", "they", "?", "nai", "##ve"]
    bert = WordPiece(pieces, lowercase=True, strip_accents=True, split_chinese=True)
    return [*learned, ("wordpiece", bert)]


@pytest.mark.parametrize(("kind", "tokenizer"), tokenizers(), ids=lambda x: x if isinstance(x, str) else "")
def test_a_token_is_found_where_it_stands(kind: str, tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        (ids,) = tokenizer.encode([text])
        row = row_of(tokenizer, [BEGIN, *ids, END], text)
        assert [token.special for token in row.tokens] == [True, *[False] * len(ids), True]
        for token in row.tokens:
            stands = text[token.first : token.last]
            if token.first < token.last and not token.unknown and kind in ("words", "characters"):
                assert stands == token.text
            assert not token.special or token.first == token.last
        starts = [token.first for token in row.tokens[1:-1] if token.first < token.last]
        assert starts == sorted(starts)


def test_an_unknown_word_is_shown_as_it_was_typed() -> None:
    (ids,) = LETTERS.encode(["a zebra, b"])
    row = row_of(LETTERS, ids, "a zebra, b")
    assert [(token.text, token.unknown) for token in row.tokens[:2]] == [("a", False), ("zebra,", True)]
    assert [row.text[token.first : token.last] for token in row.tokens] == ["a", "zebra,", "zebra,", "b"]
    assert [token.word for token in row.tokens] == [0, 1, 2, 3]


def test_pieces_of_a_word_are_one_word() -> None:
    bert = dict(tokenizers())["wordpiece"]
    (ids,) = bert.encode(["The animals didn't sleep"])
    row = row_of(bert, ids, "The animals didn't sleep")
    assert [token.text for token in row.tokens] == ["the", "animal", "s", "did", "n", "'", "t", "sleep"]
    assert [token.word for token in row.tokens] == [0, 1, 1, 2, 2, 3, 4, 5]
    assert row.find("animals") == 1 == row.find("ANIMAL")
    assert [row.text[t.first : t.last] for t in row.tokens[:3]] == ["The", "animal", "s"]


@pytest.mark.parametrize(("fine", "heads"), list(product((True, False), (1, 3))))
def test_packing_keeps_weights(fine: bool, heads: int) -> None:
    weights = np.random.default_rng(0).dirichlet(np.full(600, 0.05), size=(heads, 4)).astype(np.float32)
    weights[0, 0] = 1 / 600
    again = unpack(pack_weights(weights, fine))
    assert np.abs(again - weights).max() <= (7.7e-6 if fine else 0.0041)
    assert np.abs(again.sum(-1) - 1).max() < (0.01 if fine else 0.01 + 600**0.5 / 255)
    assert (again[0, 0] > 0).all(), "an even look at many words stays a look"


def test_packing_keeps_other_numbers() -> None:
    numbers = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    assert_allclose(unpack(pack_numbers(numbers)), numbers, atol=(numbers.max() - numbers.min()) / 65535)
    assert (unpack(pack_exactly(numbers)) == numbers).all()
    assert (unpack(pack_numbers(np.full(3, 2.5))) == 2.5).all()
    assert unpack(pack_numbers(np.zeros((0, 4)))).shape == (0, 4)


def test_readers_are_in_the_cases() -> None:
    assert {name for name, _ in CASES} == {*WRITERS, *READERS}
