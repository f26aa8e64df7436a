"""Strings in, strings out."""

import json
import logging
import math

import numpy as np
import pytest

from regard.config import DecodeConfig, read
from regard.decode.translator import Translator, _batches
from regard.errors import ConfigError, DataError
from regard.evaluation.translation import evaluate
from regard.models import build
from regard.text.pair import Pair
from regard.text.tokenizers.tokenizer import END, Listed
from toys import Toy, log_softmax, random_toy

TEXTS = ["a b c", "d", "", "c c a b a", "   ", "b", "a b c"]
WORDS = Listed("words", ["▁a", "▁b", "▁c", "▁d"])


def translator(seed: int = 1, **settings: object) -> Translator:
    return Translator(random_toy(seed, vocabulary=WORDS.size, end=0.5), WORDS, DecodeConfig(**settings))  # type: ignore[arg-type]


def copying(longest: int = 10**6) -> Translator:
    """Copies its source, and refuses one that is too long, as learned positions do."""

    def scores(source, written):
        if len(source) > longest:
            raise DataError(f"A sentence of {len(source)} tokens does not fit.")
        return np.eye(WORDS.size)[source[min(len(written), len(source) - 1)]] * 50

    return Translator(Toy(scores, WORDS.size), WORDS)


def test_one_text_gives_one_and_a_list_gives_a_list():
    assert copying().translate("a b") == "a b"
    assert copying().translate(["a b", "d"]) == ["a b", "d"]
    assert copying().translate([]) == []


def test_blank_texts_stay_blank_without_asking_the_model():
    ours = translator()
    assert ours.translate(["", "  ", "\t"]) == ["", "", ""] and ours.model.rows == []
    assert ours.n_best([""], n_best=3) == [[("", 0.0)]]
    assert [bool(text) for text in copying().translate(TEXTS)] == [bool(text.strip()) for text in TEXTS]


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 4}, {"sample": True, "seed": 3}, {"beam": 3, "n_best": 3}])
def test_neither_the_batch_nor_its_size_changes_a_text(settings):
    def texts(found):
        return [[translation.text for translation in translations] for translations in found]

    settings = {"min_length": 2, **settings}
    alone = [texts(translator(**settings).n_best([text]))[0] for text in TEXTS]
    for tokens in (1, 20, 10_000):
        ours = translator(batch_tokens=tokens, **settings)
        assert texts(ours.n_best(TEXTS)) == alone
        assert texts(ours.stream((text + "\n" for text in TEXTS), chunk=3)) == alone


def test_batches_hold_as_many_tokens_as_allowed_and_every_sentence_once():
    lengths = [3, 9, 1, 4, 4, 20, 2]
    found = list(_batches(range(7), lengths, tokens=12))
    assert found == [[5], [1], [3, 4, 0], [6, 2]]
    assert all(len(batch) * lengths[batch[0]] <= 12 or len(batch) == 1 for batch in found)


@pytest.mark.parametrize("settings", [{"beam": 4}, {"sample": True, "n_best": 5}])
def test_no_batch_holds_more_than_its_tokens_with_beams_and_samples_counted(settings):
    ours = translator(min_length=2, batch_tokens=48, **settings)
    ours.translate(["a b c"] * 20)
    assert max(ours.model.rows) * 4 <= 48 < (max(ours.model.rows) + 5) * 4


def test_settings_hold_for_one_call_and_wrong_ones_are_refused():
    ours = translator(max_length=5)
    assert len(ours.translate("a b c", max_length=2, min_length=2, beam=1).split()) == 2
    assert ours.config.max_length == 5
    with pytest.raises(ConfigError, match=r"Did you mean decode\.beam"):
        ours.stream([], beams=3)
    with pytest.raises(ConfigError, match="n_best 6"):
        ours.n_best(["a"], n_best=6)


def test_a_translation_begins_with_its_prefix():
    ours = translator(min_length=3)
    assert ours.translate("a b", prefix="c c").startswith("c c")
    one, other = ours.translate(["a b", "d"], prefix=["c d", ""])
    assert one.startswith("c d") and other == ours.translate("d")
    with pytest.raises(DataError, match="1 prefixes for 2 texts"):
        ours.translate(["a", "b"], prefix=["c"])


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_the_mode_it_was_found_in(training):
    ours = translator()
    ours.model.train(training)
    ours.model.words.train(not training)
    ours.translate("a b")
    ours.log_probabilities(["a"], ["b"])
    assert ours.model.training is training and ours.model.words.training is not training
    assert ours.model.words.weight.requires_grad and not ours.model.words.weight.is_inference()


