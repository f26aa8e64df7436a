"""BERT and classifiers, through the front door: trained, stopped and gone on with, begun from another, and used."""

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from conftest import QUICK, SMALL
from regard.config import parse_set, read, read_from
from regard.errors import ConfigError, DataError, FolderError
from regard.folder.checkpoints import load_tensors
from regard.folder.layout import load_config
from regard.text.batching.labelled import LabelledLoader, labelled_texts
from regard.text.corpus import open_corpus
from regard.text.shards.pair_shards import Shards, ShardWriter, Tokenised, gathered
from regard.text.tokenizers.tokenizer import BEGIN, END
from regard.training.run import train

STORY = "the cat sat on the mat . the dog sat on the rug .\n\na bird sang in the tree . the fish swam in the sea .\n\n"


def table(name: str, **more: Any) -> dict[str, dict[str, str]]:
    chosen = {key: value for key, value in QUICK.items() if not key.startswith("model.")}
    chosen |= {"model.name": name, "text.longest": 16, "train.steps": 14, "train.validate_steps": 7}
    chosen |= {f"model.{key}": value for key, value in {**SMALL[name], "dropout": 0.1}.items()}
    return parse_set(f"{key}={value}" for key, value in {**chosen, **more}.items())


def write_story(folder: Path) -> list[str]:
    (folder / "story.txt").write_text(STORY * 30)
    return [str(folder / "story.txt")]


def write_labels(folder: Path, count: int = 200) -> list[str]:
    """Texts whose label is told by one word among others."""
    words = ["good", "bad"]
    rows = [f"the {'very ' * (n % 3)}{words[n % 2]} film\t{words[n % 2]}\n" for n in range(count)]
    (folder / "labels.tsv").write_text("text\tlabel\n" + "".join(rows))
    return [str(folder / "labels.tsv")]


WRITE: dict[str, Callable[[Path], list[str]]] = {"bert": write_story, "classifier": write_labels}


@pytest.mark.parametrize("name", WRITE)
def test_it_trains_and_goes_on_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    data, config = WRITE[name](tmp_path), read(table(name, **{"train.checkpoint_steps": 7}))
    train(data, tmp_path / "whole", config, valid=data)
    for steps in (6, 4, 100):
        asked = count()
        train(data, tmp_path / "pieces", config, valid=data, stop=lambda asked=asked, steps=steps: next(asked) >= steps)
    whole, pieces = ((tmp_path / run / "model.safetensors").read_bytes() for run in ("whole", "pieces"))
    assert whole == pieces


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reader")
    torch.set_num_threads(1)
    story = write_story(folder)  # again and again the same: none of it can be held out
    config = read(table("bert", **{"model.width": 32, "train.steps": 200}))
    train(story, folder / "bert", config, valid=story)
    return folder / "bert"


@pytest.fixture(scope="module")
def labeller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labeller")
    torch.set_num_threads(1)
    train(write_labels(folder), folder / "model", read(table("classifier", **{"train.steps": 60})))
    return folder / "model"


def test_it_guesses_what_it_has_read(reader: Path) -> None:
    ((guesses,),) = (regard.load(reader).fill(["the dog sat on the <mask> ."], top=3),)
    assert "rug" in [guess.word for guess in guesses[0]]


def test_it_learns_labels_and_the_table_heading_is_none(labeller: Path) -> None:
    model = regard.load(labeller)
    assert model.labels == ["bad", "good"]
    assert [found.label for found in model.classify(["the very good film", "the bad film"])] == ["good", "bad"]


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_a_classifier_begins_where_a_bert_ended(reader: Path, tmp_path: Path, average: float) -> None:
    given = parse_set(["model.name=classifier", "train.steps=1", "train.rate=1e-12", f"train.ema={average}"])
    config = read_from(load_config(reader)[0], given)
    train(write_labels(tmp_path), tmp_path / "model", config, start=reader)
    before, after = (load_tensors(folder / "model.safetensors") for folder in (reader, tmp_path / "model"))
    body = [name for name in before if name.startswith("body.")]
    assert body and all(torch.allclose(before[name], after[name], atol=1e-6) for name in body)
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (reader / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("model.name=transformer", "cannot start from"),
        ("model.name=nonsense", "cannot start from"),
        ("model.width=64", "comes from the folder"),
        ("text.tokenizer=bpe", "comes from the folder"),
    ],
)
def test_what_the_earlier_model_settles_cannot_be_set(reader: Path, given: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_from(load_config(reader)[0], parse_set([given]))


def test_beginning_from_another_model_is_gentle_unless_told_otherwise(reader: Path) -> None:
    base = load_config(reader)[0]
    assert read_from(base, {}).train.rate == 1e-4
    assert read_from(base, parse_set(["train.rate=0.01"])).train.rate == 0.01


@pytest.mark.parametrize(
    ("content", "says"),
    [("a\tx\nb\tx\n", "no two different labels"), ("".join(f"a\t{n}\n" for n in range(2000)), "more than 1,000")],
)
def test_labels_that_make_no_sense_are_refused(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "labels.tsv").write_text(content)
    with pytest.raises(DataError, match=says):
        train([str(tmp_path / "labels.tsv")], tmp_path / "model", read(table("classifier")))


def test_a_label_that_training_never_shows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "valid.tsv").write_text("the film\tfair\n")
    with pytest.raises(DataError, match="'fair'"):
        train(write_labels(tmp_path), tmp_path / "m", read(table("classifier")), valid=[str(tmp_path / "valid.tsv")])


def test_bert_does_not_learn_from_pairs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="running text"):
        train(write_story(tmp_path), tmp_path / "m", read(table("bert", **{"text.kind": "pairs"})))


def test_readers_and_writers_are_not_taken_for_each_other(reader: Path, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="regard fill"):
        regard.score(reader, write_labels(tmp_path))


def test_a_heading_is_skipped_only_in_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("sentence\tlabel\nthis is a\tlabel\n")
    assert [pair.source for _, pair in labelled_texts(open_corpus([str(tmp_path / "t.tsv")]))] == ["this is a"]


def test_long_texts_are_cut_and_every_text_comes_once_an_epoch(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path / "shards", 100)
    for n in range(50):
        writer.add(gathered([Tokenised(n + 1, [10 + n] * (1 + n), [n % 3], None)]))
    writer.close()
    loader = LabelledLoader(Shards(tmp_path / "shards"), longest=12, batch_tokens=60, seed=1)
    batches = list(loader.batches(0))
    assert sorted(n for batch in batches for n in batch.numbers) == list(range(50))
    for batch in batches:
        assert batch.ids_BT.shape[1] <= 12 and batch.ids_BT.numel() <= 60
        for row, n in enumerate(batch.numbers):
            length = int(batch.lengths_B[row])
            assert batch.ids_BT[row, :length].tolist() == [BEGIN, *[10 + n] * min(1 + n, 10), END]
            assert int(batch.labels_B[row]) == n % 3


def test_score_measures_labels(labeller: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "regard", "score", str(labeller), *write_labels(tmp_path, 40), "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert report["accuracy"] == 100 and report["matthews"] == 1 and report["texts"] == 40


def test_a_finished_folder_stays_usable_while_the_command_runs_again(labeller: Path) -> None:
    before = load_config(labeller)
    outcome = train([str(labeller.parent / "labels.tsv")], labeller, before[0], stop=lambda: True)
    assert outcome.reason and load_config(labeller) == before
