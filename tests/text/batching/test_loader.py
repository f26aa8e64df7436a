"""Shards and batches: every pair once an epoch, an order that depends on (seed, epoch) alone, any position resumable."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from regard.config import parse_set, read
from regard.errors import FolderError
from regard.text.batching.loader import Loader, plan
from regard.text.pair import Pair
from regard.text.shards.pair_shards import Shards, ShardWriter, Tokenised, gathered
from regard.text.tokenizers.tokenizer import BEGIN, END, Tokenizer, learn_tokenizer

PAIRS = [([5 + i % 7] * (1 + i % 13), [6 + i % 5] * (1 + i % 11)) for i in range(500)]


@pytest.fixture(params=[10_000, 64], ids=["one shard", "many shards"])
def shards(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Shards:
    monkeypatch.setattr("regard.text.shards.pair_shards.PAIRS_IN_A_SHARD", request.param)
    writer = ShardWriter(tmp_path / "shards", vocabulary=100)
    for i, (source, target) in enumerate(PAIRS):
        writer.add(gathered([Tokenised(2 * i + 1, source, target, Pair(f"source {i}", f"cible n° {i}"))]))
    writer.close()
    return Shards(tmp_path / "shards")


def test_shards_give_back_what_they_were_given(shards: Shards) -> None:
    assert len(shards) == len(PAIRS)
    for i in range(len(PAIRS)):
        source, target = shards.ids(i)
        assert (source.tolist(), target.tolist()) == PAIRS[i]
        assert shards.text(i) == Pair(f"source {i}", f"cible n° {i}")
        assert shards.line(i) == 2 * i + 1


def test_a_large_vocabulary_needs_wider_numbers(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path / "shards", vocabulary=100_000)
    writer.add(gathered([Tokenised(1, [99_999], [70_000], None)]))
    writer.close()
    assert [side.tolist() for side in Shards(tmp_path / "shards").ids(0)] == [[99_999], [70_000]]


def test_a_text_longer_than_sixteen_bits_count_is_read_back(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path / "shards", vocabulary=100)
    writer.add(gathered([Tokenised(1, [7] * 70_000, [8], None), Tokenised(2, [9], [9, 9], None)]))
    writer.close()
    shards = Shards(tmp_path / "shards")
    assert shards.source_lengths.tolist() == [70_000, 1] and len(shards.ids(0)[0]) == 70_000
    assert [side.tolist() for side in shards.ids(1)] == [[9], [9, 9]]


def arrays(thing: object) -> Iterator[npt.NDArray[Any]]:
    """All arrays that an object holds, itself or in lists."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, list):
        for part in thing:
            yield from arrays(part)
    elif hasattr(thing, "__dict__"):
        yield from arrays(list(vars(thing).values()))


def on_disk(array: npt.NDArray[Any] | None) -> bool:
    """Whether it is a part of a mapped file."""
    return isinstance(array, np.memmap) or (array is not None and on_disk(getattr(array, "base", None)))


def test_only_lengths_are_held_in_memory(shards: Shards) -> None:
    held = [array for array in arrays(shards) if not on_disk(array)]
    assert sum(array.nbytes for array in held) == 4 * len(PAIRS)
    assert sum(array.nbytes for array in arrays(shards) if on_disk(array)) > 24 * len(PAIRS)


def test_shards_without_an_index_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="Delete that folder"):
        Shards(tmp_path)


def test_every_pair_comes_exactly_once_an_epoch(shards: Shards) -> None:
    for epoch in range(3):
        seen = [n for batch in Loader(shards, 64, seed=1).batches(epoch) for n in batch.numbers]
        assert sorted(seen) == list(range(len(PAIRS)))


def test_the_order_depends_on_seed_and_epoch_alone(shards: Shards) -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return [batch.numbers for batch in Loader(shards, 64, seed).batches(epoch)]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_any_position_can_be_taken_up_again(shards: Shards) -> None:
    whole = list(Loader(shards, 64, seed=1).batches(2))
    for first in (1, 17, len(whole) - 1, len(whole)):
        rest = list(Loader(shards, 64, seed=1).batches(2, first))
        assert [batch.numbers for batch in rest] == [batch.numbers for batch in whole[first:]]


