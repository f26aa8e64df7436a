"""The same command again: the same bytes wherever it runs, and settings that have changed are asked about."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from changed import changed
from conftest import QUICK, write_digits
from killed import differences, training_of
from regard.config import Config, parse_set, read
from regard.errors import ConfigError
from regard.folder import checkpoints
from regard.training.log import read_log
from regard.training.run import FREE, train


def test_neither_the_folder_nor_the_environment_changes_the_result(tmp_path: Path) -> None:
    data, settings = training_of("transformer", tmp_path, steps=18)
    regard.train(data, tmp_path / "here", settings=settings)
    away = tmp_path / "elsewhere" / "deeper"
    away.mkdir(parents=True)
    program = f"import regard; regard.train({data!r}, 'there', settings={settings!r})"
    strange = {"PYTHONHASHSEED": "77", "LC_ALL": "C", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "COLUMNS": "20"}
    subprocess.run([sys.executable, "-c", program], cwd=away, env={**os.environ, **strange}, check=True)
    assert not differences(tmp_path / "here", away / "there")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path, Config]:
    """A training that was stopped after some steps."""
    folder = tmp_path_factory.mktemp("begun")
    data, asked = write_digits(folder, 60), iter(range(99))
    config = read(parse_set(f"{key}={value}" for key, value in QUICK.items()))
    train(data, folder / "model", config, stop=lambda: next(asked) > 8)
    assert checkpoints.steps(folder / "model" / "checkpoints")
    return data, folder / "model", config


def test_every_setting_is_free_to_change_or_refused_with_old_and_new(begun: tuple[Any, ...]) -> None:
    data, to, config = begun
    told = {}
    for name, other in changed(config):
        if name == "train.soft":  # refused before, for want of teachers
            continue
        try:
            train(data, to, other, stop=lambda: True)
        except ConfigError as error:
            told[name] = str(error)
            assert f"{name} " in told[name] and " -> " in told[name]
            assert ("--override" in told[name]) == (name.startswith("train.") or name == "model.dropout"), told[name]
        else:
            assert name in FREE, name
        train(data, to, config, stop=lambda: True)
    assert len(told) > 40


@pytest.mark.parametrize(
    ("name", "value"),
    [("train.ema", 0.9), ("train.optimizer", "muon"), ("train.metric", "bleu"), ("train.schedule", "cosine")],
)
def test_with_override_a_run_goes_on_with_another_setting(
    begun: tuple[Any, ...], name: str, value: Any, tmp_path: Path
) -> None:
    data, folder, _ = begun
    to = Path(shutil.copytree(folder, tmp_path / "model"))
    settings = {**QUICK, name: value, "train.steps": 22, "train.warm_up": 5}
    assert regard.train(data, to, settings=settings, override=True).step == 22


def test_what_was_best_by_another_metric_is_no_longer_the_best(tmp_path: Path) -> None:
    data, to = write_digits(tmp_path, 60), tmp_path / "model"
    regard.train(data, to, settings={**QUICK, "train.steps": 20})
    regard.train(data, to, settings={**QUICK, "train.metric": "bleu"}, override=True)
    validated = [line for line in read_log(to / "log.jsonl") if "best" in line]
    assert [line["best"] for line in validated] == [True, True] and validated[1]["valid_bleu"] < validated[0][
        "valid_loss"
    ]