def test_log_probabilities_are_the_sums_over_the_words_and_the_end():
    ours = translator()
    targets = ["b a", "", "d d d d"]
    for (total, tokens), source, target in zip(
        ours.log_probabilities(TEXTS[:3], targets), TEXTS, targets, strict=False
    ):
        (read,), (ids,) = WORDS.encode([source]), WORDS.encode([target])
        steps = [log_softmax(ours.model.scores((*read, END), tuple(ids[:t]))) for t in range(len(ids) + 1)]
        assert tokens == len(ids) + 1
        assert total == pytest.approx(sum(s[w] for s, w in zip(steps, [*ids, END], strict=True)), abs=1e-3)


def test_what_is_guessed_is_the_likeliest_word_after_the_right_ones():
    ours = translator()
    targets = ["b a", "", "d d d d"]
    for judged, source, target in zip(ours.judge(TEXTS[:3], targets), TEXTS, targets, strict=False):
        (read,), (ids,) = WORDS.encode([source]), WORDS.encode([target])
        likeliest = [int(ours.model.scores((*read, END), tuple(ids[:t])).argmax()) for t in range(len(ids) + 1)]
        assert judged.guessed == sum(a == b for a, b in zip(likeliest, [*ids, END], strict=True))


def test_log_probabilities_agree_with_the_search():
    ours = translator(length_penalty=0.0)
    (text, score), *_ = ours.n_best(["a b c"])[0]
    assert ours.log_probabilities(["a b c"], [text])[0][0] == pytest.approx(score, abs=1e-4)


def test_a_text_that_is_too_long_is_named_in_the_error():
    with pytest.raises(DataError, match=r"1500 tokens.*It begins: 'a a a"):
        copying().translate(["b", "a " * 1500])
    with pytest.raises(DataError, match=r"does not fit\. The text begins: 'a b c'"):
        copying(longest=3).translate(["b", "a b c", "d"])


def test_in_a_stream_a_line_that_is_too_long_is_left_empty_and_the_rest_go_on(caplog):
    lines = ["b", "a b c", "d", "a " * 1500, "c"]
    with caplog.at_level(logging.WARNING):
        found = [translations[0].text for translations in copying(longest=3).stream(lines, chunk=3)]
    assert found == ["b", "", "d", "", "c"]
    assert [record.getMessage()[:7] for record in caplog.records] == ["Line 2 ", "Line 4 "]


def test_a_stream_reads_no_further_than_it_must():
    def lines():
        yield from ["a", "b"]
        raise AssertionError("read too far")

    found = copying().stream(lines(), chunk=1)
    assert [next(found)[0].text for _ in range(2)] == ["a", "b"]


def test_a_perfect_model_is_evaluated_as_perfect():
    calls = []
    pairs = [Pair(text, text) for text in ["a b c d a", "d c b a", "c", "b b a c d"]]
    report = evaluate(copying(), pairs, progress=lambda *done: calls.append(done), beam=2)
    assert [round(score.value, 3) for score in report.scores.values()] == [100, 100, 0]
    assert report.exact_match == 100 and report.perplexity == pytest.approx(1)
    assert report.hypotheses == [pair.target for pair in pairs] and calls[-1] == (4, 4)
    assert json.loads(json.dumps(report.as_table()))["sentences"] == 4
    assert report.lines()[0].startswith("BLEU         100.00  [") and "tok:13a" in report.lines()[0]


def test_evaluation_reports_perplexity_per_token_and_refuses_wrong_names_at_once():
    ours, pairs = translator(), [Pair("a b", "c"), Pair("d", "a a")]
    total = sum(total for total, _ in ours.log_probabilities(["a b", "d"], ["c", "a a"]))
    assert evaluate(ours, pairs, metrics=["chrf"]).perplexity == pytest.approx(math.exp(-total / 5))
    for wrong, message in [({"metrics": ["bleau"]}, "Did you mean bleu"), ({"tokenize": "14a"}, "13a")]:
        with pytest.raises(ConfigError, match=message):
            evaluate(ours, pairs, **wrong)
    with pytest.raises(DataError, match="no sentence pairs"):
        evaluate(ours, [])


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 3}, {"sample": True}], ids=str)
def test_a_model_with_few_positions_is_never_asked_for_more(settings):
    config = read({"model": {"width": 8, "heads": 2, "depth": 1, "inner": 8, "positions": "learned", "longest": 9}})
    model = Translator(build(config.model, WORDS.size), WORDS)
    (found,) = model.n_best(["a b"], **settings)
    assert len(WORDS.encode([found[0].text])[0]) <= 8
