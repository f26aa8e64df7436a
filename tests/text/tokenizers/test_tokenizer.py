"""Text -> ids -> text."""

import math
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from regard.config import TextConfig, parse_set, read
from regard.errors import ConfigError, DataError, FolderError
from regard.text.tokenizers.subword_sampling import BpeDropout, UnigramSampling
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, UNKNOWN, Tokenizer, learn_tokenizer, load_tokenizer

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
def test_the_ids_do_not_depend_on_how_many_threads_find_them(kind: str) -> None:
    tokenizer = learned(kind)
    assert tokenizer.encode(LINES, threads=3) == tokenizer.encode(LINES)


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


@pytest.mark.parametrize(("kind", "nothing_random"), [("bpe", 0.0), ("unigram", 200.0)])
@pytest.mark.parametrize("more", [[], ["byte_fallback=true", "vocabulary=500"]], ids=["", "bytes"])
def test_without_chance_the_cut_is_sentencepieces_own(kind: str, nothing_random: float, more: list[str]) -> None:
    tokenizer = learned(kind, *more)
    text = [*LINES, "☃☃ unseen ☃ Wörter", "", "crossanimaltired", "  two  spaces "]
    assert tokenizer.sample(text, nothing_random, seed=1) == tokenizer.encode(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampled_cuts_are_the_same_in_every_process(kind: str, tmp_path: Path) -> None:
    tokenizer = learned(kind)
    (tmp_path / "model").write_bytes(tokenizer.as_bytes())
    code = (
        "import sys; from pathlib import Path; from regard.text.tokenizers.tokenizer import Subwords\n"
        f"print(Subwords(Path(sys.argv[1]).read_bytes(), {kind!r}).sample([{LINES[3]!r}] * 9, 0.3, 7))"
    )
    found = [
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, check=True).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1] == f"{tokenizer.sample([LINES[3]] * 9, 0.3, 7)}\n".encode()


def test_a_unigram_cut_is_as_frequent_as_its_probability() -> None:
    scores = {"a": math.log(0.4), "b": math.log(0.3), "ab": math.log(0.3)}
    random = Random(1)
    whole = sum(UnigramSampling(scores).cut("ab", 0.5, random) == ["ab"] for _ in range(4000)) / 4000
    expected = 0.3**0.5 / (0.3**0.5 + (0.4 * 0.3) ** 0.5)
    assert whole == pytest.approx(expected, abs=0.03)


def test_bpe_dropout_skips_as_many_merges_as_it_is_told() -> None:
    random = Random(1)
    whole = sum(BpeDropout({"ab": -1.0}).cut("ab", 0.25, random) == ["ab"] for _ in range(4000)) / 4000
    assert whole == pytest.approx(0.75, abs=0.03)


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


@pytest.mark.parametrize("amount", [0.0, 0.1, 0.5, 1.0])
def test_a_long_word_is_cut_at_random_as_a_short_one_is(amount: float, monkeypatch: pytest.MonkeyPatch) -> None:
    cutter = learned("bpe")._cutter  # type: ignore[attr-defined]
    words = ["\u2581" + line.replace(" ", "") for line in LINES[:5]]

    def lengths() -> float:
        """Pieces on average, over draws enough to tell one distribution from another."""
        random = Random(1)
        found = [cutter.cut(word, amount, random) for word in words for _ in range(200)]
        assert ["".join(pieces) for pieces in found[::200]] == words
        return sum(map(len, found)) / len(found)

    short = lengths()
    monkeypatch.setattr("regard.text.tokenizers.subword_sampling.LONG", 0)
    assert lengths() == pytest.approx(short, rel=0 if amount in (0.0, 1.0) else 0.02)
