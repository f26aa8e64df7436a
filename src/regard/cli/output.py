"""Where results go: a file, standard output or a pipe. Whatever ends a command, what was done is kept and told of.

A file grows under the name `FILE.unfinished` beside it, and takes its own when it is complete. What a rename would destroy
(a device, a pipe, standard output by any of its names) is written to as it is.
"""

import argparse
import errno
import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from regard.cli.values import path as path_of
from regard.errors import StorageError

AT_A_TIME = 1000
"""Inputs after which what they gave is written at the latest."""
ENDING = ".unfinished"
_WAITING = 1 << 20  # bytes of results in memory at most
_LONGEST_NAME = 240  # bytes, so that there is room for the ending and a number
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def add_output_option(parser: argparse.ArgumentParser, what: str = "write to a file") -> None:
    """`--output FILE`."""
    parser.add_argument(
        "--output",
        type=path_of,
        metavar="FILE",
        help=f"{what}; it grows as FILE{ENDING} until it is complete, which stays if the command is ended before",
    )


class Output:
    """Takes what each input gives, in order: all of it is written, or nothing."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.done = 0
        """Inputs of which all has been written."""
        self.size = 0
        """Bytes of these."""
        self.interrupted = False
        """Whether a part of what waits may have been written."""
        self._write = write
        self._waiting: list[bytes] = []
        self._bytes = 0

    def put(self, *lines: str) -> None:
        """The lines that the next input gives, if any."""
        self.put_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))

    def put_bytes(self, content: bytes) -> None:
        """The bytes that the next input gives."""
        self._waiting.append(content)
        self._bytes += len(content)
        if len(self._waiting) >= AT_A_TIME or self._bytes >= _WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits. Until that is done it goes on waiting."""
        self.interrupted = True
        self._write(b"".join(self._waiting))
        self.interrupted = False
        self.done, self.size = self.done + len(self._waiting), self.size + self._bytes
        self._waiting, self._bytes = [], 0

    def salvage(self) -> None:
        """Of what waits and cannot be written as a whole, write what can."""
        while self._waiting:
            self._write(self._waiting[0])
            self.done, self.size = self.done + 1, self.size + len(self._waiting.pop(0))


Header = Callable[[int], bytes]
"""What a file begins with when it holds the results of so many inputs: always as many bytes."""


@contextmanager
def open_output(path: Path | None, *, header: Header | None = None, source: str | None = None) -> Iterator[Output]:
    """Where results go. It is to be opened before anything that takes long: a target that cannot be is refused here.

    `source` is the file the inputs are from, if messages are to tell how to go on with it.
    """
    if path is None or _is_stdout(path):
        yield from _to_stdout()
    elif _is_special(path):
        yield from _as_it_is(path, header)
    else:
        yield from _beside(path, header, source)


def _to_stdout() -> Iterator[Output]:
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]

    def write(content: bytes) -> None:
        sys.stdout.write(content.decode())
        sys.stdout.flush()

    yield from _flushed(Output(write))


