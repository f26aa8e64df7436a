"""What comes next is made while what is there is used."""

import threading
from collections.abc import Generator, Iterable
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class _Ended(NamedTuple):
    """After the last item: why there are no more, if that was an error."""

    error: BaseException | None = None


def ahead(items: Iterable[T], most: int = 1) -> Generator[T, None, None]:
    """The same items in the same order, made by a thread of its own, at most so many before they are asked for.

    An error among the items is raised when its turn comes. The thread ends with the loop: when the items do, or when
    this iterator is closed or forgotten.
    """
    made: SimpleQueue[T | _Ended] = SimpleQueue()
    room = threading.Semaphore(most)
    left = threading.Event()

    def make() -> None:
        try:
            iterator = iter(items)
            while room.acquire() and not left.is_set():
                made.put(next(iterator))
        except StopIteration:
            made.put(_Ended())
        except BaseException as error:  # whatever it is, it is for the loop to see
            made.put(_Ended(error))

    thread = threading.Thread(target=make, name="regard-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := made.get(), _Ended):
            room.release()
            yield item
        if item.error is not None:
            raise item.error
    finally:
        left.set()
        room.release()
        thread.join()
