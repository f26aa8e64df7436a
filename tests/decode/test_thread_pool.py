"""Batches written side by side."""

from contextvars import ContextVar

import pytest
import torch

from regard.decode.thread_pool import side_by_side

CPU = torch.device("cpu")
said: ContextVar[str] = ContextVar("said", default="nothing")


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_pieces(threads):
    done = side_by_side(lambda piece: float(torch.ones(piece).sum()), [5, 1, 4, 2, 3], CPU)
    assert list(done) == [(5, 5.0), (1, 1.0), (4, 4.0), (2, 2.0), (3, 3.0)]


def test_many_pieces_use_one_thread_each_and_torch_has_as_many_as_before(threads):
    seen = {count for _, count in side_by_side(lambda _: torch.get_num_threads(), range(8), CPU)}
    assert seen == {1} and torch.get_num_threads() == threads


def test_a_single_piece_has_all_threads(threads):
    assert list(side_by_side(lambda _: torch.get_num_threads(), ["piece"], CPU)) == [("piece", threads)]


def test_what_holds_for_the_caller_holds_in_every_thread(threads):
    before = said.set("something")
    assert {word for _, word in side_by_side(lambda _: said.get(), range(4), CPU)} == {"something"}
    said.reset(before)


def test_an_error_reaches_the_caller_and_no_more_is_begun(threads):
    begun = []

    def work(piece):
        begun.append(piece)
        raise ValueError(piece)

    with pytest.raises(ValueError, match="0"):
        list(side_by_side(work, range(1000), CPU))
    assert len(begun) < 1000 and torch.get_num_threads() == threads
