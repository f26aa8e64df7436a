"""Minimum Bayes risk: chrF as sacrebleu has it, and the text that is most like the others."""

from collections import Counter
from pathlib import Path

import pytest
from sacrebleu.metrics import CHRF

import regard
from regard.cli.main import main
from regard.config import DecodeConfig
from regard.decode.mbr import by_consensus, similarities
from regard.decode.translation import Translation
from regard.decode.translator import Translator
from regard.errors import ConfigError
from regard.text.tokenizers.tokenizer import Listed
from toys import random_toy
from untrained import leaning

TEXTS = [
    "The cat sat on the mat.",
    "The cat sat on a mat.",
    "the  CAT",
    "cat",
    "",
    "It is raining cats and dogs, dogs and cats.",
    "ça va où, l'été ?",
    "aaaaaaaaaaaa",
    "aaa aaa",
    " ",
]


def test_every_similarity_is_sacrebleus_sentence_score() -> None:
    ours, theirs = similarities(TEXTS), CHRF()
    for row, text in enumerate(TEXTS):
        for column, reference in enumerate(TEXTS):
            assert ours[row, column] == pytest.approx(theirs.sentence_score(text, [reference]).score), (text, reference)


def translations(*texts: str) -> list[Translation]:
    return [Translation(text, 0.0) for text in texts]


def test_the_text_most_like_the_others_comes_first() -> None:
    found = by_consensus([], translations("a red dog", "a red log", "blue fish", "a red fog", "a rad dog"))
    assert found[0].text == "a red dog" and found[-1].text == "blue fish"


def test_the_score_is_the_mean_against_all_samples_but_itself() -> None:
    candidates, samples = ["abcabd", "abcd"], ["abcd", "abcd", "xyz", "abd"]
    chrf = CHRF()
    found = {one.text: one.score for one in by_consensus(translations(*candidates), translations(*samples))}
    assert set(found) == {*candidates, *samples}
    for text, score in found.items():
        others = list((Counter(samples) - Counter([text])).elements())
        right = sum(chrf.sentence_score(text, [other]).score for other in others) / len(others)
        assert score == pytest.approx(right)


WORDS = Listed("words", ["▁a", "▁b", "▁c", "▁d"])


def test_a_translator_chooses_among_samples_and_what_beam_search_finds() -> None:
    ours = Translator(random_toy(3, vocabulary=WORDS.size, end=0.3), WORDS, DecodeConfig(max_length=6))
    (drawn,) = ours.n_best(["a b c"], sample=True, n_best=8, seed=5)
    (searched,) = ours.n_best(["a b c"], n_best=4, beam=4)
    (found,) = ours.n_best(["a b c"], mbr=8, seed=5, beam=4, n_best=20)
    assert found == by_consensus(searched, drawn) and len(found) == len({one.text for one in (*searched, *drawn)})
    assert ours.translate(["a b c", ""], mbr=8, seed=5, beam=4) == [found[0].text, ""]


def test_settings_that_contradict_it_are_refused() -> None:
    for settings in ({"mbr": 1}, {"mbr": 4, "sample": True}):
        with pytest.raises(ConfigError, match="draws samples by itself"):
            DecodeConfig(**settings)


def test_the_command_line_and_both_engines_give_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = leaning(tmp_path / "model")
    right = regard.load(model).translate("a b c", mbr=6)
    assert regard.load(model, engine="auto").translate("a b c", mbr=6) == right
    assert main(["translate", str(model), "a b c", "--mbr", "6"]) == 0
    assert capsys.readouterr().out == right + "\n"
    assert main(["translate", str(model), "a b c", "--mbr", "6", "--engine", "ctranslate2"]) == ConfigError.code
    assert "decode.mbr=6" in capsys.readouterr().err
