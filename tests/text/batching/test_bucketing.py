"""Batches of very many pairs: the same ones that plain sorting and cutting give, in little memory."""

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from regard.text.batching import bucketing
from regard.text.batching.loader import plan

Lengths = npt.NDArray[Any]


def plainly(source: Lengths, target: Lengths, batch_tokens: int, seed: int, epoch: int) -> tuple[Lengths, Lengths]:
    """What `plan` promises, word by word: order and bounds."""
    random = np.random.Generator(np.random.PCG64([seed, epoch]))
    longer = np.maximum(source, target)
    shuffled = random.permutation(len(longer))
    ordered = shuffled[np.lexsort((source[shuffled], target[shuffled], longer[shuffled]))]
    tokens, bounds, start = longer[ordered].astype(int) + 1, [], 0
    while start < len(ordered):
        size = 1
        while start + size < len(ordered) and (size + 1) * tokens[start + size] <= batch_tokens:
            size += 1
        bounds.append((start, start + size))
        start += size
    return ordered, random.permutation(np.array(bounds, dtype=np.int64).reshape(-1, 2))


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("longest", [0, 1, 60, 255, 256, 3000])
@pytest.mark.parametrize("batch_tokens", [1, 100, 2048])
def test_the_batches_are_those_of_plain_sorting_and_cutting(dtype: type, longest: int, batch_tokens: int) -> None:
    random = np.random.default_rng(longest)
    for count in (0, 1, 2, 1000):
        source, target = random.integers(0, longest, (2, count), endpoint=True).astype(dtype)
        expected = plainly(source, target, batch_tokens, seed=3, epoch=count)
        found = plan(source, target, batch_tokens, seed=3, epoch=count)
        assert np.array_equal(found.order, expected[0])
        assert np.array_equal(found.bounds, expected[1])


def test_a_few_at_a_time_is_the_same_as_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = np.random.default_rng(0).integers(1, 400, (2, 5000)).astype(np.uint16)
    together = plan(source, target, 4096, seed=1, epoch=0)
    monkeypatch.setattr(bucketing, "AT_A_TIME", 77)
    few = plan(source, target, 4096, seed=1, epoch=0)
    assert np.array_equal(few.order, together.order) and np.array_equal(few.bounds, together.bounds)


def test_texts_longer_than_sixteen_bits_count_are_sorted_too() -> None:
    lengths = np.array([70_000, 3, 2**20, 70_001, 65_535, 65_536])
    found = plan(lengths, lengths, 1, seed=1, epoch=0)
    assert lengths[found.order].tolist() == sorted(lengths.tolist())


def test_planning_takes_two_narrow_numbers_for_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucketing, "AT_A_TIME", 1 << 12)
    source, target = np.random.default_rng(0).integers(1, 60, (2, 1_000_000)).astype(np.uint16)
    tracemalloc.start()
    planned = plan(source, target, 4096, seed=1, epoch=0)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert planned.order.itemsize == 4
    assert held < 5 * len(source) and peak < 12 * len(source)
