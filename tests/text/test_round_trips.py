"""What is written and read again is the same."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from damage import bounded, setting_tables, texts, whole_lines
from fuzz import seeds
from regard.config import TextConfig, as_table, parse_set, read, read_recipe
from regard.errors import ConfigError
from regard.folder import checkpoints
from regard.text.corpus import open_corpus
from regard.text.formats import tidy
from regard.text.pair import Pair
from regard.text.plain_text import open_documents
from regard.text.shards.pair_shards import Shards, ShardWriter, Tokenised, gathered
from regard.text.shards.token_stream import Stream, StreamWriter
from regard.text.tokenizers.tokenizer import Listed, cut, learn_tokenizer, load_tokenizer
from regard.training.log import Log, read_log

pairs = st.lists(st.tuples(texts, texts), max_size=5).map(lambda rows: [*rows, ("a", "b")])


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all: each example writes its files anew."""
    return tmp_path_factory.mktemp("written")


def usable(rows: list[tuple[str, str]]) -> list[Pair]:
    tidied = [Pair(*map(tidy, row)) for row in rows]
    return [pair for pair in tidied if all(pair)]


def found(*names: Path, columns: str = "") -> list[Pair]:
    return [pair for _, pair in open_corpus([str(name) for name in names], columns=columns).pairs()]


