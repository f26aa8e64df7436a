"""What CTranslate2 loads: converted once, from weights that fit, and kept in the model folder."""

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import regard
from conftest import SMALL, VARIANTS
from regard import folder
from regard.config import LmConfig, TransformerConfig, read
from regard.engine import cache
from regard.engine.binary import in_eight_bits
from regard.engine.conversion import sinusoids
from regard.engine.expressible import model_obstacle
from regard.engine.opening import LONGEST_SOURCE
from regard.engine.shapes import lm_shapes, transformer_shapes
from regard.errors import FolderError, TrainingError
from regard.layers import positions
from regard.models import build
from regard.models.interface import Writer
from regard.weights import weights_of
from untrained import made

FILES = {"model.bin": b"weights", "config.json": b"{}"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return made("transformer", tmp_path / "m")


def places(path: Path) -> list[str]:
    return sorted(place.name.split("-")[0] for place in (path / "cache" / "ctranslate2").iterdir())


def test_a_model_is_converted_once_for_each_precision(model: Path) -> None:
    made_for: list[str] = []

    def convert(precision: str) -> cache.Files:
        made_for.append(precision)
        return FILES

    for precision in ("int8", "float32", "int8", "float32"):
        place = cache.kept(model, precision, lambda precision=precision: convert(precision))  # type: ignore[misc]
        assert isinstance(place, Path) and {f.name: f.read_bytes() for f in place.iterdir()} == FILES
    assert made_for == ["int8", "float32"] and places(model) == ["float32", "int8"]


@pytest.mark.parametrize("changed", [folder.MODEL, folder.CONFIG])
def test_a_model_that_has_changed_is_converted_anew_and_the_old_one_goes(model: Path, changed: str) -> None:
    before = cache.kept(model, "int8", lambda: FILES)
    (model / changed).write_bytes((model / changed).read_bytes() + b" ")
    after = cache.kept(model, "int8", lambda: FILES)
    assert before != after and places(model) == ["int8"]


def test_where_nothing_can_be_written_the_model_is_converted_in_memory(model: Path) -> None:
    (model / "cache").write_text("in the way")
    assert cache.kept(model, "int8", lambda: FILES) == FILES
    assert regard.load(model, engine="ctranslate2").translate("a b", beam=1)


def test_two_processes_that_convert_at_once_do_not_spoil_each_others_work(model: Path) -> None:
    def slower() -> cache.Files:
        cache.kept(model, "int8", lambda: FILES)
        return FILES

    assert cache.kept(model, "int8", slower) == FILES  # its own, in memory: the other's is there, whole
    assert places(model) == ["int8"] and cache.kept(model, "int8", lambda: {}) != {}


def test_eight_bits_miss_a_weight_by_half_a_step_at_most() -> None:
    weight = np.random.default_rng(1).normal(size=(7, 5)).astype(np.float32)
    weight[3] = 0
    stored = in_eight_bits({"a/weight": weight, "a/bias": weight[0]})
    step = 1 / stored["a/weight_scale"][:, None]
    assert (np.abs(stored["a/weight"] * step - weight) <= step / 2 * 1.001).all()
    assert (np.abs(stored["a/weight"][:3]).max(1) == 127).all() and (stored["a/bias"] == weight[0]).all()


@pytest.mark.parametrize(
    ("name", "variant"), [(name, variant) for name in ("transformer", "lm") for variant in VARIANTS[name]], ids=str
)
def test_the_shapes_are_those_of_the_model(name: str, variant: dict[str, object]) -> None:
    config = read({"model": {"name": name, **SMALL[name], **variant}}).model
    assert isinstance(config, TransformerConfig | LmConfig)
    if model_obstacle(config) is None:
        own = {name: tuple(weight.shape) for name, weight in weights_of(build(config, 20)).items()}
        shapes = lm_shapes(config, 20) if isinstance(config, LmConfig) else transformer_shapes(config, 20)
        assert shapes == own


def test_positions_and_limits_are_those_of_the_models() -> None:
    assert sinusoids(300, 18) == pytest.approx(positions.sinusoids(300, 18).numpy(), abs=1e-5)
    assert Writer.longest_source == LONGEST_SOURCE


@pytest.mark.parametrize("how", ["missing", "shape", "nan", "no file", "not a file"])
def test_weights_that_do_not_fit_are_refused(model: Path, how: str) -> None:
    path = model / folder.MODEL
    weights = safetensors.numpy.load_file(path)
    name = "decoder.layers.0.feed_forward.widen.weight"
    if how == "missing":
        del weights[name]
    elif how == "shape":
        weights[name] = weights[name][:-1]
    elif how == "nan":
        weights[name][0, 0] = np.nan
    safetensors.numpy.save_file(weights, path)
    if how == "no file":
        path.unlink()
    elif how == "not a file":
        path.write_bytes(b"nothing")
    with pytest.raises(TrainingError if how == "nan" else FolderError, match=r"model\.safetensors"):
        regard.load(model, engine="ctranslate2").translate("a b")
