"""What is validated on is never trained on: neither a source nor a target, no labelled text, no passage."""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import bounded
from regard.config import TextConfig, read
from regard.errors import DataError
from regard.text.batching.labelled import prepare_labels
from regard.text.corpus import open_corpus
from regard.text.pair import Pair
from regard.text.plain_text import open_documents
from regard.text.shards.pair_shards import Shards
from regard.text.shards.passage_keys import LETTERS
from regard.text.shards.prepare_pairs import prepare
from regard.text.shards.prepare_text import prepare_text
from regard.text.tokenizers.tokenizer import learn_tokenizer

WORDS = read({"text": {"tokenizer": "words"}}).text
TWICE = [f"{number}\t{label}" for number in range(100) for label in ("good", "bad")]
DISTINCT = [f"word{number}\tmot{number}" for number in range(300)]


class StoppedError(Exception):
    """Ctrl-C."""


def quiet(what: str, done: int) -> None:
    """No progress is told."""


def made(prepare: Callable[..., Any], texts: Any, to: Path, config: TextConfig = WORDS, valid: Any = None) -> Any:
    return prepare(texts, valid, config, to, 1, quiet, partial(learn_tokenizer, config=config))


def table(path: Path, rows: Iterable[str]) -> Any:
    path.write_text("".join(f"{row}\n" for row in rows))
    return open_corpus([str(path)])


def rows(corpus: Any, shards: Shards) -> list[Pair]:
    """Those of the corpus that are in the shards."""
    lines = {shards.line(number) for number in range(len(shards))}
    return [pair for line, pair in corpus.pairs() if line in lines]


def both(corpus: Any, prepared: Any) -> tuple[list[Pair], list[Pair]]:
    """What is trained on, and what is validated on; nothing of one may be in the other."""
    train, valid = rows(corpus, prepared.train), rows(corpus, prepared.valid)
    for side in (0, 1):
        assert not {pair[side] for pair in train} & {pair[side] for pair in valid}
    return train, valid


def test_of_ten_copies_of_each_pair_those_of_the_held_out_are_not_trained_on(tmp_path: Path) -> None:
    corpus = table(tmp_path / "a.tsv", DISTINCT * 10)
    prepared = made(prepare, corpus, tmp_path / "tokens")
    train, valid = both(corpus, prepared)
    assert len(valid) >= 30 and len(train) == 3000 - 10 * len(valid)
    assert f"left out {9 * len(valid)} pairs whose source or target is held out too" in prepared.notes


def test_where_no_pair_is_like_another_nothing_is_left_out(tmp_path: Path) -> None:
    prepared = made(prepare, table(tmp_path / "a.tsv", DISTINCT), tmp_path / "tokens")
    assert (len(prepared.train), len(prepared.valid)) == (270, 30)
    assert prepared.notes[0] == "held out 30 of 300 pairs for validation, as no --valid was given"


def test_rare_pairs_are_held_out_rather_than_common_ones(tmp_path: Path) -> None:
    corpus = table(tmp_path / "a.tsv", [*DISTINCT, *(f"thank you {number}\tmerci" for number in range(300))])
    train, valid = both(corpus, made(prepare, corpus, tmp_path / "tokens"))
    assert len(valid) == 60 and len(train) == 540


def test_pairs_that_all_share_a_few_targets_are_not_torn_out_of_training(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"too many others have the same source or target.*Give --valid"):
        made(prepare, table(tmp_path / "a.tsv", TWICE), tmp_path / "tokens")


