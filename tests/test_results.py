"""Results: every one has its recipe and its texts, and what a run reached is written down with how."""

import gzip
import json
import re
from pathlib import Path

import pytest

from recipes import report, results, texts
from recipes.report import DATA
from recipes.results import RESULTS, ROOT, Result

SMALL = "--set text.tokenizer=words --set model.width=16 --set model.depth=1 --set train.warm_up=1"


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_names_a_recipe_that_is_there(name: str) -> None:
    named = re.findall(r"--recipe (\S+)", RESULTS[name].train)
    assert all((ROOT / recipe).is_file() for recipe in named)


def test_every_recipe_of_ours_has_a_result() -> None:
    used = {Path(recipe).name for one in RESULTS.values() for recipe in re.findall(r"--recipe (\S+)", one.train)}
    paper = {"paper-base.toml"}  # for a GPU, and not run
    assert {recipe.name for recipe in (ROOT / "recipes").glob("*.toml")} == used | paper


def test_a_run_is_written_down_with_its_commands_time_and_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = f"regard train builtin:copy --to $TO --steps 3 {SMALL}"
    monkeypatch.setitem(RESULTS, "toy", Result(train, ["regard score $TO builtin:copy/5 --beam 1 --metrics bleu,wer"]))
    run = results.run("toy", tmp_path, tmp_path, seed=7, threads=1)
    assert run["commands"][0] == f"{train} --seed 7 --threads 1" and run["steps"] == 3 and run["threads"] == "1 thread"
    (score,) = run["scores"]
    assert score["bleu"]["signature"].startswith("nrefs:1|") and {"wer", "exact_match"} <= set(score)
    said = report.page([run])
    assert "`toy` | 7 |" in said and train in said and score["bleu"]["signature"] in said and str(tmp_path) not in said


def test_the_page_of_results_is_made_of_the_data_and_of_results_that_can_be_run() -> None:
    assert report.PAGE.read_text() == report.page(report.kept())
    assert {run["name"] for run in report.kept()} <= set(RESULTS)
    assert len(report.PAGE.read_text().splitlines()) <= 150


def test_a_result_that_is_run_again_takes_the_place_of_the_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATA", "PAGE"):
        monkeypatch.setattr(report, name, tmp_path / Path(getattr(report, name)).name)
    first, second = ({**run, "minutes": 1.0} for run in json.loads(f"[{','.join(DATA.read_text().splitlines()[:2])}]"))
    report.DATA.write_text("")
    for run in (first, second, {**first, "minutes": 2.0}):
        report.add(run)
    assert [run["minutes"] for run in report.kept()] == [1.0, 2.0]


def test_a_corpus_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"input\.txt\.gz.*recipes/README\.md"):
        results.run("shakespeare", tmp_path, tmp_path, seed=1, threads=1)


def test_a_training_that_fails_ends_the_results_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RESULTS, "toy", Result("regard train nowhere.tsv --to $TO", []))
    with pytest.raises(SystemExit) as ended:
        results.run("toy", tmp_path, tmp_path, seed=1, threads=1)
    assert ended.value.code == 65  # the data are at fault


def test_sounds_of_a_word_are_references_and_no_word_is_tested_twice_or_validated_on_if_learned(tmp_path: Path) -> None:
    (tmp_path / "cmudict").mkdir()
    parts = {
        "train-dev-20-21": b"AB  AE B\nAB  AH B\nO  OW\n",
        "train-dev-1-21": b"AB  EY B\nNO  N OW\nNO  N AA\n",
        "test": b"BE  B IY\nBE  B EY\nI  AY\n",
    }
    for part, text in parts.items():
        (tmp_path / f"cmudict/cmudict-0.7b.{part}.gz").write_bytes(gzip.compress(text))
    texts.cmudict(tmp_path, tmp_path / "to")
    assert (tmp_path / "to/train.tsv").read_text() == "a b\tAE B\na b\tAH B\no\tOW\n"
    assert (tmp_path / "to/valid.tsv").read_text() == "n o\tN OW\n"
    more = "a b\tEY B\nn o\tN OW\nn o\tN AA\n"
    assert (tmp_path / "to/all.tsv").read_text() == (tmp_path / "to/train.tsv").read_text() + more
    assert (tmp_path / "to/valid.2").read_text() == "N AA\n"
    assert (tmp_path / "to/test.tsv").read_text() == "b e\tB IY\ni\tAY\n"
    assert (tmp_path / "to/test.2").read_text() == "B EY\n\n"


def test_made_up_words_are_new_and_stand_once(tmp_path: Path) -> None:
    (tmp_path / "spelling.txt").write_text("c a t\n")
    texts.made_up("1\tc a t\n2\td o g\n3\to x\n4\td o g\n", tmp_path / "spelling.txt", tmp_path / "made-up.txt")
    assert (tmp_path / "made-up.txt").read_text() == "d o g\n"


def test_few_digits_are_as_long_as_the_others_and_fewer(tmp_path: Path) -> None:
    texts.digits(tmp_path, tmp_path)
    few, even = (
        [line.split("\t") for line in (tmp_path / f"reverse.{part}.tsv").read_text().splitlines()]
        for part in ("few", "train")
    )
    assert all(source.split() == target.split()[::-1] for source, target in few)
    kinds, lengths = ([[len(f(source.split())) for source, _ in part] for part in (few, even)] for f in (set, list))
    assert max(lengths[0]) == max(lengths[1]) == 40
    assert sum(kinds[0]) < sum(kinds[1])
