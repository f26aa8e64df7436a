"""Standard input, output and error as whoever started this process left them: open, closed, or of another encoding."""

import contextlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

from regard.errors import StorageError


class Terminated(BaseException):
    """The process was asked to end, by SIGTERM or because its terminal is gone. What is open is closed on the way out."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class Closed(io.TextIOBase):
    """Standard output that is not there. What would be written is not lost in silence."""

    def write(self, _text: str) -> NoReturn:
        raise StorageError("Standard output is closed, so nothing can be shown. Open it: >FILE, or >/dev/null.")

    def reconfigure(self, **_: Any) -> None:
        """As other standard outputs can."""


def prepare() -> None:
    """Let no file that is opened later be taken for a standard stream, and no letter that cannot be shown end a command."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout = sys.stdout or Closed()
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 (print would take None for standard output)
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict":
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def someone_types() -> bool:
    """Whether standard input is a person, who waits for each answer."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def abandon_stdout() -> None:
    """Nobody reads it, or it takes nothing more: Python would complain once more at exit."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def print_json(table: Any) -> None:
    """One line of JSON that is right whatever the encoding of standard output is."""
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    print(json.dumps(table, ensure_ascii=not unicode))


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is done here as Ctrl-C does, unless someone has made other arrangements."""

    def end(number: int, _frame: object) -> NoReturn:
        raise Terminated(number)

    main = threading.current_thread() is threading.main_thread()
    ours = [one for one in (signal.SIGTERM, signal.SIGHUP) if main and signal.getsignal(one) == signal.SIG_DFL]
    for one in ours:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)
