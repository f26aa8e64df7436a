"""ROUGE by hand and by another reckoning; several references; what `regard score` makes of both."""

import json
import logging
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest

from regard.cli.main import main
from regard.errors import ConfigError
from regard.evaluation.metrics import ROUGE, named, scorer


def f_measure(shared: int, ours: int, theirs: int) -> float:
    return 200 * shared / (ours + theirs) if shared else 0.0


def grams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def longest_common(first: list[str], second: list[str]) -> int:
    """By the definition: drop a word of one or the other."""

    @cache
    def length(i: int, j: int) -> int:
        if i == len(first) or j == len(second):
            return 0
        if first[i] == second[j]:
            return 1 + length(i + 1, j + 1)
        return max(length(i + 1, j), length(i, j + 1))

    return length(0, 0)


def by_definition(name: str, ours: str, theirs: str) -> float:
    first, second = ours.split(), theirs.split()
    if name == "rougeL":
        return f_measure(longest_common(first, second), len(first), len(second))
    one, other = grams(first, int(name[-1])), grams(second, int(name[-1]))
    return f_measure((one & other).total(), one.total(), other.total())


def texts(rng: Random, count: int) -> list[str]:
    return [" ".join(rng.choices(["the", "cat", "sat", "on", "a", "mat"], k=rng.randint(1, 12))) for _ in range(count)]


def test_rouge_worked_by_hand() -> None:
    # Shared: the, cat, on, mat, of 6 words and 5; the pair "the cat", of 5 pairs and 4; the same four words in order.
    ours, theirs = ["The cat sat on the mat."], ["the cat, on a mat"]
    values = [scorer(name)(ours, theirs).value for name in ROUGE]
    assert values == pytest.approx([100 * 8 / 11, 100 * 2 / 9, 100 * 8 / 11])
    assert [scorer(name)(ours, theirs).name for name in ROUGE] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    # Another order: all words are shared, no pair is, and one word of two comes in order.
    assert [scorer(name)(["a b"], ["b a"]).value for name in ROUGE] == pytest.approx([100, 0, 50])
    # By their stems.
    assert scorer("rouge2")(["jumping horses"], ["horse jumps"]).value == 0
    assert scorer("rouge1")(["jumping horses"], ["horse jumps"]).value == pytest.approx(100)


@pytest.mark.parametrize("name", ROUGE)
def test_rouge_is_the_mean_over_texts_by_the_best_of_their_references(name: str) -> None:
    rng = Random(1)
    ours, theirs, others = texts(rng, 60), texts(rng, 60), texts(rng, 60)
    others[::3] = [""] * 20
    one = [by_definition(name, *both) for both in zip(ours, theirs, strict=True)]
    best = [max(by_definition(name, *both), first) for *both, first in zip(ours, others, one, strict=True)]
    alone, several = scorer(name)(ours, theirs), scorer(name)(ours, theirs, [others])
    assert alone.value == pytest.approx(sum(one) / 60) and "nrefs:1|" in alone.signature
    assert several.value == pytest.approx(sum(best) / 60) and "nrefs:var|" in several.signature
    assert several.value > alone.value
    assert "nrefs:2|" in scorer(name)(ours, theirs, [theirs]).signature


def test_the_interval_is_a_bootstrap_and_the_same_each_time() -> None:
    # 400 texts of which half are right: an error of 1.96 * 50 / sqrt(400) on either side.
    score = scorer("rouge1")(["a", "b"] * 200, ["a"] * 400)
    assert score == scorer("rouge1")(["a", "b"] * 200, ["a"] * 400)
    assert score.low is not None and score.high is not None
    assert score.value == 50 and (score.low, score.high) == pytest.approx((45.1, 54.9), abs=0.4)
    for part in ("bs:1000|seed:12345", "stem:porter", "measure:f1", "average:mean", "version:rouge-score-"):
        assert part in score.signature
    quick = scorer("rouge1", interval=False)(["a"], ["a"])
    assert quick.low is None and "bs:" not in quick.signature


def test_whoever_scores_letters_that_rouge_cannot_read_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert scorer("rouge1", interval=False)(["猫", "cat"], ["猫", "cat"]).value == 50
    assert "1 of 2 texts" in caplog.text
    caplog.clear()
    assert scorer("rouge1", interval=False)(["Été 1"], ["Été 1"]).value == 100
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_rouge_is_short_for_all_three_and_a_wrong_name_is_refused() -> None:
    assert named(["rouge"]) == list(ROUGE)
    assert named(["ter", "rougeL", "rouge", "ter"]) == ["ter", "rougeL", "rouge1", "rouge2"]
    with pytest.raises(ConfigError, match=r"Did you mean rougeL\?.*rouge2"):
        scorer("rougel")


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    """Sources, their targets, and a further reference for the first of them alone."""
    files = {"test.num": "1 2\n3\n4 5\n", "test.en": "twelve\nthree\nfour five\n", "also.en": "one two\n\n\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in files]


def test_score_compares_with_further_references(
    trained: Path, data: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["score", str(trained), *data[:2], "--metrics", "rouge,bleu", "--json"]
    values = []
    for extra in ([], ["--references", data[2]]):
        assert main([*command, *extra]) == 0
        values.append(json.loads(capsys.readouterr().out))
    alone, several = values
    assert set(alone) >= {*ROUGE, "bleu"} and "ter" not in alone
    for name in ROUGE[::2]:
        assert (alone[name]["value"], several[name]["value"]) == pytest.approx((200 / 3, 100))
    assert (alone["exact_match"], several["exact_match"]) == pytest.approx((200 / 3, 100))
    assert alone["word_accuracy"] == several["word_accuracy"] == 75
    assert "nrefs:var" in several["bleu"]["signature"]
    assert main([*command[:-1]]) == 0
    shown = capsys.readouterr().out
    assert "ROUGE-L" in shown and "stem:porter" in shown and "words right   75.00 %" in shown


def test_references_that_do_not_stand_beside_the_pairs_are_refused(
    trained: Path, data: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(data[2]).write_text("one two\n")
    assert main(["score", str(trained), *data[:2], "--references", data[2]]) > 0
    assert "has 1 line, but" in (error := capsys.readouterr().err) and "3 pairs" in error
