"""Items made ahead are the same items, in their order, and nothing is left behind."""

import threading
from collections.abc import Iterator

import pytest

from regard.text.batching.prefetch import ahead


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "regard-ahead"]


def counted(made: list[int], last: int = 100) -> Iterator[int]:
    for number in range(last):
        made.append(number)
        yield number


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_items_are_the_same_and_in_order(most: int) -> None:
    assert list(ahead(range(100), most)) == list(range(100))
    assert list(ahead([], most)) == []


def test_an_item_is_made_while_the_one_before_it_is_used() -> None:
    second = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        second.set()
        yield 2

    for item in ahead(items()):
        if item == 1:
            assert second.wait(timeout=60)


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_is_made_than_may_wait(most: int) -> None:
    made: list[int] = []
    for item in ahead(counted(made), most):
        assert len(made) <= item + 1 + most


def test_an_error_comes_at_its_turn() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("the third is broken")

    seen = []
    with pytest.raises(ValueError, match="the third is broken"):
        for item in ahead(items(), most=3):
            seen.append(item)
    assert seen == [1, 2]
    assert not threads()


def test_the_thread_ends_when_the_items_do() -> None:
    assert list(ahead(range(3))) == [0, 1, 2]
    assert not threads()


def test_the_thread_ends_when_the_loop_is_left() -> None:
    made: list[int] = []
    items = ahead(counted(made))
    assert next(items) == 0
    items.close()
    assert not threads()
    assert len(made) <= 2


def test_nothing_is_made_before_it_is_asked_for() -> None:
    made: list[int] = []
    items = ahead(counted(made))
    assert not made
    items.close()
    assert not threads()
