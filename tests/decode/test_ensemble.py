"""Several models that write as one: the mean of their probabilities, whoever asks and however."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import regard
from conftest import QUICK, VOCABULARY, WRITERS, small, write_digits
from regard.cli.main import main, parser
from regard.config import DecodeConfig
from regard.decode.active_vocabulary import Columns
from regard.decode.beam_search import beam_search
from regard.decode.ensemble import Ensemble
from regard.decode.sampling import greedy, sample
from regard.errors import ConfigError, FolderError, TraceError
from regard.models import build
from regard.text.tokenizers.tokenizer import BEGIN, Listed
from toys import Text, Toy, batch, log_softmax, random_toy, same
from untrained import leaning, made

SENTENCES = batch([4, 5, 6], [6], [5, 5, 4, 6])


def mean_of(*toys: Toy) -> Toy:
    """One model with the mean probabilities of several."""

    def scores(source: Text, written: Text) -> np.ndarray:
        return np.log(np.mean([np.exp(log_softmax(toy.scores(source, written))) for toy in toys], axis=0))

    def looks(source: Text, written: Text) -> list[float]:
        return [float(x) for x in np.mean([toy.looks(source, written) for toy in toys if toy.looks], axis=0)]

    return Toy(scores, toys[0].vocabulary, looks if toys[0].looks else None)


@pytest.mark.parametrize("search", [greedy, sample, beam_search])
@pytest.mark.parametrize("settings", [{}, {"no_repeat": 1, "min_length": 2, "length_penalty": 0.0}])
def test_every_search_finds_what_one_model_with_the_mean_would(search, settings) -> None:
    members = [random_toy(seed, end=0.5) for seed in (1, 2, 3)]
    n_best = 1 if search is greedy else 3
    config = DecodeConfig(max_length=6, beam=4, n_best=n_best, sample=search is sample, **settings)
    ours = search(Ensemble(members), SENTENCES, config, [[5], [], [4]])
    for one, other in zip(ours, search(mean_of(*members), SENTENCES, config, [[5], [], [4]]), strict=True):
        assert same(one, other)


def test_coverage_is_that_of_the_mean_look() -> None:
    members = [random_toy(seed, end=0.5, attention=True) for seed in (1, 2)]
    config = DecodeConfig(max_length=5, coverage_penalty=0.4, n_best=2)
    for one, other in zip(
        beam_search(Ensemble(members), SENTENCES, config),
        beam_search(mean_of(*members), SENTENCES, config),
        strict=True,
    ):
        assert same(one, other)


def test_a_shortlist_is_of_the_mean_over_all_words_whatever_other_sentences_need() -> None:
    both = Ensemble([random_toy(seed, vocabulary=9, end=0.5) for seed in (1, 2)])
    own, all_words = np.array([0, 1, 2, 3, 5, 7]), np.arange(9)
    config, device = DecodeConfig(max_length=4, n_best=2), torch.device("cpu")
    (alone,) = beam_search(both, batch([5, 6]), config, columns=Columns([own], device))
    beside = beam_search(both, batch([5, 6], [7]), config, columns=Columns([own, all_words], device))
    assert same(alone, beside[0]) and all(set(found.ids) <= {5, 7} for found in alone)


@pytest.mark.parametrize("name", WRITERS)
def test_a_model_with_itself_writes_what_it_writes_alone(name: str) -> None:
    model = build(small(name).model, VOCABULARY).eval()
    config = DecodeConfig(max_length=6, n_best=2)
    for one, other in zip(
        beam_search(Ensemble([model, model]), SENTENCES, config), beam_search(model, SENTENCES, config), strict=True
    ):
        assert same(one, other)


def test_reading_all_at_once_says_what_writing_word_by_word_says() -> None:
    members = [build(small(name).model, VOCABULARY) for name in ("transformer", "bahdanau", "lm")]
    both = Ensemble(members).eval()
    target_BT = torch.tensor([[BEGIN, 5, 6, 7]] * 3)
    with torch.inference_mode():
        at_once_BTV = both.words(both(SENTENCES, target_BT).hidden_BTW)
        state = both.start(SENTENCES)
        for position in range(4):
            logits_BV, state = both.step(target_BT[:, position], state)
            assert_close(logits_BV, at_once_BTV[:, position], atol=1e-4, rtol=1e-4)
        each = [m.words(m(SENTENCES, target_BT).hidden_BTW).softmax(-1) for m in members]
    assert_close(at_once_BTV.exp(), torch.stack(each).mean(0), atol=1e-5, rtol=1e-4)


def test_the_shortest_room_of_all_is_that_of_the_ensemble() -> None:
    models = [build(small("transformer").model, 9), build(small("lm").model, 9), build(small("conv").model, 9)]
    assert [model.places(10) for model in models] == [None, 53, 31]
    assert Ensemble(models).places(10) == 31 and Ensemble(models[:1]).places(10) is None


def test_folders_are_loaded_together_from_python_and_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = leaning(tmp_path / "one"), leaning(tmp_path / "two", name="lm")
    both = regard.load([one, two])
    apart = [regard.load(path) for path in (one, two)]
    (ours,) = both.log_probabilities(["a b"], ["c"])
    assert ours[1] == 2
    assert main(["translate", str(one), "a b c", "--with", str(two), "--beam", "3", "--n-best", "2"]) == 0
    printed = [line.split("\t")[2] for line in capsys.readouterr().out.splitlines()]
    assert printed == [found.text for found in both.n_best(["a b c"], beam=3, n_best=2)[0]]
    # A text of no words is one word, the end, whose probability is a plain mean.
    chances = [math.exp(model.log_probabilities(["a b"], [""])[0][0]) for model in (*apart, both)]
    assert chances[2] == pytest.approx((chances[0] + chances[1]) / 2)


def test_score_measures_models_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = leaning(tmp_path / "one"), leaning(tmp_path / "two")
    (tmp_path / "test.tsv").write_text("a b\tc\nd\te f\n")
    assert main(["score", str(one), "--with", str(two), str(tmp_path / "test.tsv"), "--json"]) == 0
    assert f'"perplexity": {regard.score([one, two], tmp_path / "test.tsv").perplexity}' in capsys.readouterr().out


def test_what_cannot_be_averaged_is_refused(tmp_path: Path) -> None:
    one, bert = made("transformer", tmp_path / "one"), made("bert", tmp_path / "bert")
    other, labels = made("transformer", tmp_path / "other"), made("classifier", tmp_path / "labels")
    words = Listed("words", ["<mask>", *(f"\u2581{letter}" for letter in "ABCDEFGHIJKLMNO")])
    (other / words.file_name).write_bytes(words.as_bytes())
    with pytest.raises(FolderError, match="not those of"):
        regard.load([one, other])
    with pytest.raises(FolderError, match="guess hidden words"):
        regard.load([one, bert])
    with pytest.raises(ConfigError, match="several models together"):
        regard.load([one, one], engine="ctranslate2")
    with pytest.raises(TraceError, match="one of them"):
        regard.load([one, one]).attention("a b")
    assert main(["score", str(labels), "--with", str(one), "x.tsv"]) == ConfigError.code


def test_a_model_that_learns_from_other_text_may_have_the_words_of_another(tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other.tsv"
    regard.train(write_digits(tmp_path, 60), first, settings={**QUICK, "train.steps": 2})
    other.write_text("".join(f"3 {number}\t{number} zzz\n" for number in range(9)) * 4)
    assert main(["train", str(other), "--words-of", str(first), "--to", str(tmp_path / "cli"), *_told()]) == 0
    settings = {key: value for key, value in QUICK.items() if not key.startswith("text.")} | {"train.steps": 2}
    regard.train(other, tmp_path / "python", words_of=first, settings=settings)
    for second in (tmp_path / "cli", tmp_path / "python"):
        assert isinstance(regard.load([first, second]).translate("1 2"), str)


def test_words_come_from_one_folder(tmp_path: Path) -> None:
    model = str(made("transformer", tmp_path / "model"))
    for given, said in (
        (["--words-of", model, "--from", model], "brings its own words"),
        (
            ["--words-of", model, "--set", "text.vocabulary=7"],
            "text.vocabulary comes from the folder given by --words-of",
        ),
    ):
        with pytest.raises(ConfigError, match=said):
            options = parser().parse_args(["train", "builtin:copy", "--to", str(tmp_path / "new"), *given])
            options.run(options)


def _told() -> list[str]:
    told = {**QUICK, "train.steps": 2}
    return [
        part
        for key, value in told.items()
        if key.startswith(("train.", "model."))
        for part in ("--set", f"{key}={value}")
    ]
