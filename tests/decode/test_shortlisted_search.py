"""Writing by a shortlist: only candidates, the same text by both engines, and nothing else changed."""

import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from conftest import write_digits
from regard.cli.main import main
from regard.config import DecodeConfig
from regard.decode.active_vocabulary import Columns
from regard.decode.beam_search import beam_search
from regard.decode.generator import Author
from regard.decode.lexical_shortlist import FILE, Shortlist, open_shortlist
from regard.decode.sampling import greedy, sample
from regard.decode.translator import Translator
from regard.errors import ConfigError
from regard.folder.layout import load_config
from regard.text.tokenizers.tokenizer import END, SPECIALS, UNKNOWN, load_tokenizer
from toys import Toy, batch, random_toy, same
from untrained import leaning, made

TEXTS = [f"{one} {other}" for one in "adgjm" for other in "behkn"] + ["d", "o n m l k j i h", "c c a b a"]
EVERY = 20  # words of the untrained models
ENGINES = ("torch", "ctranslate2")
CPU = torch.device("cpu")
OWN = [0, 1, 2, 3, 5, 7, 8]
OTHERS = list(range(9))


def with_shortlist(path: Path, likeliest_VN: np.ndarray) -> Shortlist:
    """Gives a model folder a shortlist that nobody learned."""
    tokenizer = load_tokenizer(path, load_config(path)[0].text)
    shortlist = Shortlist(likeliest_VN.astype(np.int32), np.array([5], np.int32))
    (path / FILE).write_bytes(shortlist.as_bytes(tokenizer))
    return shortlist


def some_words_each() -> np.ndarray:
    return np.random.default_rng(1).integers(len(SPECIALS), EVERY, (EVERY, 5))


def masked(toy: Toy) -> Toy:
    """The same model, to which all words but OWN are as good as impossible."""

    def scores(source: tuple[int, ...], written: tuple[int, ...]) -> np.ndarray:
        logits = toy.scores(source, written).copy()
        logits[[word for word in OTHERS if word not in OWN]] = -1e6
        return logits

    return Toy(scores, toy.vocabulary)


@pytest.mark.parametrize("search", [beam_search, greedy, sample])
@pytest.mark.parametrize("rules", [{}, {"no_repeat": 1, "max_length": 3}, {"no_repeat": 2, "min_length": 4}], ids=str)
@pytest.mark.parametrize("prefix", [[], [8, 5]])
def test_words_without_a_column_might_as_well_be_impossible(
    search: Any, rules: dict[str, Any], prefix: list[int]
) -> None:
    config = DecodeConfig(n_best=1 if search is greedy else 3, max_length=rules.get("max_length", 6), beam=4)
    config = DecodeConfig(**{**vars(config), **rules, "sample": search is sample})
    for seed in range(3):
        toy = random_toy(seed, vocabulary=9)
        columns = Columns([np.array(OWN), np.array(OTHERS)], CPU)
        ours, beside = search(toy, batch([4, 5], [6]), config, [prefix, []], columns)
        (expected,) = search(masked(toy), batch([4, 5]), config, [prefix])
        assert same(ours, [hypothesis for hypothesis in expected if hypothesis.score > -1e4])
        assert same(beside, search(toy, batch([6]), config)[0])


