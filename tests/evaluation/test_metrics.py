"""Scores against sacrebleu's own interface and against numbers worked by hand."""

import logging
import math

import pytest
import sacrebleu

from regard.errors import ConfigError, DataError
from regard.evaluation.metrics import (
    METRICS,
    TRANSLATION,
    bleu,
    chrf,
    exact_match,
    perplexity,
    scorer,
    ter,
    word_accuracy,
)

REFERENCES = ["The cat sat on the mat.", "A dog barks.", "It is raining today, isn't it?", "Good morning!"]
TRANSLATIONS = ["The cat sat on a mat.", "The dog barks.", "It rains today, isn't it?", "Good morning!"]


def test_bleu_worked_by_hand():
    # 5 words of 6, 3 pairs of 5, 2 triples of 4, 1 of 3 in fours; as long as the reference, so no brevity penalty.
    by_hand = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu(["a b c d x f"], ["a b c d e f"]).value == pytest.approx(by_hand)
    # All words right but two of six missing: exp(1 - 6/4).
    assert bleu(["a b c d"], ["a b c d e f"], interval=False).value == pytest.approx(100 * math.exp(-0.5))


@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "char", "zh"])
def test_bleu_is_sacrebleus_with_its_signature(tokenize):
    ours = bleu(TRANSLATIONS, REFERENCES, tokenize=tokenize, interval=False)
    assert ours.value == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES], tokenize=tokenize).score
    assert ours.name == "BLEU" and f"tok:{tokenize}" in ours.signature and "version:" in ours.signature


def test_chrf_and_ter_are_sacrebleus():
    assert chrf(TRANSLATIONS, REFERENCES).value == sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
    assert ter(TRANSLATIONS, REFERENCES).value == sacrebleu.corpus_ter(TRANSLATIONS, [REFERENCES]).score
    assert ter(["a x c d"], ["a b c d"], interval=False).value == pytest.approx(25)


def test_word_errors_worked_by_hand():
    # One replaced of four; one left out and one put in of two.
    assert scorer("wer")(["a x c d", "b c"], ["a b c d", "a b"]).value == pytest.approx(100 * (1 + 2) / 6)
    # Moving a word is one edit for TER, and two errors here.
    moved, right = ["c a b"], ["a b c"]
    assert scorer("wer")(moved, right).value == pytest.approx(200 / 3) == 2 * ter(moved, right).value


def test_word_errors_are_counted_against_the_closest_reference():
    assert scorer("wer")(["a b c", "d"], ["x y z", "d"], [["a b", ""]]).value == pytest.approx(100 * 1 / 3)


def test_the_interval_of_word_errors_holds_the_rate():
    right = [f"{n} {n + 1} {n + 2}" for n in range(40)]
    found = scorer("wer")([one[: 3 + n % 3] for n, one in enumerate(right)], right)
    assert found.low < found.value < found.high and "bs:1000" in found.signature


@pytest.mark.parametrize("name", TRANSLATION)
def test_the_interval_is_sacrebleus_bootstrap_and_the_same_each_time(name):
    ours = scorer(name)(TRANSLATIONS, REFERENCES)
    metric = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER}[name]()
    theirs = metric.corpus_score(TRANSLATIONS, [REFERENCES], n_bootstrap=1000)
    assert (ours.low, ours.high) == pytest.approx((theirs._mean - theirs._ci, theirs._mean + theirs._ci))
    assert "bs:1000|seed:12345" in ours.signature and scorer(name)(TRANSLATIONS, REFERENCES) == ours


@pytest.mark.parametrize("name", METRICS)
def test_without_interval_the_value_is_the_same(name):
    quick = scorer(name, interval=False)(TRANSLATIONS, REFERENCES)
    assert quick.value == scorer(name)(TRANSLATIONS, REFERENCES).value
    assert quick.low is None and quick.high is None and "bs:" not in quick.signature


