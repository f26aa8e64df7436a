"""No value of any option is answered by a traceback, a hang or silence: one line that says what to do, and an exit code."""

import os
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NoReturn

import pytest

import absurd
from regard.cli.main import COMMANDS, main, parser
from regard.errors import ConfigError

STEP = int(os.environ.get("REGARD_ABSURD_STEP", "7"))  # 1 = all of them
TRAINING = [
    "training.run.train",
    "experiments.synthetic.distill",
    "experiments.compare.comparison.compare",
    "experiments.tune.tune",
    "experiments.demo.demo",
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    at = tmp_path_factory.mktemp("absurd")
    return at, absurd.base(at)


def reached(*_: object, **__: object) -> NoReturn:
    raise ConfigError("Every option is as it should be.")


def test_every_command_is_tried(base: tuple[Path, dict[str, list[str]]]) -> None:
    assert set(base[1]) == set(absurd.commands()) and len(base[1]) == len(COMMANDS)


@pytest.mark.parametrize("name", absurd.commands())
def test_absurd_values_are_refused_in_one_line(
    name: str,
    base: tuple[Path, dict[str, list[str]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at, right = base
    monkeypatch.chdir(at)
    monkeypatch.setattr("regard.cli.main.parser", cache(parser))
    for training in TRAINING:  # torture/parts/options.py goes on from there
        monkeypatch.setattr(f"regard.{training}", reached)
    wrong = []
    for arguments in islice(absurd.cases(name, right[name]), len(name) % STEP, None, STEP):
        try:
            code = main(arguments)
        except BaseException as error:
            wrong.append(f"{arguments}: {error!r}")
            continue
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("regard: ")]
        if code and (len(said) != 1 or len(said[0]) > 1000):
            wrong.append(f"{arguments}: {code}, {said}")
    assert not wrong, "\n".join(line[:600] for line in wrong)
