"""Very many texts at a time: the same ids that the tokenizer finds one by one."""

import random

import pytest

from regard.config import read
from regard.text.corpus import open_corpus
from regard.text.tokenizers import bulk
from regard.text.tokenizers.bulk import BulkEncoder
from regard.text.tokenizers.tokenizer import SPACE, Tokenizer, learn_tokenizer

SENTENCES = [side for _, pair in open_corpus(["builtin:en-fr/valid"]).pairs() for side in pair]
# Each character stands alone, at both ends of a word and inside one.
CHARACTERS = [
    chr(point) for point in (*range(1, 0x400), *range(0x2000, 0x2100), *range(0x3000, 0x3100), 0xFB01, 0x1F600)
]
STRANGE = [f"the {c} cat{c} {c}dog m{c}t" for c in CHARACTERS if c != "\n"]
SPACED = ["", " ", "  two  spaces ", f"a{SPACE} {SPACE}b", "two\nlines", "a <mask> b<mask>c", "漢字 漢 字"]


def tokenizer(**settings: object) -> Tokenizer:
    return learn_tokenizer(SENTENCES, read({"text": {"vocabulary": 600, **settings}}).text, mask=True)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lowercase": True},
        {"normalize": "none"},
        {"byte_fallback": True},
        {"tokenizer": "unigram"},
        {"tokenizer": "words"},
        {"tokenizer": "characters", "lowercase": True},
    ],
    ids=str,
)
def test_the_ids_are_those_of_the_tokenizer(settings: dict[str, object]) -> None:
    made = tokenizer(**settings)
    for texts in (SENTENCES[:500], STRANGE, SPACED, [text for text in SPACED if "\n" not in text], []):
        assert BulkEncoder(made).encode(texts).lists() == made.encode(texts)


def test_a_word_is_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, cut = tokenizer(), list[str]()
    encode = made.encode
    monkeypatch.setattr(made, "encode", lambda texts, threads: (cut.extend(texts), encode(texts))[1])
    encoder = BulkEncoder(made)
    for _ in range(2):
        encoder.encode(SENTENCES)
    assert sorted(cut) == sorted({word for text in SENTENCES for word in text.split(" ")})


def test_what_is_remembered_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MOST_WORDS", 50)
    made, random_ = tokenizer(), random.Random(0)
    encoder = BulkEncoder(made)
    for _ in range(20):
        texts = ["".join(random_.choices("abcde", k=4)) for _ in range(30)]
        assert encoder.encode(texts).lists() == made.encode(texts)
        assert len(encoder._known) <= 50