@pytest.mark.parametrize("name", TRANSLATION)
def test_further_references_go_to_sacrebleu_and_an_empty_one_is_none(name):
    metric = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER}[name]()
    also = ["The cat sat on a mat", "Some dog barks.", "It rains today, or does it?", "Morning!"]
    theirs = metric.corpus_score(TRANSLATIONS, [REFERENCES, also])
    ours = scorer(name, interval=False)(TRANSLATIONS, REFERENCES, [also])
    assert ours.value == theirs.score != scorer(name, interval=False)(TRANSLATIONS, REFERENCES).value
    assert "nrefs:2" in ours.signature
    none = scorer(name)(TRANSLATIONS, REFERENCES, [["", " ", "", ""]])
    assert none == scorer(name)(TRANSLATIONS, REFERENCES) and "nrefs:1" in none.signature
    assert "nrefs:var" in scorer(name)(TRANSLATIONS, REFERENCES, [[*also[:3], ""]]).signature


def test_exact_match_counts_equal_sentences():
    assert exact_match(TRANSLATIONS, REFERENCES) == 25
    assert exact_match([" a"], ["a\n"]) == 100
    assert exact_match(["b", "c", ""], ["a", "a", "a"], [["b", "", ""], ["", "c ", ""]]) == pytest.approx(200 / 3)


def test_words_are_right_only_at_their_place():
    assert word_accuracy(["a b c"], ["a b c"]) == 100
    assert word_accuracy(["b c"], ["a b c"]) == 0
    assert word_accuracy(["a  b c d"], [" a b"]) == 100
    # Over all words, not over sentences: 4 of 6.
    assert word_accuracy(["a b c d", "a b"], ["a b c d", "x y"]) == pytest.approx(200 / 3)
    assert word_accuracy(["", "a"], ["a b c", "a"]) == 25


def test_perplexity_worked_by_hand():
    # Probabilities 1/2 and 1/8: their geometric mean is 1/4.
    assert perplexity(math.log(1 / 2) + math.log(1 / 8), 2) == pytest.approx(4)
    assert perplexity(-1e6, 1) == math.inf
    with pytest.raises(DataError, match="no tokens"):
        perplexity(0.0, 0)


@pytest.mark.parametrize("metric", [bleu, chrf, ter, exact_match, word_accuracy, *map(scorer, METRICS)])
def test_nothing_to_score_and_unequal_lists_are_refused(metric):
    with pytest.raises(DataError, match="no sentences"):
        metric([], [])
    with pytest.raises(DataError, match="2 translations cannot be compared with 1 references"):
        metric(["a", "b"], ["a"])


@pytest.mark.parametrize("metric", [exact_match, *map(scorer, METRICS)])
def test_further_references_must_be_as_many(metric):
    with pytest.raises(DataError, match="2 translations cannot be compared with 3 references"):
        metric(["a", "b"], ["a", "b"], [["a", "b"], ["a", "b", "c"]])


def test_unknown_names_are_refused_with_the_choices():
    with pytest.raises(ConfigError, match=r"Did you mean 13a\?.*intl"):
        bleu(["a"], ["a"], tokenize="13b")
    with pytest.raises(ConfigError, match=r"Did you mean chrf\?"):
        scorer("chrff")


@pytest.mark.parametrize(("tokenize", "warned"), [("13a", True), ("none", False)])
def test_whoever_says_the_text_is_tokenized_is_not_warned_that_it_looks_so(tokenize, warned, caplog):
    text = ["a b c d ."] * 100
    with caplog.at_level(logging.WARNING):
        bleu(text, text, tokenize=tokenize, interval=False)
    assert bool(caplog.records) is warned


def test_chrf_has_an_interval_even_where_next_to_nothing_matches() -> None:
    score = scorer("chrf")(["xq"] * 18 + ["one"] * 2, ["one two three"] * 20)
    assert score.low is not None and score.high is not None and score.low <= score.value <= score.high