def _as_it_is(path: Path, header: Header | None) -> Iterator[Output]:
    """A device or a pipe, which can be neither renamed nor wound back: a file with a header is whole before it goes there."""
    with _told(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
    with open(descriptor, "wb", buffering=0) as target:

        def write(content: bytes) -> None:
            with _told(path):
                _write_all(target, content)

        if header is None:
            out = Output(write)
            yield from _flushed(out)
            return
        with tempfile.TemporaryFile() as whole:
            whole.write(header(0))
            out = Output(whole.write)
            yield out
            out.flush()
            whole.seek(0)
            whole.write(header(out.done))
            whole.seek(0)
            while content := whole.read(_WAITING):
                write(content)


def _flushed(out: Output) -> Iterator[Output]:
    """Whatever ends it, what was put there is written, if it can be; but nothing twice, where a part of it is out."""
    try:
        yield out
    except BaseException:
        if not out.interrupted:
            with suppress(OSError, StorageError):
                out.flush()
        raise
    out.flush()


def _beside(path: Path, header: Header | None, source: str | None) -> Iterator[Output]:
    kept = _Kept(path, header)
    try:
        yield kept.out
        kept.finish()
    except BaseException as error:
        if left := kept.left():
            error.add_note(_how_to_go_on(left, kept.out.done, source))
        raise


class _Kept:
    """The unfinished file."""

    def __init__(self, path: Path, header: Header | None) -> None:
        self._asked, self._header = path, header
        self._name = Path(os.path.realpath(path))  # so that a link stays one
        with _told(path):
            self._path, self._file = _created(self._name)
        self.out = Output(self._write)
        self._start = len(header(0)) if header else 0

    def _write(self, content: bytes) -> None:
        with _told(self._asked):
            # Whatever an earlier attempt wrote of it before it failed is written over.
            self._file.seek(self._start + self.out.size)
            _write_all(self._file, content)

    def _end(self) -> None:
        """Nothing behind what is whole, and a header that says how much that is."""
        self._file.truncate(self._start + self.out.size)
        if self._header:
            self._file.seek(0)
            _write_all(self._file, self._header(self.out.done))

    def finish(self) -> None:
        """Complete: give it its name."""
        self.out.flush()
        with _told(self._asked):
            self._end()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._path, self._name)

    def left(self) -> Path | None:
        """Not complete: keep what is whole, if anything is; where that is."""
        if not self._file.closed:
            with suppress(StorageError):
                self.out.salvage()
            with suppress(OSError):
                self._end()
            self._file.close()
        if not self.out.done:
            self._path.unlink(missing_ok=True)
            return None
        return self._path


def _created(real: Path) -> tuple[Path, BinaryIO]:
    """A new file beside the one that is to be; what an earlier command left there stays."""
    if real.is_dir():
        raise StorageError(f"Cannot write {real}: it is a folder. Name a file in it.")
    if not real.parent.is_dir():
        raise StorageError(f"Cannot write {real}: there is no folder {real.parent}. Make it, or choose another.")
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else None
    if mode is not None and not os.access(real, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    begin = os.fsdecode(os.fsencode(real.name)[:_LONGEST_NAME])
    number = 1
    while True:
        name = real.with_name(begin + ENDING + (f".{number}" if number > 1 else ""))
        try:
            file = open(name, "xb", buffering=0)  # noqa: SIM115 (closed by whoever holds it)
        except FileExistsError:
            number += 1
            continue
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        return name, file


def _how_to_go_on(left: Path, done: int, source: str | None) -> str:
    what = f"What {done:,} line{'s' if done > 1 else ''} gave is kept in {left}."
    if not source or source == "-":
        return what
    name = shlex.quote(source)
    packed = source.lower().endswith(".gz")
    return f"{what} The rest begins with: {f'zcat {name} | ' if packed else ''}tail -n +{done + 1}{'' if packed else f' {name}'}"


def _write_all(file: BinaryIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) or 0 :]


def _is_stdout(path: Path) -> bool:
    """By any name, such as /dev/stdout: opened anew, a file would be emptied of what it held before."""
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):
        return False


def _is_special(path: Path) -> bool:
    """Whether it is no ordinary file, or one that is known by an open descriptor only."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    named = any(path.absolute().is_relative_to(folder) for folder in ("/dev/fd", "/proc", "/dev/stderr"))
    return not stat.S_ISDIR(mode) and (named or not stat.S_ISREG(mode))


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """A failure to write says where and why. A reader that has seen enough is no failure."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageError(f"No room to write {path}{_free(path)}. Make room, or choose another place.") from None
        raise StorageError(f"Cannot write {path}: {error.strerror}. Choose a place you may write to.") from None


def _free(path: Path) -> str:
    with suppress(OSError, StopIteration):
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        return f" ({shutil.disk_usage(folder).free / 1e6:,.0f} MB free)"
    return ""


def check_target(path: Path) -> None:
    """Refuse now what cannot be written to, for what will be made elsewhere."""
    if not (_is_stdout(path) or _is_special(path)):
        with _told(path):
            name, file = _created(Path(os.path.realpath(path)))
            file.close()
            name.unlink()
