"""`regard explain`: eight steps in a terminal, with the numbers of the user's own text."""

import argparse
import math
import re
from pathlib import Path
from typing import Any

import pytest

import regard
from conftest import QUICK, SMALL
from regard.cli import explain
from regard.cli.main import main
from regard.errors import TraceError


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says."""
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def part(text: str, number: int) -> str:
    """One step of what was printed."""
    return re.split(r"^\d · ", text, flags=re.MULTILINE)[number]


def column(text: str, words: list[str], number: int) -> list[float]:
    """The numbers of a column, by the words that begin the lines."""
    return [
        float(re.findall(rf"^  {re.escape(word)} +(.*)$", text, flags=re.MULTILINE)[0].split()[number])
        for word in words
    ]


INPUTS = ["input 1", "input 2", "input 3"]


def test_the_lecture_needs_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--lecture")
    assert [title.split(" · ")[0] for title in re.findall(r"^\d · .*", text, flags=re.MULTILINE)] == list("12345678")
    assert column(part(text, 4), INPUTS, 0) == [2, 4, 4]
    assert column(part(text, 5), INPUTS, 1) == [0.0634, 0.4683, 0.4683]
    assert column(part(text, 7), INPUTS, 2) == [0.0634, 0.4683, 0.4683]
    assert re.search(r"c, the sum +1\.94 +6\.68 +1\.60$", text, flags=re.MULTILINE)
    assert "1.00·4.00 + 0.00·4.00 + 2.00·0.00 = 4.000" in text and "✓" in text


def test_the_lecture_can_be_scaled(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--lecture", "--scaled", "--word", "input 2")
    scores = [score / math.sqrt(3) for score in (4, 16, 12)]
    weights = [math.exp(s) / sum(map(math.exp, scores)) for s in scores]
    assert column(part(text, 7), INPUTS, 2) == pytest.approx(weights, abs=1e-4)


def test_the_numbers_printed_are_those_of_the_model(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = regard.load(trained).attention("1 2 3", "one two three")
    text = printed(capsys, str(trained), "1 2 3", "--target", "one two three", "--word", "two", "--head", "1")
    shown = trace.map("cross")
    words = [token.text for token in trace.rows["source"].tokens]
    query = trace.rows["target"].find("two")
    assert column(part(text, 7), words, 2) == pytest.approx(shown.weights_HQK[0, query].tolist(), abs=1e-4)
    assert "How “two” looks: attention to the source" in text and "head 1 of 2" in text
    assert re.search(r"^✓ Computed anew with NumPy", text, flags=re.MULTILINE)


def test_what_may_not_be_seen_is_said_and_weighs_nothing(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--target", "one two three", "--kind", "decoder", "--word", "one")
    text = printed(capsys, str(trained), "1 2 3", *given)
    assert "“one” does not see: two three" in part(text, 6)
    assert re.search(r"^  three +−∞ +0 +0$", part(text, 7), flags=re.MULTILINE) and "hidden" in part(text, 5)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model folder of every job but that of translating, trained for a moment."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "text.txt").write_text("a good day\na bad day\nno day at all\n" * 20)
    (folder / "labels.tsv").write_text("".join(f"a {word} day\t{word}\n" for word in ("good", "bad") * 20))
    quick = {key: value for key, value in QUICK.items() if key.startswith(("train.", "text."))} | {
        "train.steps": 2,
        "text.longest": 32,
    }
    found = {}
    for name, data in (("lm", "text.txt"), ("bert", "text.txt"), ("classifier", "labels.tsv"), ("memory", "text.txt")):
        settings: dict[str, Any] = quick | {f"model.{key}": value for key, value in SMALL[name].items()}
        settings |= {"model.next_sentence": False} if name == "bert" else {}
        regard.train(str(folder / data), folder / name, model=name, settings=settings)
        found[name] = folder / name
    return found


@pytest.mark.parametrize("name", ["lm", "bert", "classifier"])
def test_every_kind_of_folder_can_be_explained(
    name: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, str(folders[name]), "a good day", "--word", "good")
    assert "How “good” looks" in text and "✓" in text
    assert main(["explain", str(folders[name]), "a good day", "--target", "x"]) == 2
    assert "--target" in capsys.readouterr().err


def test_what_has_no_steps_says_why(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(folders["memory"]), "a good day no bad day", "--kind", "compressed"]) == TraceError.code
    assert "joined by a convolution" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--lecture", "folder"], [], ["folder"], ["folder", "text", "--scaled"]])
def test_what_cannot_be_meant_is_refused_before_anything_is_loaded(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *given]) == 2
    assert capsys.readouterr().err.startswith("regard: ")


def test_a_terminal_gets_a_pager_unless_it_wants_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paged: list[str] = []
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("pydoc.pager", paged.append)
    printed(capsys, "--lecture")
    assert len(paged) == 1 and "Softmax" in paged[0]
    assert "Softmax" in printed(capsys, "--lecture", "--no-pager") and len(paged) == 1


def test_words_do_not_command_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(explain, "_lecture", lambda options: None)
    monkeypatch.setattr(explain, "lines_of", lambda steps: iter(["red \x1b[31m and \u202e back"]))
    assert explain.run(argparse.Namespace(lecture=True, folder=None, scaled=False, no_pager=True)) == 0
    assert capsys.readouterr().out == "red �[31m and � back\n"
