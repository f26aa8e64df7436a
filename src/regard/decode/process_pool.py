"""Translating with several processes: each has the model to itself, and they share the batches that one would have made.

So the texts are the same as one process would write: what is read together is read together here too. All else stays
with the process that asked: it cuts texts into ids and joins what comes back, in order, and it alone tells of trouble.
No torch here.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from threading import Thread
from types import TracebackType
from typing import Self

from regard.config import DecodeConfig
from regard.decode.hypothesis import Hypothesis
from regard.decode.translation import Asked, TextTranslator, Translation, Written, chunks
from regard.errors import WorkerError

Open = Callable[[int], TextTranslator]
"""Opens the translator, with so many threads. It is sent to the processes, which know it by its value."""


class Crew(TextTranslator):
    """So many processes with one translator each. It is to be used in a `with`, which ends them."""

    def __init__(self, open_with: Open, processes: int, threads: int) -> None:
        """`threads` are for all of them together."""
        self._foreman = open_with(threads)
        """Makes the batches, and writes none."""
        super().__init__(
            self._foreman.tokenizer, self._foreman.config, self._foreman._longest_source, self._foreman._folder
        )
        self._open = open_with
        self._threads = max(1, threads // processes)
        self._before = set(multiprocessing.active_children())
        # Begun anew, not forked: a fork has none of the threads that torch and CTranslate2 rely on, and may hang.
        self._pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:  # Nobody waits for what they are doing.
            for process in set(multiprocessing.active_children()) - self._before:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)

    def _batches(self, asked: list[Asked], config: DecodeConfig) -> list[list[Asked]]:
        return self._foreman._batches(asked, config)

    def _write(self, batches: list[list[Asked]], config: DecodeConfig) -> Written:
        self._prepare(config)
        # A process writes as many batches at a time as it has threads.
        shares = [batches[first : first + self._threads] for first in range(0, len(batches), self._threads)]
        try:
            running = [
                (share, self._pool.submit(_written, self._open, self._threads, share, config)) for share in shares
            ]
            for share, future in running:
                yield [one for batch in share for one in batch], future.result()
        except BrokenProcessPool:
            raise WorkerError(
                "A process that was translating has ended before it was done, perhaps for lack of memory. "
                "Use fewer --processes, or smaller --batch-tokens."
            ) from None

    def _stream(
        self, lines: Iterator[str], size: int, prefix: str, config: DecodeConfig
    ) -> Iterator[list[Translation]]:
        """One chunk ahead, so that no process waits for the last ones of a chunk."""
        self._prepare(config)
        ahead = ThreadPoolExecutor(2)
        waiting: deque[Future[Iterable[list[Translation]]]] = deque()
        try:
            for first, chunk in chunks(lines, size):
                waiting.append(ahead.submit(self._chunk, chunk, prefix, config, first))
                if len(waiting) == 2:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            ahead.shutdown(wait=False, cancel_futures=True)

    def _prepare(self, config: DecodeConfig) -> None:
        if config.shortlist:
            _ = self._shortlist  # learned now, if it must be, and not by every process


def _begin() -> None:
    """At the beginning of a process: it never outlives who began it, who alone hears Ctrl-C.

    If it ended at Ctrl-C by itself, it might do so first, and would be reported as lost.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is for processes that another one began"

    def end_with_it() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with_it, daemon=True).start()


@cache
def _translator(open_with: Open, threads: int) -> TextTranslator:
    return open_with(threads)


def _written(open_with: Open, threads: int, batches: list[list[Asked]], config: DecodeConfig) -> list[list[Hypothesis]]:
    """In a process of its own: the hypotheses of all these texts, in order."""
    found = {
        one.number: hypotheses
        for some, results in _translator(open_with, threads)._write(batches, config)
        for one, hypotheses in zip(some, results, strict=True)
    }
    return [found[one.number] for batch in batches for one in batch]
