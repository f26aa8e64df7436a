"""The best of several is what is written when only one is asked for."""

import json

import pytest
import torch

import untrained
from regard.cli.main import main

TEXTS = "\n".join(" ".join("abcdefgh"[i % 7 : i % 7 + 1 + i % 3]) for i in range(12))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose own search is wider than usual."""
    torch.manual_seed(0)
    folder = untrained.leaning(tmp_path_factory.mktemp("wide") / "model")
    config = json.loads((folder / "config.json").read_text())
    config["decode"]["beam"], config["decode"]["max_length"] = 9, 8
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def best(folder: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main(["translate", folder, TEXTS, "--json", "--engine", "torch", *options]) == 0
    return [json.loads(line)["translations"][0]["text"] for line in capsys.readouterr().out.splitlines()]


def test_the_models_own_beam_finds_the_n_best(wide: str, capsys: pytest.CaptureFixture[str]) -> None:
    alone = best(wide, capsys)
    assert best(wide, capsys, "--n-best", "2") == best(wide, capsys, "--n-best", "9") == alone
    assert best(wide, capsys, "--beam", "4", "--n-best", "2") != alone, "or this would prove nothing"


def test_a_beam_too_narrow_is_widened_and_that_is_said(wide: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", wide, "a", "--n-best", "12", "--engine", "torch"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 12
    assert "--n-best 12 needs a beam as wide. The model's own is 9" in shown.err


def test_a_beam_that_was_chosen_is_not_changed(wide: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", wide, "a", "--n-best", "12", "--beam", "10"]) == 2
    assert "--beam 12" in capsys.readouterr().err
