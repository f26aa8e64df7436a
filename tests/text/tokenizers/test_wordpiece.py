"""The tokenizer of published BERTs: cut by hand, and as Hugging Face's library cuts."""

import json
import random
import sys
import unicodedata
from pathlib import Path

import pytest

from regard.config import TextConfig, parse_set, read
from regard.errors import ConfigError, FolderError
from regard.text.tokenizers.tokenizer import MASK, UNKNOWN, Tokenizer, learn_tokenizer, load_tokenizer
from regard.text.tokenizers.wordpiece import WordPiece

WORDS = ["un", "##aff", "##able", "runn", "##ing", "un", "want", "##ed", "wa", ",", ".", "中", "Élan", "elan"]


def config(*assignments: str) -> TextConfig:
    return read(parse_set(["text.tokenizer=wordpiece", *(f"text.{a}" for a in assignments)])).text


def tokenizer(*, lowercase: bool = True, strip_accents: bool = True, split_chinese: bool = True) -> WordPiece:
    return WordPiece(WORDS, lowercase=lowercase, strip_accents=strip_accents, split_chinese=split_chinese)


def cut(text: str, by: Tokenizer) -> list[str]:
    return by.pieces(by.encode([text])[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unaffable", ["▁un", "aff", "able"]),
        ("  UNwanted,RUNNING.", ["▁un", "want", "ed", "▁,", "▁runn", "ing", "▁."]),
        ("unwantedx running", ["<unk>", "▁runn", "ing"]),
        ("中wa中", ["▁中", "▁wa", "▁中"]),
        ("Élan", ["▁elan"]),
        ("", []),
        ("wa" * 51, ["<unk>"]),  # longer than any word may be
    ],
)
def test_the_longest_piece_that_fits_is_taken_each_time(text: str, expected: list[str]) -> None:
    words = [*WORDS, "##want", "##wa"]
    by = WordPiece(words, lowercase=True, strip_accents=True, split_chinese=True)
    assert cut(text, by) == expected


def test_capitals_accents_and_chinese_are_kept_when_they_are_to_be() -> None:
    assert cut("Élan", tokenizer(lowercase=False, strip_accents=False)) == ["▁Élan"]
    assert cut("中wa", tokenizer(split_chinese=False)) == ["<unk>"]


def test_the_mask_is_one_id_and_other_marks_are_mere_text() -> None:
    ids = tokenizer().encode(["Un<mask> <mask>.", "[SEP]", "<s>"])
    assert ids[0] == [tokenizer().encode(["un"])[0][0], MASK, MASK, tokenizer().encode(["."])[0][0]]
    assert tokenizer().mask == MASK
    for mere in ids[1:]:
        assert set(mere) == {UNKNOWN}


def test_a_stored_tokenizer_is_the_same_tokenizer(tmp_path: Path) -> None:
    own = tokenizer(lowercase=False, strip_accents=False, split_chinese=False)
    (tmp_path / own.file_name).write_bytes(own.as_bytes())
    again = load_tokenizer(tmp_path, config("lowercase=false"))
    texts = ["Élan 中wa", "unaffable, running <mask>", "UNWANTED"]
    assert (again.size, again.encode(texts)) == (own.size, own.encode(texts))
    assert again.encode(texts) != load_tokenizer(tmp_path, config("lowercase=true")).encode(texts)


def test_pieces_join_to_words() -> None:
    assert tokenizer().decode(tokenizer().encode(["Unaffable, running ☃"])[0]) == "unaffable , running ⁇"


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff\xfe\x00", b"[]", b'{"words": ["a"]}'])
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "wordpiece.json").write_bytes(content)
    with pytest.raises(FolderError, match=r"wordpiece\.json"):
        load_tokenizer(tmp_path, config())


def test_it_is_not_learned() -> None:
    with pytest.raises(ConfigError, match="imported"):
        learn_tokenizer(["some text"], config())


def odd_texts(count: int) -> list[str]:
    """Words, signs, spaces and characters of every kind that Unicode has, in a row."""
    chance = random.Random(1)
    kinds: dict[str, list[str]] = {}
    for code in range(sys.maxunicode):
        if (kind := unicodedata.category(chr(code))) != "Cs":
            kinds.setdefault(kind, []).append(chr(code))
    parts = ["the", "Naïve", "running", "don't", " ", "  ", "\n", "3.50", "中文", "İ", "ﬁ", "e\u0301"]

    def part() -> str:
        common, any_kind = chr(chance.randrange(33, 600)), chance.choice(kinds[chance.choice(sorted(kinds))])
        return chance.choice([chance.choice(parts), " ", common, any_kind])

    return ["".join(part() for _ in range(30)) for _ in range(count)]


@pytest.mark.parametrize("lowercase", [True, False])
def test_odd_texts_are_cut_as_in_hugging_faces_library(lowercase: bool, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="compares with it: pip install transformers")
    from regard.interop.huggingface import read_vocabulary

    letters = [chr(code) for code in range(33, 600)]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*specials, "the", "##ing", "run", "##n", "naive", "Na", "中", "文", *letters, *("##" + a for a in letters)]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    settings = {"do_lower_case": lowercase, "tokenizer_class": "BertTokenizer", "model_max_length": 512}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    truth = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), do_lower_case=lowercase)
    own = read_vocabulary(tmp_path, len(words)).tokenizer()
    assert own.pieces(range(6)) == ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "▁the"]
    texts = odd_texts(200)
    expected = [truth(text, add_special_tokens=False)["input_ids"] for text in texts]
    assert len({i for ids in expected for i in ids}) > 200, "most of it would be unknown"
    assert own.encode(texts) == expected  # the words above stand in Regard's order
