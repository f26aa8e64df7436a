"""The mean of several models: whose weights, whose words, and which models have none."""

from pathlib import Path

import pytest
import torch

import regard
from conftest import SMALL
from regard.cli.main import main
from regard.errors import ConfigError, FolderError
from regard.experiments.average import average
from regard.folder.checkpoints import load_tensors
from regard.folder.layout import CONFIG, MODEL, load_config
from regard.folder.weights import load_model
from untrained import made


@pytest.mark.parametrize("name", SMALL)
def test_every_weight_is_the_mean_of_the_members(name: str, tmp_path: Path) -> None:
    folders = [made(name, tmp_path / member) for member in ("one", "two", "three")]
    average(folders, tmp_path / "mean")
    one, two, three = (load_tensors(path / MODEL) for path in folders)
    for key, found in load_tensors(tmp_path / "mean" / MODEL).items():
        torch.testing.assert_close(found, torch.stack([one[key], two[key], three[key]]).mean(0))


@pytest.mark.parametrize("name", SMALL)
def test_the_mean_of_equal_models_is_that_model(name: str, tmp_path: Path) -> None:
    member = made(name, tmp_path / "member")
    average([member, member], tmp_path / "mean")
    before, after = load_tensors(member / MODEL), load_tensors(tmp_path / "mean" / MODEL)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert load_model(tmp_path / "mean").tokenizer.as_bytes() == load_model(member).tokenizer.as_bytes()


def test_it_translates_and_says_of_whom_it_is_the_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (
        str(made("transformer", tmp_path / name, settings={"dropout": d})) for name, d in (("a", 0.1), ("b", 0.2))
    )
    to = str(tmp_path / "mean")
    assert main(["average", one, two, "--to", to]) == 0
    assert f"regard score {to} VALID" in capsys.readouterr().out
    assert isinstance(regard.load(to).translate("a b c", max_length=5), str)
    assert load_config(Path(to))[1]["averaged"] == [one, two]


def test_models_that_have_no_mean_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    model = made("transformer", tmp_path / "model")
    deeper = made("transformer", tmp_path / "deeper", settings={"depth": 1 + load_model(model).config.model.depth})
    words = made("transformer", tmp_path / "words")
    tokenizer = words / load_model(words).tokenizer.file_name
    tokenizer.write_text(tokenizer.read_text().replace('o"', 'p"'))
    to = tmp_path / "mean"
    for folders, said in (
        ([model], "Name two"),
        ([model, deeper], "model.depth"),
        ([model, words], "The words of"),
        ([model, made("lm", tmp_path / "lm", job="pairs")], "Name models of one kind"),
    ):
        with pytest.raises(ConfigError, match=said):
            average(folders, to)
        assert not to.exists()


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    model = made("transformer", tmp_path / "model")
    before = (model / CONFIG).read_bytes()
    with pytest.raises(FolderError, match="stays untouched"):
        average([model, model], model)
    assert (model / CONFIG).read_bytes() == before
