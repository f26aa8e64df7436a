"""`regard see`: every model's page, pictures, what is said in a terminal, and in words where there is nothing to see."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from conftest import QUICK, SMALL, write_digits
from regard.cli.main import main
from regard.folder import checkpoints
from regard.interpret.exhibit import look
from untrained import NO_ATTENTION, made


def data_of(page: Path) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data


@pytest.mark.parametrize("name", SMALL)
def test_every_model_has_a_page_or_says_that_it_has_no_attention(name: str, tmp_path: Path) -> None:
    model = made(name, tmp_path / name)
    assert main(["see", str(model), "a b <mask> c", "--beam", "2"]) == 0
    (item,) = data_of(model / "attention.html")["items"]
    assert (not item["maps"]) == (name in NO_ATTENTION)
    assert (item["knockouts"] is None) == (name in NO_ATTENTION)
    assert item["model"]["name"] == name


def test_a_model_without_attention_says_so_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["see", str(made("lstm", tmp_path / "m", "text")), "a b c", "--terminal"]) == 0
    assert "lstm has no attention: there is nothing to draw." in capsys.readouterr().out


def test_two_texts_and_two_words_begin_with_the_contrast(trained: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["see", str(trained), "1 2 3", "1 2 4", "--between", "1", "2", "--to", str(page)]) == 0
    data = data_of(page)
    assert data["start"]["view"] == "contrast" and data["start"]["pick"] == [0, 1]
    assert [item["title"] for item in data["items"]] == ["1 2 3", "1 2 4"]
    assert data["items"][0]["knockouts"]["word"] == "three" and data["items"][1]["knockouts"]["word"] == "four"
    assert len(data["items"][0]["beam"]["results"]) >= 1


def test_two_models_stand_side_by_side(trained: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    step = checkpoints.steps(trained / "checkpoints")[0]
    options = ["--no-knock-out", "--beam", "1", "--to", str(page)]
    assert main(["see", str(trained), "1 2", "--with", str(step), *options]) == 0
    assert [item["title"] for item in data_of(page)["items"]] == ["model: 1 2", f"model, step {step:,}: 1 2"]
    assert main(["see", str(trained), "1 2", "--with", str(trained), *options]) == 0
    one, other = data_of(page)["items"]
    assert one["maps"] == other["maps"] and one["knockouts"] is one["beam"] is None


def test_a_head_that_is_switched_off_is_found_again(trained: Path) -> None:
    exhibit = look([regard.load(trained)], ["1 2 3", "1 2 4"], between=("1", "2"))
    assert exhibit.move is not None
    for off, one in zip(exhibit.knockouts, exhibit.without(exhibit.move), strict=True):
        assert off is not None and one in off.heads
        assert (one.kind, one.layer, one.head) == (exhibit.move.kind, exhibit.move.layer, exhibit.move.head)


@pytest.mark.parametrize(("ending", "begins"), [(".svg", "<svg"), (".csv", "kind,layer,head"), (".txt", "transformer")])
def test_the_ending_decides_what_is_written(trained: Path, tmp_path: Path, ending: str, begins: str) -> None:
    file = tmp_path / f"it{ending}"
    assert main(["see", str(trained), "1 2", "--to", str(file), "--kind", "cross", "--layer", "1", "--head", "2"]) == 0
    assert file.read_text().startswith(begins)


def test_without_a_text_it_shows_how_the_model_learned(trained: Path, tmp_path: Path) -> None:
    assert main(["see", str(trained), "--to", str(tmp_path / "learned.html")]) == 0
    assert "learned.html" in [path.name for path in tmp_path.iterdir()]


def test_a_run_that_is_not_finished_is_shown_too(tmp_path: Path) -> None:
    regard.train(
        write_digits(tmp_path, 60), tmp_path / "m", settings={**QUICK, "train.steps": 3, "train.validate_steps": 99}
    )
    with (tmp_path / "m" / "log.jsonl").open("a") as log:
        log.write('{"step": 4, "lo')
    assert main(["see", str(tmp_path / "m"), "--to", str(tmp_path / "page.html")]) == 0


def test_it_opens_the_page_only_for_someone_who_sits_there(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address))
    arguments = ["see", str(trained), "1 2", "--no-knock-out", "--beam", "1", "--to", str(tmp_path / "page.html")]
    assert main(arguments) == 0 and not opened
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main([*arguments, "--no-open"]) == 0 and not opened
    assert main(arguments) == 0 and opened == [(tmp_path / "page.html").as_uri()]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([""], "nothing to look at"),
        (["1 2", "--between", "1", "2"], "from one text to another; there are 1"),
        (["1 2", "1 3", "--between", "1", "zebra"], "both sentences have"),
        (["1 2", "--with", "77777"], "no checkpoint of step 77777"),
        (["1 2", "--with", "nowhere"], "no model folder nowhere"),
        (["1 2", "--to", "it.png"], "open the page and press e"),
        (["1 2", "--to", "it.doc"], "End its name in one of"),
        (["1 2", "1 3", "--to", "it.svg"], "one text only"),
        (["1 2", "--terminal", "--kind", "local"], "It has: encoder, decoder, cross"),
        (["1 2", "--terminal", "--layer", "9"], "There is no layer 9"),
        (["1 2", "--terminal", "--head", "9"], "9"),
        (["1 2", "--terminal", "--word", "1"], "--word is for pictures"),
        (["1 2", "--knock-out", "zebra"], "did not write 'zebra'"),
        (["1"] * 9, "9 pictures are too many"),
    ],
    ids=lambda x: str(x)[:40],
)
def test_mistakes_are_told_in_one_line(
    trained: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["see", str(trained), *arguments]) not in (0, 1)
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1
