"""CTranslate2 writes what torch writes, starts without it, and leaves to it what it cannot do."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config import DecodeConfig
from regard.decode.translation import Asked
from regard.decode.translator import Translator
from regard.errors import ConfigError
from regard.fast.translator import FastTranslator
from untrained import leaning, made

TEXTS = ["a b c", "d", "", "o n m l k j i h", "c c a b a", "  ", "b", "e f g h i j k l m n o a b c d e f", "a b c"]
TEXTS += [f"{one} {other}" for one in "adgjm" for other in "behkn"]
CAN = [{}, {"norm": "before"}, {"positions": "learned", "longest": 70}, {"activation": "gelu"}, {"tie": "target"}]
CAN += [
    {"tie": "none"},
    {"decoder_depth": 1},
    {"width": 18, "heads": 3, "inner": 13},
    {"tie": "none", "norm": "before"},
]
CAN += [{"tie": "target", "positions": "learned", "longest": 70}]
CAN += [
    {"name": "lm", **settings}
    for settings in (
        {"longest": 90},
        {"longest": 90, "activation": "gelu", "norm": "after"},
        {"positions": "sinusoidal", "norm": "after", "activation": "relu"},
        {"longest": 90, "tie": False},
    )
]
CANNOT = [("transformer", {"activation": "elu"}), ("transformer", {"positions": "relative"}), ("gru", {})]
CANNOT += [("lm", {"activation": "elu"}), ("lm", {"positions": "relative"})]


class Left:
    """Torch, and what is left to it."""

    def __init__(self, slow: Translator, left: list[Asked]) -> None:
        self.slow, self.left = slow, left

    def _written(self, asked: list[Asked], config: DecodeConfig) -> Iterator[Any]:
        self.left.extend(asked)
        return self.slow._written(asked, config)


def both(path: Path) -> tuple[FastTranslator, Translator]:
    return regard.load(path, engine="ctranslate2"), regard.load(path, device="cpu")


@pytest.mark.parametrize("variant", CAN, ids=str)
@pytest.mark.parametrize(
    "settings",
    [{"beam": 1}, {"beam": 5}, {"beam": 5, "n_best": 3}, {"beam": 4, "n_best": 3, "length_penalty": 0.0}],
    ids=str,
)
def test_both_engines_write_the_same(
    tmp_path: Path, variant: dict[str, object], settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Short texts when searching; most of what an untrained model writes would have no end.
    path = leaning(tmp_path / "m", end=0.5 if settings["beam"] == 1 else 3.0, **variant)
    fast, slow = regard.load(path, engine="auto"), regard.load(path, device="cpu")
    left: list[Asked] = []
    monkeypatch.setattr(fast, "_otherwise", lambda: Left(slow, left))
    found, expected = (one.n_best(TEXTS, precision="float32", **settings) for one in (fast, slow))
    assert [[text for text, _ in some] for some in found] == [[text for text, _ in some] for some in expected]
    scores = [[score for some in part for _, score in some] for part in (found, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert len({round(score, 3) for score in scores[0]}) > 5, "texts that are all alike would prove nothing"
    assert len(left) < len(TEXTS) * 2 / 3, "what is left to torch would prove nothing"


@pytest.mark.parametrize("name", ["transformer", "lm"])
@pytest.mark.parametrize("end", [-40.0, 0.0])
@pytest.mark.parametrize("beam", [1, 4])
def test_where_words_are_forbidden_or_texts_endless_the_text_is_still_the_same(
    tmp_path: Path, name: str, end: float, beam: int
) -> None:
    path = leaning(tmp_path / "m", end=end, forbidden=1.0, name=name)
    ours, theirs = regard.load(path, engine="auto"), regard.load(path, device="cpu")
    settings = {"beam": beam, "precision": "float32"}
    found, expected = ours.n_best(TEXTS, **settings), theirs.n_best(TEXTS, **settings)
    assert [some[0].text for some in found] == [some[0].text for some in expected]
    assert [some[0].score for some in found] == pytest.approx([some[0].score for some in expected], abs=1e-4)


@pytest.mark.parametrize("name", ["transformer", "lm"])
@pytest.mark.parametrize("beam", [2, 5])
def test_a_text_that_ends_at_once_is_found(tmp_path: Path, name: str, beam: int) -> None:
    path = leaning(tmp_path / "m", end=8.0, name=name)
    fast, slow = both(path)
    settings = {"beam": beam, "n_best": beam, "precision": "float32"}
    found, expected = fast.n_best(TEXTS, **settings), slow.n_best(TEXTS, **settings)
    assert [[text for text, _ in some] for some in found] == [[text for text, _ in some] for some in expected]
    assert all("" in [text for text, _ in some] for some in found)


def test_alone_the_engine_cuts_an_endless_text_at_its_limit(tmp_path: Path) -> None:
    fast = regard.load(leaning(tmp_path / "m", end=-40.0), engine="ctranslate2")
    assert len(fast.translate("a b c", beam=3).split()) == 53


def test_neither_the_batch_nor_the_threads_change_a_text(tmp_path: Path) -> None:
    path = leaning(tmp_path / "m")
    alone = [regard.load(path, engine="ctranslate2", threads=1).translate(text) for text in TEXTS]
    for threads, tokens in ((1, 1), (2, 40), (3, 10_000)):
        assert regard.load(path, engine="ctranslate2", threads=threads).translate(TEXTS, batch_tokens=tokens) == alone


@pytest.mark.parametrize(("name", "settings"), CANNOT, ids=str)
def test_what_a_model_has_that_the_engine_has_not_is_named_or_left_to_torch(
    tmp_path: Path, name: str, settings: dict[str, object]
) -> None:
    path = made(name, tmp_path / "m", settings=settings)
    with pytest.raises(ConfigError, match=r"cannot do model\..*Use --engine auto or torch"):
        regard.load(path, engine="ctranslate2")
    assert isinstance(regard.load(path, engine="auto"), Translator)


@pytest.mark.parametrize(
    "settings",
    [
        {"sample": True},
        {"coverage_penalty": 0.2},
        {"no_repeat": 2},
        {"min_length": 4},
        {"max_length": 3},
        {"length_penalty": -0.5},
        {"prefix": "b a"},
    ],
    ids=str,
)
def test_a_setting_it_cannot_follow_is_named_or_left_to_torch(tmp_path: Path, settings: dict[str, object]) -> None:
    path = leaning(tmp_path / "m")
    fast, slow = both(path)
    with pytest.raises(ConfigError, match=f"cannot do .*{next(iter(settings))}"):
        fast.translate(TEXTS, **settings)
    auto = regard.load(path, engine="auto")
    assert isinstance(auto, FastTranslator) and auto.translate(TEXTS, **settings) == slow.translate(TEXTS, **settings)


def test_an_engine_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no engine 'marian'"):
        regard.load(leaning(tmp_path / "m"), engine="marian")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; from regard.cli.main import main; code = main(sys.argv[1:]);"
        "print('torch' in sys.modules, file=sys.stderr); sys.exit(code)"
    )
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)


def test_translating_needs_no_torch_even_to_convert(tmp_path: Path) -> None:
    path = leaning(tmp_path / "m")
    for _ in range(2):  # converted, then found
        done = run("translate", str(path), "a b c", "--precision", "float32", "--beam", "1")
        assert done.stderr == "False\n"
        assert done.stdout == regard.load(path, device="cpu").translate("a b c", beam=1) + "\n"
    assert run("translate", str(path), "a b c", "--engine", "torch").stderr == "True\n"


def test_help_needs_no_torch() -> None:
    code = "import sys; from regard.cli.main import main\ntry: main(['--help'])\nfinally: assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
