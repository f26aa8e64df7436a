"""Settings: one default in one place, unknown and impossible ones refused with the near miss named."""

import json
import re
from pathlib import Path
from typing import get_type_hints

import pytest
import torch

from regard.config import (
    MODEL_CONFIGS,
    SIZES,
    Config,
    DecodeConfig,
    TextConfig,
    TrainConfig,
    TransformerConfig,
    as_table,
    describe,
    differences,
    merge,
    parse_set,
    read,
    read_recipe,
)
from regard.config.parsing import _typed
from regard.errors import ConfigError
from regard.models import build


@pytest.mark.parametrize(("size", "low", "high"), [("base", 63e6, 65e6), ("big", 209e6, 215e6)])
def test_published_sizes_have_the_published_parameters(size: str, low: float, high: float) -> None:
    with torch.device("meta"):
        model = build(read({"model": {"size": size}}).model, 37_000)
    assert low <= sum(p.numel() for p in model.parameters()) <= high


def test_tiny_is_what_its_paper_says() -> None:
    model = read({"model": {"size": "tiny"}}).model
    assert (model.depth, model.width, model.inner, model.heads) == (4, 128, 256, 4)


def test_base_is_the_dataclass_as_it_stands() -> None:
    assert read({"model": {"size": "base"}}).model == TransformerConfig()
    assert SIZES[TransformerConfig]["base"] == {}


def test_settings_survive_a_round_trip_through_json() -> None:
    config = read({"model": {"size": "big", "norm": "before"}, "train": {"rate": 1e-3}})
    assert read(json.loads(json.dumps(as_table(config)))) == config


def test_the_setting_given_last_wins(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[train]\nrate = 0.1\nwarm_up = 7\n")
    config = read(merge(read_recipe(recipe), parse_set(["train.rate=0.2"])))
    assert (config.train.rate, config.train.warm_up) == (0.2, 7)


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("train.ratee=1", "Did you mean train.rate?"),
        ("trian.rate=1", "Did you mean train?"),
        ("model.width=130", "Set model.width to 128 or 132"),
        ("model.width=abc", "must be a whole number, not 'abc'"),
        ("model.width=1.5", "must be a whole number"),
        ("model.heads=0", "at least 1"),
        ("model.dropout=1.5", "between 0 and 0.95"),
        ("model.name=transfomer", "Did you mean transformer?"),
        ("model.size=tinny", "Did you mean tiny?"),
        ("model.norm=befor", "Did you mean before?"),
        ("train.rate=nan", "must be a number"),
        ("train.rate=inf", "must be a number"),
        ("train.rate=-1", "at least 0"),
        ("train.steps=0", "at least 1"),
        ("train.smoothing=1", "between"),
        ("train.epsilon=0", "1e-9"),
        ("train.average=9", "Set train.keep=9"),
        ("train.device=gpu", "none of auto, cpu, cuda"),
        ("text.lowercase=maybe", "true or false"),
        ("text.vocabulary=3", "at least 8"),
        ("text.columns=a,b,c", "SOURCE,TARGET"),
        ("decode.top_p=0", "above 0"),
        ("decode.temperature=0", "above 0"),
        ("decode.n_best=9", "--beam 9"),
        ("decode.shortlist=101", "between 0 and 100"),
        ("decode.shortlist=-1", "between 0 and 100"),
        ("rate=3", "section.key=value"),
        ("train.rate", "section.key=value"),
    ],
)
def test_an_impossible_setting_is_refused_with_what_to_do(assignment: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(parse_set([assignment]))
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        (["train.schedule=paper", "train.rate=0.1"], "inverse_sqrt"),
        (["train.schedule=cosine", "train.steps=100"], "train.warm_up=10"),
        (["text.tokenizer=words", "text.sampling=0.1"], "text.tokenizer=bpe"),
        (["decode.min_length=9", "decode.max_length=3"], "exceeds"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(assignments: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read(parse_set(assignments))


@pytest.mark.parametrize("text", ["rate = 1", "[train]\nrate = ", "[train]\nrate = 1\nrate = 2", "\x00"])
def test_a_broken_recipe_is_refused(tmp_path: Path, text: str) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text)
    with pytest.raises(ConfigError):
        read(merge(read_recipe(recipe)))


def test_every_recipe_in_the_repository_is_valid() -> None:
    recipes = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
    assert recipes
    for recipe in recipes:
        read(read_recipe(recipe))
        bare = [line for line in recipe.read_text().splitlines() if re.match(r"\w+ =", line) and "# " not in line]
        assert not bare, f"{recipe.name} does not say why: {bare}"


def test_differences_name_old_and_new() -> None:
    assert differences(Config(), read({"train": {"rate": 0.5}, "model": {"size": "base"}})) == [
        ("train.rate", 0.0, 0.5)
    ]


@pytest.mark.parametrize("kind", [TextConfig, TransformerConfig, TrainConfig, DecodeConfig])
def test_every_setting_says_what_it_means(kind: type) -> None:
    assert all(meaning for _, _, meaning in describe(kind))


LARGE = 12345678901234567  # more digits than a float holds


@pytest.mark.parametrize("given", [LARGE, str(LARGE), "12_345_678_901_234_567", "12345678901234567.0"])
def test_a_large_whole_number_stays_what_it_is(given: object) -> None:
    assert read({"train": {"seed": given}, "decode": {"seed": given}}).train.seed == LARGE


def test_every_whole_number_of_every_section_is_read_digit_by_digit() -> None:
    for kind in (TextConfig, TrainConfig, DecodeConfig, *MODEL_CONFIGS.values()):
        hints = get_type_hints(kind)
        assert all(_typed(hint, str(LARGE), name) == LARGE for name, hint in hints.items() if hint is int)


@pytest.mark.parametrize(("given", "meant"), [("1e4", 10_000), (1e4, 10_000), ("-0", 0), ("5e0", 5), (3.0, 3)])
def test_a_whole_number_may_be_written_with_an_exponent(given: object, meant: int) -> None:
    assert _typed(int, given, "train.seed") == meant


@pytest.mark.parametrize(
    "given", ["1.5", "nan", "inf", "-inf", "", "é", "0x10", "1e999999999", 10**19, "1e19", True, None]
)
def test_what_is_no_whole_number_of_64_bits_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match=r"train\.seed"):
        _typed(int, given, "train.seed")
