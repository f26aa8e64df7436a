"""Very many texts -> ids: in this process while they are few, in one for each core when they are many.

Both ends of the pipe are here. `python -m regard.text.tokenizers.encoding FOLDER CONFIG` takes texts from its standard input and
writes their ids to its standard output, until the input ends; so it ends with whoever started it, however that one ends.
"""

import json
import os
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TypeVar

import numpy as np

from regard.config import TextConfig
from regard.errors import TrainingError
from regard.text.tokenizers.bulk import BulkEncoder, Encoded
from regard.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

AT_A_TIME = 2000
MANY = 400_000  # texts: to cut them takes several times as long as to start processes
CORES = os.cpu_count() or 1
MOST_PROCESSES = 8  # who reads and writes for them is busy with no more
_SIZE = struct.Struct("<Q")
_SIZES = struct.Struct("<QQ")

T = TypeVar("T")


class Encoder:
    """Finds the ids of texts, many at a time and in the order in which they come. Leave it as a context."""

    def __init__(self, tokenizer: Tokenizer, folder: Path, config: TextConfig, texts: int) -> None:
        """`folder` holds the same tokenizer, for other processes; `texts` is how many there will be, about."""
        self._own = BulkEncoder(tokenizer)
        self._processes = min(CORES, MOST_PROCESSES) if texts >= MANY and CORES > 1 else 0
        self._command = [sys.executable, "-P", "-m", __name__, str(folder), json.dumps(asdict(config))]
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._open = ExitStack()

    def __enter__(self) -> "Encoder":
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        for _ in range(self._processes):
            # A session of its own, so that Ctrl-C reaches only us: we end it.
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
            )
            self._idle.put(self._open.enter_context(process))
        self._threads = ThreadPoolExecutor(max(1, self._processes))
        self._open.callback(self._threads.shutdown, cancel_futures=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def chunks(self, things: Iterator[T], texts: Callable[[T], tuple[str, ...]]) -> Iterator[tuple[list[T], Encoded]]:
        """The things, many at a time, and the ids of all their texts."""
        chunks = iter(lambda: list(islice(things, AT_A_TIME)), [])
        asked = ((chunk, [text for thing in chunk for text in texts(thing)]) for chunk in chunks)
        if not self._processes:
            yield from ((chunk, self._own.encode(wanted, threads=CORES)) for chunk, wanted in asked)
            return
        waiting: deque[tuple[list[T], Future[Encoded]]] = deque()
        for chunk, wanted in asked:
            waiting.append((chunk, self._threads.submit(self._ask, wanted)))
            if len(waiting) > 2 * self._processes:
                yield _answered(*waiting.popleft())
        while waiting:
            yield _answered(*waiting.popleft())

    def _ask(self, texts: list[str]) -> Encoded:
        question = json.dumps(texts, ensure_ascii=False).encode()
        process = self._idle.get()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(_SIZE.pack(len(question)))
            process.stdin.write(question)
            process.stdin.flush()
            lengths, ids = _SIZES.unpack(_read(process.stdout, _SIZES.size))
            answer = [np.frombuffer(_read(process.stdout, 4 * size), np.int32) for size in (lengths, ids)]
        except (OSError, EOFError, ValueError):  # the last, if it was found to have ended before
            with suppress(OSError):
                process.stdin.close()
            raise TrainingError(
                f"A process that cuts text into tokens has ended ({process.wait()}), perhaps for want of memory. "
                "Run the same command again: it goes on where this one stopped."
            ) from None
        finally:
            self._idle.put(process)
        return Encoded(*answer)


def _answered(chunk: list[T], answer: "Future[Encoded]") -> tuple[list[T], Encoded]:
    return chunk, answer.result()


def _read(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _serve(encoder: BulkEncoder, source: IO[bytes], to: IO[bytes]) -> None:
    """The other end of the pipe."""
    while header := source.read(_SIZE.size):
        encoded = encoder.encode(json.loads(_read(source, *_SIZE.unpack(header))))
        to.write(_SIZES.pack(*map(len, encoded)) + encoded.lengths.tobytes() + encoded.ids.tobytes())
        to.flush()


if __name__ == "__main__":
    try:
        tokenizer = load_tokenizer(Path(sys.argv[1]), TextConfig(**json.loads(sys.argv[2])))
        _serve(BulkEncoder(tokenizer), sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, EOFError):
        # Nobody waits for an answer any more.
        os._exit(0)
