"""Results: every one has its recipe and its texts, and what a run reached is written down with how."""

import gzip
import re
from pathlib import Path

import pytest

from recipes import results, texts
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
    said = results.run("toy", tmp_path, tmp_path, seed=7, threads=1)
    assert f"{train} --seed 7 --threads 1" in said
    assert re.search(r"3 steps in \d+\.\d minutes on 1 thread", said)
    assert re.search(r"BLEU \d+\.\d\d \[.+\] `nrefs:1\|.*\|version:", said) and "WER" in said and "exact match" in said
    assert str(tmp_path) not in said


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