def test_a_sentence_with_no_candidate_left_writes_unknown_whatever_its_neighbours_may_write() -> None:
    columns = Columns([np.array([0, 1, 2, 3, 5, 7]), np.array(OTHERS)], CPU)
    config = DecodeConfig(no_repeat=1, min_length=5)
    found = greedy(random_toy(1, vocabulary=9), batch([4], [6]), config, (), columns)
    assert sorted(found[0][0].ids) == [UNKNOWN, 5, 7] and UNKNOWN not in found[1][0].ids


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("beam", [1, 4])
def test_with_every_word_a_candidate_nothing_changes(tmp_path: Path, engine: str, beam: int) -> None:
    path = leaning(tmp_path / "m", end=0.5 if beam == 1 else 3.0)
    with_shortlist(path, np.tile(np.arange(EVERY), (EVERY, 1)))
    model, settings = regard.load(path, engine=engine), {"beam": beam, "precision": "float32"}
    found, expected = (model.n_best(TEXTS, shortlist=most, **settings) for most in (EVERY, 0))
    assert [some[0].text for some in found] == [some[0].text for some in expected]
    assert [some[0].score for some in found] == pytest.approx([some[0].score for some in expected], abs=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_consists_of_candidates(tmp_path: Path, engine: str) -> None:
    path = leaning(tmp_path / "m")
    shortlist = with_shortlist(path, some_words_each())
    model, outside = regard.load(path, engine=engine), 0
    for text in TEXTS:
        source, written, free = model.tokenizer.encode([text, *(model.translate(text, shortlist=n) for n in (1, 0))])
        allowed = set(shortlist.candidates([*source, END], most=1).tolist())
        assert set(written) <= allowed
        outside += not set(free) <= allowed
    assert outside > len(TEXTS) / 5, "the model would have kept to the candidates anyway"


@pytest.mark.parametrize(("end", "forbidden"), [(3.0, -40.0), (0.0, 1.0), (-40.0, -40.0)])
@pytest.mark.parametrize("beam", [1, 4])
def test_alone_a_text_is_the_same_by_both_engines(tmp_path: Path, end: float, forbidden: float, beam: int) -> None:
    path = leaning(tmp_path / "m", end=end, forbidden=forbidden)
    with_shortlist(path, some_words_each())
    # What the engine leaves to torch proves nothing; it need not, where texts end and words are not forbidden.
    fast, slow = regard.load(path, engine="ctranslate2" if end > 0 else "auto"), regard.load(path, device="cpu")
    for text in TEXTS[::3]:
        (ours,), (theirs,) = (one.n_best([text], shortlist=5, beam=beam, precision="float32") for one in (fast, slow))
        assert ours[0].text == theirs[0].text and ours[0].score == pytest.approx(theirs[0].score, abs=1e-4)


def test_alone_the_engine_cuts_an_endless_text_of_candidates(tmp_path: Path) -> None:
    path = leaning(tmp_path / "m", end=-40.0)
    shortlist = with_shortlist(path, some_words_each())
    fast = regard.load(path, engine="ctranslate2")
    source, written = fast.tokenizer.encode(["a b c", fast.translate("a b c", beam=3, shortlist=2)])
    assert len(written) == 53 and set(written) <= set(shortlist.candidates([*source, END], most=2).tolist())


@pytest.mark.parametrize("settings", [{}, {"beam": 1}, {"sample": True}, {"prefix": "o a", "no_repeat": 2}], ids=str)
def test_with_torch_the_texts_beside_it_do_not_change_a_text(tmp_path: Path, settings: dict[str, Any]) -> None:
    path = leaning(tmp_path / "m")
    with_shortlist(path, some_words_each())
    model = regard.load(path, device="cpu")
    alone = [model.translate(text, shortlist=2, **settings) for text in TEXTS]
    assert model.translate(TEXTS, shortlist=2, **settings) == alone
    assert model.translate(TEXTS, **settings) != alone


def test_the_tree_of_a_search_is_of_candidates(tmp_path: Path) -> None:
    path = leaning(tmp_path / "m")
    with_shortlist(path, some_words_each())
    model = regard.load(path, device="cpu")
    trees = [model.search_tree("a b", shortlist=most) for most in (1, 2, 0)]
    counts = [len({node.text for node in tree.nodes}) for tree in trees]
    assert all(fewer < more for fewer, more in pairwise(counts))


@pytest.fixture
def digits(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "model", ignore=shutil.ignore_patterns("checkpoints")))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("asked", [["--shortlist"], ["--shortlist", "3"]])
def test_the_command_learns_a_shortlist_says_so_and_translates_by_it(
    digits: Path, engine: str, asked: list[str], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for said in ("Learning once", ""):
        caplog.clear()
        assert main(["translate", str(digits), "1 2 3", "--engine", engine, *asked]) == 0
        assert capsys.readouterr().out == "one two three\n" and said in caplog.text
    assert not caplog.text and (digits / FILE).exists()


def test_score_translates_by_a_shortlist_but_measures_perplexity_over_all_words(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_digits(tmp_path, 20, "test")
    # Nothing is listed, so that a translation can only copy its source, or write the one frequent word.
    nothing = np.zeros((load_tokenizer(digits, load_config(digits)[0].text).size, 1))
    with_shortlist(digits, nothing)
    tables = []
    for asked in ([], ["--shortlist", "1"]):
        assert main(["score", str(digits), *data, "--json", *asked]) == 0
        tables.append(json.loads(capsys.readouterr().out))
    assert (
        tables[0]["perplexity"] == tables[1]["perplexity"] and tables[0]["word_accuracy"] > tables[1]["word_accuracy"]
    )


def test_a_model_that_has_no_folder_has_no_shortlist(digits: Path) -> None:
    loaded = regard.load(digits, device="cpu")
    with pytest.raises(ConfigError, match=r"no folder. Set decode\.shortlist=0"):
        Translator(loaded.model, loaded.tokenizer).translate("1", shortlist=5)


def test_a_model_that_goes_on_with_a_text_has_no_shortlist(tmp_path: Path) -> None:
    author = regard.load(made("lm", tmp_path / "m", job="text"))
    assert isinstance(author, Author)
    with pytest.raises(ConfigError, match="Set shortlist=0"):
        author.write("a", shortlist=5)


def test_who_asks_for_no_shortlist_does_not_wait_for_its_module(digits: Path) -> None:
    open_shortlist(digits, load_tokenizer(digits, load_config(digits)[0].text))
    regard.load(digits, engine="ctranslate2").translate("1")  # converts
    code = (
        "import sys; from regard.cli.main import main; main(sys.argv[1:])\n"
        "assert ('regard.decode.lexical_shortlist' in sys.modules) == ('numpy' in sys.modules) == ('--shortlist' in sys.argv)"
    )
    for asked in ([], ["--shortlist"]):
        command = [sys.executable, "-c", code, "translate", str(digits), "1", *asked]
        subprocess.run(command, check=True, capture_output=True)
