"""CTranslate2 says of a text what torch says, and starts without it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import regard
from conftest import SMALL, VARIANTS
from regard.config import BertConfig, ClassifierConfig, read
from regard.errors import FolderError
from regard.fast.encoder import FastFiller, FastLabeller
from regard.fast.weight_shapes import reader_shapes
from regard.folder import layout
from regard.folder.weights import weights_of
from regard.models import build
from tests.fast.test_translator import run
from untrained import made

TEXTS = ["a b c", "d", "", "o n m l k j i h", "c <mask> a b a", "  ", "b", "<mask> f g [MASK] i j", "a b c", "k " * 50]
VARIED = [(name, variant) for name in ("bert", "classifier") for variant in VARIANTS[name]]
VARIED += [
    ("bert", {"epsilon": 0.1, "width": 18, "heads": 3, "inner": 13}),
    ("classifier", {"depth": 1, "epsilon": 1e-3}),
]


def lively(name: str, path: Path, settings: dict[str, Any]) -> Path:
    """A model nobody trained, whose weights, biases and norms all count."""
    made(name, path, settings=settings)
    weights = safetensors.numpy.load_file(path / layout.MODEL)
    random = np.random.default_rng(7)
    for weight in weights.values():
        weight += random.normal(scale=0.4, size=weight.shape).astype(np.float32)
    safetensors.numpy.save_file(weights, path / layout.MODEL)
    return path


@pytest.fixture(params=VARIED, ids=str)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    path = lively(request.param[0], tmp_path / "m", request.param[1])
    return regard.load(path, engine="auto"), regard.load(path, device="cpu")


@pytest.mark.parametrize("pool", ["mean", "first"])
def test_both_engines_give_the_same_vectors(both: tuple[Any, Any], pool: Any) -> None:
    assert isinstance(both[0], FastFiller | FastLabeller)
    for normalize in (False, True):
        found, expected = (one.embed(TEXTS, pool=pool, normalize=normalize) for one in both)
        assert found == pytest.approx(expected, abs=1e-4) and not found[2].any()
    assert len({tuple(vector.round(2)) for vector in found}) > 6, "texts that are all alike would prove nothing"


def test_both_engines_give_the_same_labels_and_guesses(both: tuple[Any, Any]) -> None:
    fast, slow = both
    if isinstance(fast, FastLabeller):
        found, expected = fast.classify(TEXTS), slow.classify(TEXTS)
        assert [one.label for one in found] == [one.label for one in expected]
        assert len({round(one.probability, 3) for one in found}) > 4, "texts that are all alike would prove nothing"
        for one, other in zip(found, expected, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
        return
    for top in (1, 4, 99):
        gaps = [[gap for text in one.fill(TEXTS, top=top) for gap in text] for one in both]
        assert len(gaps[0]) == len(gaps[1]) == 3
        for one, other in zip(*gaps, strict=True):
            assert [guess.word for guess in one] == [guess.word for guess in other]
            assert [guess.probability for guess in one] == pytest.approx(
                [guess.probability for guess in other], abs=1e-5
            )


@pytest.mark.parametrize(("name", "settings"), VARIED, ids=str)
def test_the_shapes_are_those_of_the_model(name: str, settings: dict[str, object]) -> None:
    config = read({"model": {"name": name, **SMALL[name], **settings}}).model
    assert isinstance(config, BertConfig | ClassifierConfig)
    labels = 3 if name == "classifier" else 0
    own = {name: tuple(weight.shape) for name, weight in weights_of(build(config, 20, labels)).items()}
    assert reader_shapes(config, 20, labels) == own


def test_neither_the_batch_nor_the_threads_change_a_vector(tmp_path: Path) -> None:
    path = lively("bert", tmp_path / "m", {})
    alone = np.concatenate([regard.load(path, engine="ctranslate2", threads=1).embed([text]) for text in TEXTS])
    for threads, tokens in ((1, 1), (2, 40), (3, 10_000)):
        reader = regard.load(path, engine="ctranslate2", threads=threads)
        reader.batch_tokens = tokens
        assert reader.embed(TEXTS) == pytest.approx(alone, abs=1e-5)


def test_eight_bits_are_near_and_not_the_same(tmp_path: Path) -> None:
    fast = regard.load(lively("bert", tmp_path / "m", {}), engine="ctranslate2")
    exact = fast.embed(TEXTS, normalize=True)
    fast.precision = "int8"
    near = fast.embed(TEXTS, normalize=True)
    # 0.99 on processors with instructions for eight bits; older ones round products of these large random weights more.
    assert ((near * exact).sum(1)[[0, 1, 3, 4]] > 0.9).all() and (near != exact).any()


def test_reading_needs_no_torch_even_to_convert(tmp_path: Path) -> None:
    bert, classifier = (lively(name, tmp_path / name, {}) for name in ("bert", "classifier"))
    for _ in range(2):  # converted, then found
        embedded, filled = run("embed", str(bert), "a b c"), run("fill", str(bert), "a <mask> c", "--json")
        labelled = run("classify", str(classifier), "a b c")
        assert [one.stderr for one in (embedded, filled, labelled)] == ["False\n"] * 3
    slow = regard.load(bert, device="cpu")
    assert json.loads(embedded.stdout) == pytest.approx(slow.embed(["a b c"])[0].tolist(), abs=1e-4)
    assert labelled.stdout.split("\t")[0] == regard.load(classifier, device="cpu").classify("a b c").label
    assert run("embed", str(bert), "a b c", "--engine", "torch").stderr == "True\n"


def test_what_cannot_be_done_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from regard.cli.main import main

    path = str(made("bert", tmp_path / "m"))
    for options, message in (
        (["--engine", "torch", "--precision", "int8"], "Torch reads in float32 alone"),
        (["--precision", "int4"], "no precision 'int4'"),
        (["--engine", "marian"], "no engine 'marian'"),
        (["--engine", "ctranslate2", "--device", "cuda"], "cannot do device cuda"),
    ):
        assert main(["embed", path, "a", *options]) != 0
        assert message in capsys.readouterr().err
    assert main(["classify", path, "a", "--engine", "ctranslate2"]) != 0
    assert "learned to guess hidden words" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["missing", "shape", "not a file"])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, how: str) -> None:
    path = made("classifier", tmp_path / "m")
    weights = safetensors.numpy.load_file(path / layout.MODEL)
    if how == "missing":
        del weights["body.pooler.bias"]
    elif how == "shape":
        weights["labels.weight"] = weights["labels.weight"][:1]
    safetensors.numpy.save_file(weights, path / layout.MODEL)
    if how == "not a file":
        (path / layout.MODEL).write_bytes(b"nothing")
    with pytest.raises(FolderError, match=r"model\.safetensors"):
        regard.load(path, engine="ctranslate2").classify("a b")