@bounded(25)
@given(st.data())
def test_whatever_the_corpus_nothing_held_out_is_trained_on(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("any")
    size, draw = data.draw(st.integers(1, 200)), random.Random(data.draw(st.integers(0, 99)))
    corpus = table(folder / "a.tsv", [f"s{draw.randrange(size)}\tt{draw.randrange(size)}" for _ in range(90)])
    try:
        train, valid = both(corpus, made(prepare, corpus, folder / "tokens"))
    except DataError as error:
        assert "Give --valid" in str(error)
    else:
        assert len(train) >= 72 and valid


def test_a_labelled_text_is_held_out_with_all_its_copies_whatever_their_label(tmp_path: Path) -> None:
    corpus = table(tmp_path / "a.tsv", TWICE)
    prepared = made(prepare_labels, corpus, tmp_path / "tokens")
    train, valid = rows(corpus, prepared.train), rows(corpus, prepared.valid)
    assert not {pair.source for pair in train} & {pair.source for pair in valid}
    assert len(valid) == 20 and len(train) == 160
    assert "left out 20 pairs whose text is held out too" in prepared.notes


def ids_of(prepared: Any) -> list[str]:
    """The two texts, as words."""
    return [" ".join(prepared.tokenizer.pieces(stream.ids.tolist())) for stream in (prepared.train, prepared.valid)]


def passage(number: int) -> list[str]:
    return [f"passage {number} begins with a line of its own", f"and number {number} ends with another one", ""]


@pytest.mark.parametrize("unit", ["file", "paragraph", "line"])
def test_no_passage_of_the_last_lines_is_trained_on(tmp_path: Path, unit: str) -> None:
    lines = [line for number in [*range(300), *range(10)] for line in passage(number)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    prepared = made(prepare_text, open_documents([str(tmp_path / "a.txt")], unit=unit), tmp_path / "tokens")
    train, valid = ids_of(prepared)
    held_out = [number for number in range(300) if f"▁{number} ▁begins" in valid]
    assert set(range(10)) <= set(held_out)
    assert not any(f"▁{number} ▁{verb}" in train for number in held_out for verb in ("begins", "ends"))
    assert any("whose passage is held out too" in note for note in prepared.notes)


def test_a_text_that_is_there_many_times_over_keeps_most_of_it_for_training(tmp_path: Path) -> None:
    lines = [f"{number} " + "x" * LETTERS for number in range(300)]
    (tmp_path / "a.txt").write_text("\n".join(lines * 10))
    prepared = made(prepare_text, open_documents([str(tmp_path / "a.txt")]), tmp_path / "tokens")
    train, valid = ids_of(prepared)
    assert len(prepared.train) > 8 * len(prepared.valid)
    held_out = {line for line in lines if f"▁{line.split()[0]} " in valid}
    assert len(held_out) >= 30 and not any(f"▁{line.split()[0]} " in train for line in held_out)


def test_what_is_all_over_a_text_is_trained_on_and_not_validated_on(tmp_path: Path) -> None:
    licence = "You may copy this text as often as you like, says the licence, but only as a whole."
    lines = [line for number in range(300) for line in (licence, *passage(number))]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    prepared = made(prepare_text, open_documents([str(tmp_path / "a.txt")]), tmp_path / "tokens")
    train, valid = ids_of(prepared)
    assert train.count("licence") == 270 and "licence" not in valid and valid.count("begins") == 30
    assert any("all over the text" in note for note in prepared.notes)


@pytest.mark.parametrize("kind", ["pairs", "text"])
def test_an_interruption_among_copies_changes_nothing(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tokenizers.encoding.AT_A_TIME", "shards.held_out.TOLD_EVERY", "shards.passage_keys.TOLD_EVERY"):
        monkeypatch.setattr(f"regard.text.{module}", 20)
    monkeypatch.setattr("regard.text.shards.prepare_pairs.SAVED_EVERY", 40)
    monkeypatch.setattr("regard.text.shards.prepare_text.SAVED_EVERY", 40)
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for n in range(100) for line in passage(n % 60)))
    pairs = table(tmp_path / "a.tsv", DISTINCT[:60] * 5)
    texts, prepared = (pairs, prepare) if kind == "pairs" else (open_documents([str(tmp_path / "a.txt")]), prepare_text)

    def again(to: Path, calls: int) -> None:
        left = iter(range(calls))

        def progress(what: str, done: int) -> None:
            if next(left, None) is None:
                raise StoppedError

        prepared(texts, None, WORDS, to, 1, progress, partial(learn_tokenizer, config=WORDS))

    again(tmp_path / "whole", 10**6)
    for _ in range(100):
        try:
            again(tmp_path / "again", 55)
            break
        except StoppedError:
            continue
    assert content(tmp_path / "again") == content(tmp_path / "whole")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("prepare", "rows", "what"), [(prepare, DISTINCT, "source or target"), (prepare_labels, TWICE, "text")]
)
def test_what_is_in_a_given_validation_too_is_kept_and_counted(
    tmp_path: Path, prepare: Callable[..., Any], rows: Sequence[str], what: str
) -> None:
    valid = table(tmp_path / "valid.tsv", [rows[3], rows[4]])
    prepared = made(prepare, table(tmp_path / "a.tsv", rows), tmp_path / "tokens", valid=valid)
    assert len(prepared.train) == len(rows)
    (note,) = [note for note in prepared.notes if "too good" in note]
    assert note.startswith("2 pairs" if what != "text" else "4 pairs") and f"the {what} is in" in note