@bounded(60)
@given(pairs, st.sampled_from(["\n", "\r\n"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_what_pythons_csv_module_wrote_comes_back(
    at: Path, rows: list[tuple[str, str]], end: str, quoting: int
) -> None:
    with open(at / "a.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
        writer.writerows([("source", "target"), *rows])
    assert found(at / "a.csv") == usable(rows)


@bounded(60)
@given(pairs, st.booleans())
def test_json_lines_come_back(at: Path, rows: list[tuple[str, str]], ascii_only: bool) -> None:
    lines = [json.dumps({"en": en, "fr": fr}, ensure_ascii=ascii_only) for en, fr in rows]
    (at / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert found(at / "a.jsonl", columns="en,fr") == usable(rows)


@bounded(60)
@given(st.lists(st.tuples(whole_lines, whole_lines), max_size=5).map(lambda rows: [("1", "2"), *rows]))
def test_tables_and_parallel_files_hold_the_same_pairs(at: Path, rows: list[tuple[str, str]]) -> None:
    rows = [(source.replace("\t", " "), target.replace("\t", " ")) for source, target in rows]
    (at / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    for name, side in (("a.en", 0), ("a.fr", 1)):
        (at / name).write_text("".join(row[side] + "\n" for row in rows), encoding="utf-8")
    assert found(at / "a.tsv") == found(at / "a.en", at / "a.fr") == usable(rows)


@bounded(60)
@given(st.lists(whole_lines, max_size=6), st.sampled_from(["file", "paragraph", "line"]))
def test_running_text_comes_back(at: Path, lines: list[str], unit: str) -> None:
    (at / "a.txt").write_text("".join(line + "\n" for line in ["begin", *lines]), encoding="utf-8")
    read_again = "".join(
        line.text + "\n" * line.closes for line in open_documents([str(at / "a.txt")], unit=unit).lines()
    )
    kept = ["begin", *(line for line in lines if line.strip() or unit == "file")]
    assert read_again == "".join(line + "\n" for line in kept)


@bounded(100)
@given(setting_tables())
def test_settings_come_back(at: Path, table: dict) -> None:
    try:
        config = read(table)
    except ConfigError:
        assume(False)
    told = as_table(config)
    assert all(told[section][name] == value for section, given in table.items() for name, value in given.items())
    lines = [f"{section}.{name}={value}" for section, table in told.items() for name, value in table.items()]
    assert read(parse_set(lines)) == config
    assert read(json.loads(json.dumps(told))) == config
    written = {
        section: "".join(f"{key} = {_toml(value)}\n" for key, value in of.items()) for section, of in told.items()
    }
    (at / "a.toml").write_text("".join(f"[{section}]\n{lines}" for section, lines in written.items()), encoding="utf-8")
    assert read(read_recipe(at / "a.toml")) == config


def _toml(value: object) -> str:
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(character):08x}" for character in value) + '"'
    return repr(value).lower()


@bounded(60)
@given(texts)
def test_characters_and_words_lose_nothing_but_spaces(text: str) -> None:
    characters = Listed("characters", sorted(set(cut("characters", text))))
    assert characters.decode(characters.encode([text])[0]) == text.replace("\u2581", " ")
    words = Listed("words", sorted(set(cut("words", text))))
    assert words.decode(words.encode([text])[0]).split() == text.replace("\u2581", " ").split()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_with_bytes_lose_nothing(kind: str) -> None:
    config = TextConfig(tokenizer=kind, vocabulary=400, byte_fallback=True, normalize="none")  # type: ignore[arg-type]
    tokenizer = learn_tokenizer([*seeds.TEXTS, "a few more words\nto learn from"], config)

    @bounded(60)
    @given(texts)
    def law(text: str) -> None:
        assert tokenizer.decode(tokenizer.encode([text])[0]) == text.replace("\u2581", " ")

    law()


def test_a_stored_tokenizer_cuts_as_before(tmp_path: Path) -> None:
    for config, tokenizer in seeds.tokenizers():
        (tmp_path / tokenizer.file_name).write_bytes(tokenizer.as_bytes())
        again = load_tokenizer(tmp_path, config)
        drawn = ["", "a chat", "deux « chiens »\n <mask> \U0001f600", "\u2581", "Où\u2028est", *map(chr, range(1, 256))]
        assert again.encode(drawn) == tokenizer.encode(drawn)
        assert again.as_bytes() == tokenizer.as_bytes()


dtypes = st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool])
tensors = st.dictionaries(
    st.text("abc.", min_size=1, max_size=5),
    st.tuples(dtypes, st.lists(st.integers(0, 3), max_size=3)).map(
        lambda drawn: torch.arange(int(np.prod(drawn[1]))).reshape(drawn[1]).to(drawn[0])
    ),
    max_size=3,
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts, st.lists, max_leaves=4
)
tables = st.dictionaries(texts, plain, max_size=4)


@bounded(20)
@given(tensors, tensors, tables)
def test_a_checkpoint_comes_back(at: Path, weights: dict, training: dict, state: dict) -> None:
    checkpoints.save(at / "checkpoints", 3, weights, training, state)
    saved = checkpoints.folder_of(at / "checkpoints", 3)
    assert checkpoints.newest(at / "checkpoints", pytest.fail) == 3
    assert checkpoints.load_state(at / "checkpoints", 3) == state
    for name, before in ((checkpoints.WEIGHTS, weights), (checkpoints.TRAINING, training)):
        after = checkpoints.load_tensors(saved / name)
        assert after.keys() == before.keys()
        assert all(torch.equal(after[key], before[key]) and after[key].dtype == before[key].dtype for key in before)


@bounded(60)
@given(
    st.sampled_from(["weights.safetensors", "training.safetensors", "state.json"]),
    st.integers(0, 9999),
    st.integers(1, 255),
)
def test_one_byte_that_changed_is_noticed(at: Path, name: str, place: int, change: int) -> None:
    saved = checkpoints.folder_of(at / "whole", 2)
    if not saved.exists():
        seeds.checkpoints(at / "whole")
    whole = (saved / name).read_bytes()
    place %= len(whole)
    (saved / name).write_bytes(whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :])
    assert name in str(checkpoints.damage(saved))
    (saved / name).write_bytes(whole)
    assert checkpoints.damage(saved) is None


@bounded(60)
@given(st.lists(tables.filter(bool), max_size=4))
def test_a_log_comes_back(at: Path, lines: list[dict]) -> None:
    with Log(at / "log.jsonl", 0) as log:
        for line in lines:
            log.write(**line)
    assert read_log(at / "log.jsonl") == lines


ids = st.lists(st.integers(4, 18), max_size=5)


@bounded(30)
@given(st.lists(st.tuples(ids, ids, whole_lines, whole_lines), min_size=1, max_size=4))
def test_tokenised_pairs_come_back(at: Path, rows: list[tuple[list[int], list[int], str, str]]) -> None:
    writer = ShardWriter(at / "pairs", 19)
    writer.add(gathered([Tokenised(n, one, two, Pair(*sides)) for n, (one, two, *sides) in enumerate(rows)]))
    writer.close()
    shards = Shards(at / "pairs")
    again = [(*(side.tolist() for side in shards.ids(n)), *shards.text(n)) for n in range(len(shards))]
    assert again == rows


@bounded(30)
@given(st.lists(ids, min_size=1, max_size=4))
def test_tokenised_text_comes_back(at: Path, documents: list[list[int]]) -> None:
    writer = StreamWriter(at / "text", 19)
    for one in documents:
        writer.add(one, size=1, closes=True)
    writer.close()
    stream = Stream.open(at / "text")
    assert stream.ids.tolist() == [i for one in documents for i in (2, *one, 3)]
    assert stream.bytes == len(documents)
