"""What CTranslate2 loads: converted once, from weights that fit, and kept in the model folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

import regard
from conftest import SMALL, VARIANTS
from regard.config import LmConfig, TransformerConfig, read
from regard.errors import FolderError, TrainingError
from regard.fast import converted_cache
from regard.fast.convert_transformer import sinusoids
from regard.fast.model_file import in_eight_bits
from regard.fast.selection import LONGEST_SOURCE
from regard.fast.supported import model_obstacle
from regard.fast.weight_shapes import lm_shapes, transformer_shapes
from regard.folder import layout
from regard.folder.weights import weights_of
from regard.layers import positions
from regard.models import build
from regard.models.base import Writer
from untrained import made

ENGINES = ["ctranslate2", "torch"]
FILES = {"model.bin": b"weights", "config.json": b"{}"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return made("transformer", tmp_path / "m")


def places(path: Path) -> list[str]:
    return sorted(place.name.split("-")[0] for place in (path / "cache" / "ctranslate2").iterdir())


def kept(path: Path, convert: Callable[[str], converted_cache.Files] = lambda _: FILES, precision: str = "int8") -> Any:
    """Where it is kept, or its files."""
    return converted_cache.ConvertedModel(path, convert).load(precision, lambda found: found)


def test_a_model_is_converted_once_for_each_precision(model: Path) -> None:
    made_for: list[str] = []

    def convert(precision: str) -> converted_cache.Files:
        made_for.append(precision)
        return FILES

    for precision in ("int8", "float32", "int8", "float32"):
        place = kept(model, convert, precision)
        assert {name: (place / name).read_bytes() for name in FILES} == FILES
    assert made_for == ["int8", "float32"] and places(model) == ["float32", "int8"]


@pytest.mark.parametrize("changed", [layout.MODEL, layout.CONFIG])
def test_a_model_that_has_changed_is_converted_anew_and_the_old_one_goes(model: Path, changed: str) -> None:
    before = kept(model)
    (model / changed).write_bytes((model / changed).read_bytes() + b" ")
    after = kept(model)
    assert before != after and places(model) == ["int8"]


def test_where_nothing_can_be_written_the_model_is_converted_in_memory(model: Path) -> None:
    (model / "cache").write_text("in the way")
    assert kept(model) == FILES
    assert regard.load(model, engine="ctranslate2").translate("a b", beam=1)


def test_who_comes_second_uses_what_the_first_one_made(model: Path) -> None:
    def slower(_: str) -> converted_cache.Files:
        kept(model)
        return {"model.bin": b"the same, but later"}

    place = kept(model, slower)
    assert (place / "model.bin").read_bytes() == FILES["model.bin"] and places(model) == ["int8"]


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


@pytest.mark.parametrize("type_", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_read_by_both_engines(model: Path, type_: torch.dtype) -> None:
    path = model / layout.MODEL
    weights = {name: weight.to(type_) for name, weight in safetensors.torch.load_file(path).items()}
    found = []
    for stored in (weights, {name: weight.float() for name, weight in weights.items()}):
        safetensors.torch.save_file(stored, path)
        found += [regard.load(model, engine=engine).translate("a b", beam=1, precision="float32") for engine in ENGINES]
    assert len(set(found)) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["transformer", "classifier"])
@pytest.mark.parametrize("type_", [torch.float64, torch.int64, torch.float8_e4m3fn, torch.bool])
def test_weights_of_another_type_are_refused_by_both_engines(
    tmp_path: Path, name: str, type_: torch.dtype, engine: str
) -> None:
    path = made(name, tmp_path / "m") / layout.MODEL
    weights = safetensors.torch.load_file(path)
    last = max(weights)
    safetensors.torch.save_file(weights | {last: weights[last].to(type_)}, path)
    with pytest.raises(FolderError, match=rf"holds '{last}' as {str(type_)[6:17]}\w*; weights are float32, float16"):
        model = regard.load(path.parent, engine=engine)
        model.classify("a b") if name == "classifier" else model.translate("a b")


@pytest.mark.parametrize("how", ["missing", "shape", "nan", "no file", "not a file"])
def test_weights_that_do_not_fit_are_refused(model: Path, how: str) -> None:
    path = model / layout.MODEL
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
