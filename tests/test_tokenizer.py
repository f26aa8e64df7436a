"""Text -> ids -> text."""

from pathlib import Path

import pytest

from regard.config import TextConfig, parse_set, read
from regard.errors import ConfigError, DataError, FolderError
from regard.text.tokenizer import BEGIN, END, PAD, UNKNOWN, Tokenizer, learn_tokenizer, load_tokenizer

LINES = [f"The animal number {i} didn't cross l'avenue {i % 7}, because it was tired." for i in range(200)]
KINDS = ["bpe", "unigram", "words", "characters"]


def settings(*assignments: str) -> TextConfig:
    return read(parse_set(f"text.{assignment}" for assignment in assignments)).text


def learned(kind: str, *more: str) -> Tokenizer:
    return learn_tokenizer(LINES, settings(f"tokenizer={kind}", "vocabulary=300", *more))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_joins_to_the_same_text(kind: str) -> None:
    tokenizer = learned(kind)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode(LINES)] == LINES


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_tokenizer_is_the_same_tokenizer(kind: str, tmp_path: Path) -> None:
    tokenizer, config = learned(kind), settings(f"tokenizer={kind}")
    (tmp_path / tokenizer.file_name).write_bytes(tokenizer.as_bytes())
    again = load_tokenizer(tmp_path, config)
    assert (again.size, again.encode(LINES)) == (tokenizer.size, tokenizer.encode(LINES))


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_are_the_same_everywhere_and_never_written(kind: str) -> None:
    tokenizer = learned(kind)
    assert tokenizer.pieces([PAD, UNKNOWN, BEGIN, END]) == ["<pad>", "<unk>", "<s>", "</s>"]
    (ids,) = tokenizer.encode(["tired."])
    assert tokenizer.decode([BEGIN, *ids, END, PAD]) == "tired."


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_character_is_marked_not_lost(kind: str) -> None:
    tokenizer = learned(kind)
    (ids,) = tokenizer.encode(["☃"])
    assert UNKNOWN in ids
    assert "⁇" in tokenizer.decode(ids)


def test_bytes_spell_what_the_vocabulary_lacks() -> None:
    tokenizer = learn_tokenizer(LINES, settings("vocabulary=400", "byte_fallback=true"))
    assert tokenizer.decode(tokenizer.encode(["a ☃"])[0]) == "a ☃"


@pytest.mark.parametrize("kind", KINDS)
def test_lowercase_holds_for_learning_and_reading(kind: str) -> None:
    tokenizer = learned(kind, "lowercase=true")
    assert tokenizer.decode(tokenizer.encode(["The ANIMAL"])[0]) == "the animal"


def test_unicode_is_normalised_only_when_asked() -> None:
    ligature = [*LINES, "ﬁn ½ ﬁn ½"]
    for rule, expected in (("nfkc", "fin"), ("none", "ﬁn")):
        tokenizer = learn_tokenizer(ligature, settings("vocabulary=300", f"normalize={rule}"))
        assert tokenizer.decode(tokenizer.encode(["ﬁn"])[0]) == expected


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampled_cuts_vary_by_seed_alone_and_still_join(kind: str) -> None:
    tokenizer = learned(kind)
    first, same, other = (tokenizer.sample(LINES[:20], 0.3, seed) for seed in (1, 1, 2))
    assert first == same != other
    assert [tokenizer.decode(ids) for ids in first] == LINES[:20]


def test_whole_words_cannot_be_cut_at_random() -> None:
    with pytest.raises(DataError):
        learned("words").sample(LINES, 0.1, 1)
    with pytest.raises(ConfigError):
        settings("tokenizer=words", "sampling=0.1")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_too_large_for_the_text_becomes_as_large_as_can_be(kind: str) -> None:
    assert 20 < learn_tokenizer(LINES, settings(f"tokenizer={kind}", "vocabulary=30000")).size < 5000


def test_a_vocabulary_smaller_than_the_alphabet_is_refused_with_a_number() -> None:
    with pytest.raises(DataError, match=r"text.vocabulary 9 is smaller"):
        learn_tokenizer(LINES, settings("vocabulary=9"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff\xfe\x00", b"[]", b'{"kind": "words"}'])
def test_a_damaged_tokenizer_file_is_named(kind: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / learned(kind).file_name
    path.write_bytes(content)
    with pytest.raises(FolderError, match=path.name):
        load_tokenizer(tmp_path, settings(f"tokenizer={kind}"))
