"""Who reads what, when several processes train together: every text is read once, by one of them, and all have as much to do."""

import numpy as np
import pytest
import torch

from regard.text.batching.loader import Loader, plan
from regard.text.batching.passages import PassageLoader
from regard.text.batching.rank_split import Share
from regard.text.shards.pair_shards import Shards, ShardWriter, Tokenised, gathered
from regard.text.shards.token_stream import Stream

SIZES = (1, 2, 3, 8, 64, 1024)
TOKENS_EACH = 1500


@pytest.mark.parametrize("size", SIZES)
def test_every_text_is_read_once_an_epoch_and_the_work_is_even(size: int) -> None:
    random = np.random.default_rng(size)
    count = 40_000 if size < 1024 else 300_000
    lengths = [np.clip(random.lognormal(2.4, 0.5, count), 1, 100).astype(np.int32) for _ in range(2)]
    work = np.zeros(size)
    for epoch in range(3):
        planned = plan(*lengths, batch_tokens=TOKENS_EACH * size, seed=1, epoch=epoch)
        seen = np.zeros(count, dtype=int)
        for batch in range(len(planned)):
            numbers = planned.numbers(batch)
            for rank in range(size):
                ours = numbers[Share(rank, size).dealt(len(numbers), turn=batch)]
                seen[ours] += 1
                work[rank] += lengths[0][ours].sum() + lengths[1][ours].sum()
        assert (seen == 1).all()
    assert np.abs(work / work.mean() - 1).max() < 0.03


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    folder = tmp_path_factory.mktemp("shards") / "train"
    writer = ShardWriter(folder, vocabulary=50)
    random = np.random.default_rng(1)
    for line in range(1, 301):
        source, target = (random.integers(5, 50, random.integers(1, 12)).tolist() for _ in range(2))
        writer.add(gathered([Tokenised(line, source, target, None)]))
    writer.close()
    return Shards(folder)


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("tokens", [12, 200])
def test_the_parts_of_a_batch_are_the_batch(shards: Shards, size: int, tokens: int) -> None:
    alone = Loader(shards, tokens, seed=3).batches(epoch=1)
    parts = [Loader(shards, tokens, 3, Share(rank, size)).batches(epoch=1) for rank in range(size)]
    for whole, *shared in zip(alone, *parts, strict=True):
        assert sorted(number for part in shared for number in part.numbers) == sorted(whole.numbers)
        assert sum(part.tokens for part in shared) == whole.tokens
        assert all(len(part.target_BT) for part in shared), "nobody is left without a row to compute"


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("size", [2, 5])
def test_the_parts_of_a_batch_of_passages_are_the_batch(carried: bool, size: int) -> None:
    stream = Stream(np.random.default_rng(1).integers(5, 50, 1000), bytes=1000)

    def batches(share: Share):
        return PassageLoader(stream, 16, 64, seed=1, carried=carried, share=share).batches(epoch=2)

    for whole, *parts in zip(batches(Share()), *(batches(Share(rank, size)) for rank in range(size)), strict=True):
        rows = {number: row for part in parts for number, row in zip(part.numbers, part.ids_BT, strict=False)}
        assert sorted(rows) == sorted(whole.numbers)
        for number, row in zip(whole.numbers, whole.ids_BT, strict=True):
            length = min(len(row), len(rows[number]))
            assert torch.equal(row[:length], rows[number][:length]) and not row[length:].any()
        assert sum(part.tokens for part in parts) == whole.tokens


def test_rows_that_belong_to_a_process_for_good_lie_side_by_side() -> None:
    for count in range(9):
        blocks = [range(count)[Share(rank, 4).block(count)] for rank in range(4)]
        assert [row for block in blocks for row in block] == list(range(count))
        assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
