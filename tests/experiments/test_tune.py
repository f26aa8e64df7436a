"""The search for settings: who goes on, what it costs, and that it can be stopped."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conftest import QUICK, write_digits
from regard.cli.main import main
from regard.config import parse_set, read, read_recipe
from regard.errors import ConfigError, DataError, FolderError, TrainingError
from regard.experiments import tune as tuning
from regard.experiments.tune import Search, propose, recipe, tune
from regard.folder.layout import load_config

SETTINGS = {**QUICK, "model.width": 16, "model.inner": 16, "train.metric": "chrf", "train.patience": 0}
CONFIG = read(parse_set(f"{key}={value}" for key, value in SETTINGS.items()))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_digits(tmp_path_factory.mktemp("tune"), 80)


def search(data: list[str], to: Path, **changes: Any) -> Search:
    return Search(**{"data": data, "to": to, "config": CONFIG, "candidates": 4, "steps": 48, **changes})


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "minutes"} for row in rows]


def asked(count: int) -> Callable[[], bool]:
    calls = iter(range(10**6))
    return lambda: next(calls) >= count


def test_candidates_are_distinct_and_follow_from_the_seed_and_what_is_fixed_stays(tmp_path: Path) -> None:
    asked_for = search([], tmp_path, candidates=30, fixed=frozenset({"text.vocabulary", "model.depth"}))
    found = propose(asked_for)
    assert found[0].config == CONFIG and found == propose(asked_for)
    assert len({json.dumps(one.settings) for one in found}) == len(found) == 21  # 5 x 4, none of which is the first
    assert {(one.config.text.vocabulary, one.config.model.depth) for one in found} == {(8000, 1)}
    another = replace(asked_for, config=replace(CONFIG, train=replace(CONFIG.train, seed=2)))
    assert [one.settings for one in propose(another)] != [one.settings for one in found]


@pytest.fixture(scope="module")
def whole(data: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A search that nobody stopped."""
    to = tmp_path_factory.mktemp("whole") / "tuned"
    return to, tune(search(data, to)).rows


def test_the_better_half_goes_on_until_one_is_left(whole: tuple[Path, list[dict[str, Any]]]) -> None:
    to, rows = whole
    rounds = json.loads((to / "tuned.json").read_text())["rounds"]
    assert [len(measured) for measured in rounds] == [4, 2, 1]
    for before, after in pairwise(rounds):
        left = [measured["score"] for name, measured in before.items() if name not in after]
        assert all(before[name]["score"] >= max(left) for name in after)
    assert [rows[0]["name"]] == list(rounds[-1]) and [row["rounds"] for row in rows] == [3, 2, 1, 1]


def test_the_whole_costs_its_budget_and_every_round_the_same(whole: tuple[Path, list[dict[str, Any]]]) -> None:
    to, rows = whole
    assert sum(row["step"] for row in rows) == 48
    assert [row["step"] for row in rows] == [16 // 4 + 16 // 2 + 16, 16 // 4 + 16 // 2, 16 // 4, 16 // 4]
    for row in rows:
        about = load_config(to / "runs" / row["name"])[1]
        assert about["step"] == row["step"]


def test_the_recipe_is_the_winners_settings_but_for_when_to_end_and_where(
    whole: tuple[Path, list[dict[str, Any]]],
) -> None:
    to, rows = whole
    winner = load_config(to / "runs" / rows[0]["name"])[0]
    again = read(read_recipe(to / "tuned.toml"))
    free = {"steps": 1, "max_minutes": 0.0, "patience": 0, "threads": 0}
    assert replace(again, train=replace(again.train, **free)) == replace(winner, train=replace(winner.train, **free))
    assert not {"steps", "patience", "max_minutes", "threads"} & set(read_recipe(to / "tuned.toml")["train"])


def test_a_recipe_keeps_text_numbers_and_truth() -> None:
    config = read({"model": {"name": "lm"}, "text": {"lowercase": True, "columns": 'a "b",c'}, "train": {"rate": 1e-9}})
    assert read(tomllib.loads(recipe(config))) == config


def test_a_search_that_was_stopped_ends_as_if_it_had_not_been(
    data: list[str], tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]
) -> None:
    stopped = tune(search(data, tmp_path / "tuned"), stop=asked(15))
    assert stopped.stopped and not (tmp_path / "tuned" / "tuned.toml").exists()
    assert timeless(tune(search(data, tmp_path / "tuned")).rows) == timeless(whole[1])


def test_a_finished_search_trains_nothing_again(
    data: list[str], whole: tuple[Path, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "train", None)
    assert tune(search(data, whole[0])).rows == whole[1]


def test_a_candidate_that_cannot_be_trained_is_out(
    data: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tuning.train

    def diverging(names: Any, path: Path, *others: Any, **more: Any) -> Any:
        if path.name in bad:
            raise TrainingError("The loss is not a number.")
        return whole(names, path, *others, **more)

    monkeypatch.setattr(tuning, "train", diverging)
    bad = {"01", "03"}
    rows = tune(search(data, tmp_path / "some", candidates=3, steps=9)).rows
    assert rows[0]["name"] == "02" and {row["name"] for row in rows if "failed" in row} == bad
    bad = {"01", "02"}
    with pytest.raises(TrainingError, match="No candidate"):
        tune(search(data, tmp_path / "none", candidates=2))


def test_what_cannot_be_searched_is_refused(data: list[str], tmp_path: Path, whole: tuple[Path, Any]) -> None:
    for changes in ({"steps": 0}, {"minutes": 5.0}, {"candidates": 1}):
        with pytest.raises(ConfigError):
            search(data, tmp_path / "new", **changes)
    with pytest.raises(ConfigError, match="cosine"):
        search(data, tmp_path, config=replace(CONFIG, train=replace(CONFIG.train, schedule="cosine")))
    with pytest.raises(ConfigError, match="depend on the vocabulary"):
        tune(search(data, tmp_path, config=replace(CONFIG, train=replace(CONFIG.train, metric="loss"))))
    with pytest.raises(DataError, match="standard input"):
        tune(search(["-"], tmp_path))
    with pytest.raises(ConfigError, match="other terms"):
        tune(search(data, whole[0], steps=50))
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FolderError, match="stay untouched"):
        tune(search(data, tmp_path))


def test_the_command_prints_a_table_and_leaves_a_recipe_to_train_with(
    data: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "tuned"
    told = [part for key in SETTINGS if key != "train.steps" for part in ("--set", f"{key}={SETTINGS[key]}")]
    told += ["--steps", "6", "--candidates", "2"]
    assert main(["tune", *data, "--to", str(to), *told]) == 0
    printed = capsys.readouterr().out
    assert "vocabulary" in printed and "01" in printed and f"{to / 'tuned.toml'}" in printed
    command = ["train", *data, "--to", str(tmp_path / "mine"), "--recipe", str(to / "tuned.toml"), "--steps", "2"]
    assert main(command) == 0
    assert main(["tune", *data, "--to", str(to), "--minutes", "1", "--max-minutes", "2"]) == ConfigError.code