@pytest.mark.parametrize("tokens", [1, 13, 64, 100_000])
def test_a_batch_fits_its_tokens_and_holds_at_least_one_pair(shards: Shards, tokens: int) -> None:
    for batch in Loader(shards, tokens, seed=1).batches(0):
        size = len(batch.numbers) * max(batch.source_BS.shape[1], batch.target_BT.shape[1] - 1)
        assert size <= tokens or len(batch.numbers) == 1


def test_a_batch_is_padded_at_the_end_and_framed(shards: Shards) -> None:
    for batch in Loader(shards, 64, seed=1).batches(0):
        for row, number in enumerate(batch.numbers):
            source, target = PAIRS[number]
            assert batch.source_BS[row, : batch.source_lengths_B[row]].tolist() == [*source, END]
            assert batch.target_BT[row, : batch.target_lengths_B[row]].tolist() == [BEGIN, *target, END]
            assert not batch.source_BS[row, batch.source_lengths_B[row] :].any()


def test_the_padding_share_is_the_share_of_padding(shards: Shards) -> None:
    loader = Loader(shards, 64, seed=1)
    batches = list(loader.batches(0))
    share = sum(b.padding for b in batches) / sum(b.places for b in batches)
    assert loader.padding_share(0) == pytest.approx(share)
    assert share < 0.25


def test_sorting_by_length_saves_padding() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 5000)
    planned = plan(lengths, lengths, 2048, seed=1, epoch=0)
    waste = [1 - lengths[planned.numbers(b)].mean() / lengths[planned.numbers(b)].max() for b in range(len(planned))]
    assert np.mean(waste) < 0.03


@pytest.fixture
def sampled(tmp_path: Path) -> tuple[Loader, Tokenizer, list[str]]:
    """Sentences that are cut anew in each epoch."""
    text = [f"sentence number {i} of a small corpus" + " and so on" * (i % 7) for i in range(400)]
    tokenizer = learn_tokenizer(text, read(parse_set(["text.vocabulary=120"])).text)
    writer = ShardWriter(tmp_path / "shards", tokenizer.size)
    for i, ids in enumerate(tokenizer.encode(text)):
        writer.add(gathered([Tokenised(i + 1, ids, ids, Pair(text[i], text[i]))]))
    writer.close()
    loader = Loader(Shards(tmp_path / "shards"), 400, seed=1)
    loader.sample_subwords(tokenizer, 0.3, longest=1000)
    return loader, tokenizer, text


def test_sampled_subwords_vary_by_epoch_and_can_be_resumed(sampled: tuple[Loader, Tokenizer, list[str]]) -> None:
    loader, tokenizer, text = sampled
    first, again = list(loader.batches(0)), list(loader.batches(0, first=2))
    assert all(torch.equal(a.source_BS, b.source_BS) for a, b in zip(first[2:], again, strict=True))
    lengths = [sum(int(b.source_lengths_B.sum()) for b in loader.batches(epoch)) for epoch in (0, 1)]
    assert lengths[0] != lengths[1]
    batch = first[0]
    assert [tokenizer.decode(row) for row in batch.source_BS.tolist()] == [text[n] for n in batch.numbers]


def test_batches_of_sampled_subwords_are_of_like_lengths_and_no_larger(
    sampled: tuple[Loader, Tokenizer, list[str]],
) -> None:
    loader, _, text = sampled
    for epoch in (0, 1):
        batches = list(loader.batches(epoch))
        assert sorted(n for batch in batches for n in batch.numbers) == list(range(len(text)))
        assert all(max(batch.source_BS.numel(), batch.target_BT[:, 1:].numel()) <= 400 for batch in batches)
        share = sum(b.padding for b in batches) / sum(b.places for b in batches)
        assert loader.padding_share(epoch) == pytest.approx(share)
        assert share < 0.12
