"""The shortlist: what it holds of each source, and that a model folder learns it once."""

import logging
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import DIGITS
from regard.config import read
from regard.decode.lexical_shortlist import FILE, Shortlist, learn_shortlist, open_shortlist
from regard.errors import FolderError, StorageError
from regard.folder.layout import load_config
from regard.system import storage
from regard.text.builtin import grammar
from regard.text.shards.pair_shards import Shards, ShardWriter, Tokenised, gathered
from regard.text.tokenizers.tokenizer import PAD, SPACE, SPECIALS, Tokenizer, learn_tokenizer, load_tokenizer

# Token 10 is translated by 20, 21 or 22; token 11 by 20.
LIKELIEST = np.full((30, 3), PAD, np.int32)
LIKELIEST[10], LIKELIEST[11, 0] = (22, 21, 20), 20
SPECIAL = range(len(SPECIALS))
SMALL = Shortlist(LIKELIEST, np.array([25, 7], np.int32))


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "model", ignore=shutil.ignore_patterns("checkpoints")))


def tokenizer_of(folder: Path) -> Tokenizer:
    return load_tokenizer(folder, load_config(folder)[0].text)


def test_candidates_are_the_likeliest_the_source_itself_the_frequent_and_the_special_ones() -> None:
    assert SMALL.candidates([10, 11], most=2).tolist() == [*SPECIAL, 7, 10, 11, 20, 21, 22, 25]
    assert SMALL.candidates([10], most=1).tolist() == [*SPECIAL, 7, 10, 22, 25]
    assert SMALL.candidates([], most=1).tolist() == [*SPECIAL, 7, 25]


def test_a_prefix_is_among_the_candidates() -> None:
    assert SMALL.candidates([11], most=1, prefix=[28]).tolist() == [*SPECIAL, 7, 11, 20, 25, 28]


def test_a_vocabulary_map_gives_the_same_candidates() -> None:
    names = [f"word{token}" for token in range(30)]
    lines = [line.split("\t") for line in SMALL.vocabulary_map(names, most=2).splitlines()]
    listed = {source: others.split() for source, others in lines}
    for ids in ([], [10], [10, 11], [3, 29]):
        mapped = {other for source in ("", *(names[token] for token in ids)) for other in listed[source]}
        assert mapped == {names[token] for token in SMALL.candidates(ids, most=2)}


def test_the_built_in_corpus_teaches_its_dictionary(tmp_path: Path) -> None:
    pairs = grammar.corpus("train", 4000, 1)
    sentences = [side for pair in pairs for side in pair]
    tokenizer = learn_tokenizer(sentences, read({"text": {"tokenizer": "words"}}).text)
    writer = ShardWriter(tmp_path / "shards", tokenizer.size)
    for number, pair in enumerate(pairs):
        writer.add(gathered([Tokenised(number, *tokenizer.encode(pair), None)]))
    writer.close()
    shortlist = learn_shortlist(Shards(tmp_path / "shards"), tokenizer.size)
    french = {"animal": "animal", "street": "rue", "river": "rivière", "dog": "chien", "wide": "large"}
    for english, expected in french.items():
        ((token,),) = tokenizer.encode([f" {english}"])
        likeliest = tokenizer.pieces(shortlist.likeliest_VN[token, :1].tolist())
        assert [piece.strip(SPACE) for piece in likeliest] == [expected]
    assert {"la", "était", "."} <= {piece.strip(SPACE) for piece in tokenizer.pieces(shortlist.frequent_F.tolist())}
    assert PAD not in shortlist.frequent_F


def test_a_model_folder_learns_it_once(folder: Path) -> None:
    tokenizer = tokenizer_of(folder)
    first = open_shortlist(folder, tokenizer)
    for digit, word in enumerate(DIGITS):
        read_as, written = tokenizer.encode([f" {digit}", f" {word}"])
        assert first.likeliest_VN[read_as[0], 0] == written[0]
    shutil.rmtree(folder / "cache")
    again = open_shortlist(folder, tokenizer)
    np.testing.assert_array_equal(again.likeliest_VN, first.likeliest_VN)
    np.testing.assert_array_equal(again.frequent_F, first.frequent_F)


def test_a_shortlist_of_another_tokenizer_is_not_used(folder: Path) -> None:
    tokenizer = tokenizer_of(folder)
    other = learn_tokenizer(["another text"], read({"text": {"tokenizer": "words"}}).text)
    (folder / FILE).write_bytes(SMALL.as_bytes(other))
    assert open_shortlist(folder, tokenizer).likeliest_VN.shape[0] == tokenizer.size


def test_without_tokens_a_shortlist_cannot_be_learned(folder: Path) -> None:
    shutil.rmtree(folder / "cache")
    with pytest.raises(FolderError, match="Translate without --shortlist"):
        open_shortlist(folder, tokenizer_of(folder))


@pytest.mark.parametrize("content", [b"", b"no table", SMALL.likeliest_VN.tobytes()])
def test_a_damaged_file_is_named(folder: Path, content: bytes) -> None:
    (folder / FILE).write_bytes(content)
    with pytest.raises(FolderError, match=r"shortlist\.safetensors is damaged"):
        open_shortlist(folder, tokenizer_of(folder))


def test_a_folder_that_cannot_be_written_to_still_has_a_shortlist(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise StorageError("No room.")

    monkeypatch.setattr(storage, "write_file", full)
    with caplog.at_level(logging.WARNING):
        assert len(open_shortlist(folder, tokenizer_of(folder)).frequent_F)
    assert "not kept. No room." in caplog.text


def test_a_shortlist_needs_no_torch() -> None:
    code = "import sys, regard.decode.lexical_shortlist; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
