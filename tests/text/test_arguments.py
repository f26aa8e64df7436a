"""Whoever is given text by a caller takes one or several, in any iterable, and names the argument that is none.

The methods are found, not listed: one that is added later is held to the same.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np
import pytest

import regard
from conftest import READERS, WRITERS
from regard.config import MODEL_CONFIGS
from regard.decode.process_pool import Crew
from regard.errors import ArgumentError, ConfigError, DataError, RegardError
from regard.inference.load import Opening
from regard.models import MODELS
from regard.models.base import LanguageModel
from untrained import made

AUTHORS = [name for name, kind in MODEL_CONFIGS.items() if issubclass(MODELS[kind], LanguageModel)]
KINDS = [f"{name} pairs torch" for name in WRITERS]
KINDS += [f"{name} pairs {engine}" for name in ("transformer", "lm") for engine in ("auto", "ctranslate2")]
KINDS += [f"{name} text torch" for name in AUTHORS]
KINDS += [f"{name} reading {engine}" for name in READERS for engine in ("torch", "auto", "ctranslate2")]
KINDS += [f"transformer {several} torch" for several in ("ensemble", "rescored", "crew")]
TEXT = "a <mask>"
NO_TEXT = [None, 7, 1.5, b"a", {"a": "b"}, ["a", None], ["a", 7], [["a"]]]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """What `regard.load` and its kin give for a kind of model, task and engine."""

    @cache
    def of(kind: str) -> Any:
        name, task, engine = kind.split()
        job = {"text": "text", "reading": ""}.get(task, "pairs")
        path = made(name, tmp_path_factory.mktemp(name) / "model", job)
        if task == "crew":
            return Crew(Opening(path), processes=1, threads=1)
        if task == "ensemble":
            return regard.load([path, path])
        model = regard.load(path, engine=engine, device="cpu")
        return regard.rescored(model, path) if task == "rescored" else model

    return of


def methods(model: Any) -> Iterator[tuple[Callable[..., Any], dict[str, tuple[type, ...]], dict[str, str]]]:
    """Each public method, the types that its text parameters take, and texts for those that must be given."""
    for name, function in inspect.getmembers(type(model), inspect.isfunction):
        parameters = list(inspect.signature(function).parameters.values())[1:]
        kinds = {one.name: (one.annotation, *get_args(one.annotation)) for one in parameters}
        takes = {one: types for one, types in kinds.items() if str in types}
        needed = {one.name: TEXT for one in parameters if one.default is one.empty and one.name in takes}
        if not name.startswith("_"):
            assert takes, f"{name} takes no text: except it here, and say why"
            yield getattr(model, name), takes, needed


def result(found: Any) -> Any:
    """What can be compared with ==."""
    return found.tolist() if isinstance(found, np.ndarray) else list(found) if inspect.isgenerator(found) else found


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_text_is_refused_by_the_name_of_its_argument(kind: str, opened) -> None:
    for method, takes, needed in methods(opened(kind)):
        for name, types in takes.items():
            for wrong in (one for one in NO_TEXT if type(one) not in types):
                with pytest.raises(TypeError, match=name) as caught:
                    list(method(**{**needed, name: wrong}))
                assert isinstance(caught.value, ArgumentError), (method, wrong)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "crew" not in kind])
def test_one_text_gives_one_result_and_a_generator_gives_what_a_list_gives(kind: str, opened) -> None:
    for method, takes, needed in methods(opened(kind)):
        many = [name for name, types in takes.items() if any(get_origin(one) is Iterable for one in types)]
        many = [name for name in many if name != "prefix"]
        if not many:
            continue
        # CTranslate2 leaves texts of a set length to torch.
        quick = {"beam": 1} | ({"max_length": 4} if kind.endswith("torch") else {})
        settings = quick if "settings" in inspect.signature(method).parameters else {}

        def of(texts: Any, method=method, settings=settings, needed=needed, many=many) -> Any:
            return result(method(**{**needed, **{name: texts() for name in many}}, **settings))

        alone, several = of(lambda: [TEXT]), of(lambda: [TEXT, "c", ""])
        assert of(lambda: TEXT) == (alone if method.__name__ == "stream" else alone[0]), method
        assert of(lambda: (text for text in (TEXT, "c", ""))) == several, method
        assert len(several) == 3 and of(lambda: iter(())) == [], method


def test_prefixes_come_in_any_iterable_too(opened) -> None:
    model = opened("transformer pairs torch")
    assert model.translate(["a", "b"], prefix=iter(["c", "d"])) == model.translate(["a", "b"], prefix=["c", "d"])
    assert model.translate("a", prefix=["c"]) == model.translate("a", prefix="c")


def test_texts_and_what_goes_with_them_are_both_one_or_both_several(opened) -> None:
    model = opened("transformer pairs torch")
    for method in (model.log_probabilities, model.judge):
        with pytest.raises(ArgumentError, match="sources is one text and targets are 1"):
            method("a", ["b"])
        with pytest.raises(DataError, match="2 sources but 1 targets"):
            method(["a", "b"], (text for text in ["a"]))


def test_one_folder_by_itself_is_a_judge_and_anything_else_is_refused(tmp_path: Path, opened) -> None:
    path = made("lm", tmp_path / "judge")
    model = opened("transformer pairs torch")
    found = [regard.rescored(model, judges).n_best("a b") for judges in (path, str(path), [path], iter([path]))]
    assert found == found[:1] * 4
    calls = [lambda wrong: regard.rescored(model, wrong), regard.load, regard.check]
    for call in [*calls, lambda wrong: regard.score(path, wrong), lambda wrong: regard.train(wrong, tmp_path / "to")]:
        for wrong in (None, 7, [None], {"a": "b"}):
            with pytest.raises(ArgumentError):
                call(wrong)


def test_numbers_that_are_none_and_choices_that_there_are_not_are_refused(opened) -> None:
    filler, translator = opened("bert reading torch"), opened("transformer pairs torch")
    for wrong in (None, "x", 1.5, True):
        with pytest.raises(ArgumentError, match="top"):
            filler.fill("a <mask>", top=wrong)
        with pytest.raises(ArgumentError, match="chunk"):
            translator.stream(["a"], chunk=wrong)
    with pytest.raises(ConfigError, match=r"'median'.*mean, first"):
        filler.embed(["a"], pool="median")
    for wrong in ("x", math.nan, math.inf):
        with pytest.raises(RegardError, match="weight"):
            regard.rescored(translator, [], wrong)


@pytest.mark.parametrize(
    "setting", [{"beam": 0}, {"n_best": -1}, {"beam": None}, {"length_penalty": math.nan}, {"beams": 2}]
)
def test_settings_are_checked_in_every_call_that_takes_them(setting: dict[str, Any], opened) -> None:
    for kind in KINDS:
        for method, _, needed in methods(opened(kind)):
            if "settings" in inspect.signature(method).parameters:
                with pytest.raises(ConfigError, match=next(iter(setting))):
                    list(method(**needed, **setting))


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("threads", [-1, "2", 2.5, 10**6])
def test_threads_are_a_number_of_them(engine: str, threads: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="threads"):
        regard.load(tmp_path, engine=engine, threads=threads)


@pytest.mark.parametrize("name", ["to", "start", "words_of", "recipe"])
def test_a_path_that_is_none_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"to": tmp_path / "m", name: 5}
    with pytest.raises(ArgumentError, match=f"{name} must be a path, not 5"):
        regard.train("builtin:copy", **given)
