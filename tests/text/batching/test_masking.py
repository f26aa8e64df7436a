"""Hidden words: which, how many and how; rows of two texts; and batches that depend on nothing but their seed."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.config import TextConfig, parse_set, read
from regard.errors import ConfigError, DataError
from regard.text.batching.masking import Masked, MaskedLoader, hide
from regard.text.batching.sentence_pairs import (
    Sentences,
    find_sentences,
    marks_of,
    paired_rows,
    single_rows,
    word_starts,
)
from regard.text.tokenizers.tokenizer import BEGIN, END, MASK, Tokenizer, learn_tokenizer, load_tokenizer
from regard.text.tokenizers.wordpiece import WordPiece

LINES = [f"The animal number {i} didn't cross l'avenue {i % 7}, because it was tired." for i in range(200)]
KINDS = ["bpe", "unigram", "words", "characters"]


def settings(kind: str) -> TextConfig:
    return read(parse_set([f"text.tokenizer={kind}", "text.vocabulary=300"])).text


def learned(kind: str, *, mask: bool = True) -> Tokenizer:
    return learn_tokenizer(LINES, settings(kind), mask=mask)


def random(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def stream(tokenizer: Tokenizer, documents: list[str]) -> np.ndarray:
    encoded = tokenizer.encode(documents)
    return np.array([i for ids in encoded for i in (BEGIN, *ids, END)], dtype=np.uint16)


# --------------------------------------------------------------------------------------------- the mask in a tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_is_the_first_ordinary_id_and_found_in_text(kind: str) -> None:
    tokenizer = learned(kind)
    assert (tokenizer.mask, tokenizer.pieces([MASK])) == (MASK, ["<mask>"])
    (ids,) = tokenizer.encode(["<mask> animal<mask>."])
    assert (ids[0], ids.count(MASK), ids[-2]) == (MASK, 2, MASK)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words"])
def test_the_mask_takes_along_the_space_that_its_word_would_have(kind: str) -> None:
    tokenizer = learned(kind)
    whole, hidden = tokenizer.encode(["The animal was tired.", "The animal <mask> tired."])
    place = tokenizer.pieces(whole).index("▁was")
    assert hidden == [*whole[:place], MASK, *whole[place + 1 :]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_with_a_mask_cuts_ordinary_text_as_before_and_can_be_stored(kind: str, tmp_path: Path) -> None:
    tokenizer = learned(kind)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode(LINES)] == LINES
    (tmp_path / tokenizer.file_name).write_bytes(tokenizer.as_bytes())
    again = load_tokenizer(tmp_path, settings(kind))
    assert again.mask == MASK
    assert again.encode(["a <mask> b"]) == tokenizer.encode(["a <mask> b"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_without_a_mask_has_none(kind: str) -> None:
    tokenizer = learned(kind, mask=False)
    assert tokenizer.mask is None
    with pytest.raises(DataError, match="no <mask>"):
        MaskedLoader(stream(tokenizer, LINES), tokenizer, longest=32, batch_tokens=256, seed=1)


# -------------------------------------------------------------------------------------------------------- hiding words


def test_so_many_words_are_chosen_and_what_stood_there_is_told() -> None:
    ids = np.array([BEGIN, *range(10, 50), END, *range(50, 110), END])
    hidden = hide(ids, 0.15, 200, random())
    assert len(hidden.places) == 15
    assert (np.diff(hidden.places) > 0).all()
    assert (hidden.words == ids[hidden.places]).all()
    elsewhere = np.setdiff1d(np.arange(len(ids)), hidden.places)
    assert (hidden.ids[elsewhere] == ids[elsewhere]).all()


def test_eight_of_ten_are_masked_one_is_another_word_and_one_stays() -> None:
    ids = np.full(20_000, 7)
    hidden = hide(ids, 0.5, 1000, random())
    now = hidden.ids[hidden.places]
    assert (now == MASK).mean() == pytest.approx(0.8, abs=0.02)
    assert (now == 7).mean() == pytest.approx(0.1, abs=0.015)
    others = now[(now != MASK) & (now != 7)]
    assert others.min() > MASK
    assert others.max() < 1000
    assert others.mean() == pytest.approx((MASK + 1000) / 2, rel=0.1)


def test_special_ids_are_never_chosen_and_a_short_text_hides_one_word() -> None:
    ids = np.array([BEGIN, 1, 9, MASK, END, 0, 0])
    for seed in range(20):
        assert hide(ids, 0.15, 50, random(seed)).places.tolist() == [2]
    assert hide(np.array([BEGIN, 1, END]), 0.15, 50, random()).places.tolist() == []


def test_every_word_is_as_likely_to_be_chosen() -> None:
    ids = np.arange(10, 30)
    counts = np.zeros(20)
    for seed in range(2000):
        counts[hide(ids, 0.15, 50, random(seed)).places] += 1
    np.testing.assert_allclose(counts / 2000, 0.15, atol=0.03)


def test_whole_words_are_hidden_or_left_together() -> None:
    words = ["un", "##want", "##ed", "runn", "##ing", ",", "cat", "##s"]
    tokenizer = WordPiece(words, lowercase=True, strip_accents=True, split_chinese=True)
    (text,) = tokenizer.encode(["unwanted running, cats cat"])
    ids = np.array([BEGIN, *text, END])
    sizes = [[1, 2, 3], [4, 5], [6], [7, 8], [9]]
    assert [tokenizer.pieces(ids[word]) for word in sizes[:2]] == [["▁un", "want", "ed"], ["▁runn", "ing"]]
    seen = set()
    for seed in range(50):
        places = hide(ids, 0.45, 20, random(seed), whole_words=marks_of(tokenizer)).places.tolist()
        chosen = [word for word in sizes if word[0] in places]
        assert places == [place for word in chosen for place in word]
        assert len(places) <= 4
        seen |= set(places)
    assert seen == set(range(1, 10))


def test_a_word_ends_with_its_text_though_the_next_text_begins_amid_a_word() -> None:
    tokenizer = WordPiece(["un", "##want", "##ed"], lowercase=True, strip_accents=True, split_chinese=True)
    ids = np.array([BEGIN, MASK + 1, END, MASK + 2, MASK + 3, END])
    found = {tuple(hide(ids, 0.3, 20, random(seed), whole_words=marks_of(tokenizer)).places) for seed in range(20)}
    assert found == {(1,), (3, 4)}


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_subword_without_a_space_belongs_to_the_word_before_it(kind: str) -> None:
    tokenizer = learned(kind)
    (ids,) = tokenizer.encode(["The tired animal, crossed it."])
    starts = word_starts(np.array(ids), marks_of(tokenizer))
    pieces, words = tokenizer.pieces(ids), []
    for piece, start in zip(pieces, starts, strict=True):
        words += [piece] if start else []
        words[-1] += "" if start else piece
    assert words == ["▁The", "▁tired", "▁animal", ",", "▁crossed", "▁it", "."]


# -------------------------------------------------------------------------------------------------- sentences and rows


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_sentences_end_with_a_full_stop_a_line_or_a_document(kind: str) -> None:
    documents = ["It cost 3.50 here. Was it?\nNo title\nThe end.", "Another one"]
    tokenizer = learn_tokenizer([*LINES, *documents * 20], read(parse_set([f"text.tokenizer={kind}"])).text, mask=True)
    ids = stream(tokenizer, documents)
    found = find_sentences(ids, marks_of(tokenizer))
    texts = [tokenizer.decode(ids[a:b].tolist()) for a, b in zip(found.first, found.last, strict=True)]
    assert [text.strip() for text in texts] == ["It cost 3.50 here.", "Was it?", "No title", "The end.", "Another one"]
    assert found.document.tolist() == [1, 1, 1, 1, 2]
    assert list(found.by_document()) == [(0, 4), (4, 5)]


def made_up(documents: int = 40, sentences: int = 12, words: int = 7) -> Sentences:
    """Documents of equal sentences; id n stands at place n, with two places between documents."""
    length = sentences * words + 2
    first = np.array([d * length + 1 + s * words for d in range(documents) for s in range(sentences)])
    return Sentences(first, first + words, np.repeat(np.arange(1, documents + 1), sentences))


def test_half_of_the_second_texts_follow_and_half_are_from_another_document() -> None:
    sentences = made_up()
    rows = paired_rows(sentences, 50, random())
    assert 0.4 < rows.follows_R.mean() < 0.6
    for first, second, follows in zip(rows.first_R2, rows.second_R2, rows.follows_R, strict=True):
        # 86 places are a document's.
        assert (first[0] // 86 == second[0] // 86) == bool(follows)
        if follows:
            assert 0 <= second[0] - first[1] < 50, "something is left out between them, more than was trimmed"


def test_rows_fit_hold_two_texts_and_lose_no_sentence() -> None:
    sentences = made_up()
    rows = paired_rows(sentences, 50, random())
    sizes = np.diff(rows.first_R2)[:, 0], np.diff(rows.second_R2)[:, 0]
    assert min(sizes[0].min(), sizes[1].min()) > 0
    assert (sizes[0] + sizes[1]).max() == 50
    own = np.zeros(sentences.last.max(), dtype=int)
    for first, second, follows in zip(rows.first_R2, rows.second_R2, rows.follows_R, strict=True):
        own[first[0] : first[1]] += 1
        own[second[0] : second[1]] += follows
    assert own.max() == 1, "a place stands in a row twice, not counting strangers"
    assert own.sum() > 0.85 * 7 * len(sentences.first), "more is lost than trimming takes"


def test_rows_of_one_text_are_whole_sentences_and_all_of_the_text() -> None:
    sentences = made_up()
    rows = single_rows(sentences, 50, random())
    places = np.concatenate([np.arange(*text) for text in rows.first_R2])
    expected = [np.arange(a, b) for a, b in zip(sentences.first, sentences.last, strict=True)]
    assert places.tolist() == np.concatenate(expected).tolist()
    sizes = np.diff(rows.first_R2)[:, 0]
    assert sizes.max() == 49, "seven sentences of seven words fit into 50"
    assert np.isin(rows.first_R2[sizes > 6, 1], sentences.last).all()
    assert (np.diff(rows.second_R2) == 0).all()


def test_a_sentence_longer_than_a_row_is_cut() -> None:
    one = Sentences(np.array([1]), np.array([101]), np.array([1]))
    rows = single_rows(one, 30, random())
    assert rows.first_R2[0, 0] == 1
    assert rows.first_R2[-1, 1] == 101
    assert np.diff(rows.first_R2).max() == 30


@pytest.mark.parametrize("sentences", [made_up(documents=1), made_up(sentences=1)], ids=["one", "short"])
def test_text_that_cannot_show_what_follows_is_refused(sentences: Sentences) -> None:
    with pytest.raises(DataError, match=r"model\.next_sentence=false"):
        paired_rows(sentences, 50, random())


# ------------------------------------------------------------------------------------------------------------- batches

DOCUMENTS = [" ".join(LINES[i : i + 10]) for i in range(0, 200, 10)]


def loader(tokenizer: Tokenizer | None = None, **changes: bool | int) -> MaskedLoader:
    tokenizer = tokenizer or learned("bpe")
    given = {"longest": 64, "batch_tokens": 512, "seed": 3, **changes}
    return MaskedLoader(stream(tokenizer, DOCUMENTS), tokenizer, **given)  # type: ignore[arg-type]


def same(one: Masked, other: Masked) -> bool:
    names = ("ids_BT", "lengths_B", "segments_BT", "guessed_N", "words_N", "follows_B")
    return one.numbers == other.numbers and all(torch.equal(getattr(one, n), getattr(other, n)) for n in names)


@pytest.mark.parametrize("next_sentence", [True, False])
def test_rows_are_framed_and_the_right_words_are_told(next_sentence: bool) -> None:
    own = loader(next_sentence=next_sentence)
    batches = list(own.batches(0))
    assert len(batches) == own.count(0)
    for batch in batches:
        assert batch.places <= 512
        assert batch.ids_BT.shape[1] == batch.lengths_B.max() <= 64
        restored = batch.ids_BT.flatten().clone()
        restored[batch.guessed_N] = batch.words_N
        for row, segment, length, number in zip(
            restored.view_as(batch.ids_BT), batch.segments_BT, batch.lengths_B, batch.numbers, strict=True
        ):
            ends = (row == END).nonzero()[:, 0].tolist()
            assert row[0] == BEGIN
            assert row[1 : ends[0]].tolist() == own.ids[number : number + ends[0] - 1].tolist()
            assert ends[-1] == length - 1
            assert not row[length:].any()
            assert len(ends) == 1 + next_sentence
            seconds = segment.nonzero()[:, 0].tolist()
            assert seconds == (list(range(ends[0] + 1, int(length))) if next_sentence else [])


def test_batches_know_their_size() -> None:
    (batch, *_) = loader().batches(0)
    assert batch.tokens == len(batch.guessed_N) == len(batch.words_N)
    assert batch.places == batch.ids_BT.numel()
    assert batch.padding == int((batch.ids_BT == 0).sum())
    assert same(batch.to(torch.device("cpu")), batch)
    own = loader()
    wasted = sum(b.padding for b in own.batches(2)) / sum(b.places for b in own.batches(2))
    assert own.padding_share(2) == pytest.approx(wasted)


def test_a_batch_depends_on_seed_epoch_and_number_alone() -> None:
    whole = list(loader().batches(1))
    again = loader()
    list(again.batches(0))
    for first in (0, 1, len(whole) - 1):
        assert all(same(a, b) for a, b in zip(again.batches(1, first), whole[first:], strict=True))


def test_each_batch_hides_by_chances_of_its_own() -> None:
    same_lengths = [" ".join([LINES[3]] * 10)] * 60
    tokenizer = learned("words")
    own = MaskedLoader(stream(tokenizer, same_lengths), tokenizer, longest=64, batch_tokens=64, seed=3)
    full = [batch.guessed_N.tolist() for batch in own.batches(0) if batch.lengths_B[0] == 64]
    assert len(full) > 20
    assert len({tuple(places) for places in full}) == len(full)


@pytest.mark.parametrize(("seed", "epoch"), [(3, 2), (4, 1)])
def test_another_epoch_or_seed_hides_other_words_of_other_rows(seed: int, epoch: int) -> None:
    one, other = list(loader().batches(1)), list(loader(seed=seed).batches(epoch))
    assert not any(same(a, b) for a, b in zip(one, other, strict=False))
    assert {n for b in one for n in b.numbers} != {n for b in other for n in b.numbers}


def test_settings_that_leave_no_room_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"text\.longest 4"):
        loader(longest=4)
