"""Batches side by side: each is written by one thread of its own.

Torch would rather share out every single operation among its threads. The operations of a search are so small that the
threads then mostly wait for each other; whole batches have nothing to wait for.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def side_by_side(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], device: torch.device
) -> Iterator[tuple[Piece, Result]]:
    """Each piece and what comes of it, in order; on a processor, as many at a time as torch has threads."""
    threads = torch.get_num_threads()
    if device.type != "cpu" or min(threads, len(pieces)) < 2:
        for piece in pieces:
            yield piece, work(piece)
        return
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        # In the caller's context: heads that are silenced here are silent there.
        waiting = [(piece, pool.submit(copy_context().run, work, piece)) for piece in pieces]
        for piece, future in waiting:
            yield piece, future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # threads that begin later would take over the number of the pool's
