"""Whether a command keeps the law of hostile folders, whatever is in the folder it opens.

It ends within ten seconds of CPU time, in at most twice the folder's size and 500 MB, with an exit code of Regard's; a
failure is told in one line of plain characters; and nothing outside the folder has changed.
"""

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from regard.errors import RegardError

SECONDS, MEGABYTES, PATIENCE = 10, 500, 120


def _codes(kind: type[RegardError]) -> Iterator[int]:
    yield kind.code
    for below in kind.__subclasses__():
        yield from _codes(below)


CODES = {0, *_codes(RegardError)}


class Tried(NamedTuple):
    """One command on one folder."""

    command: str
    fault: str
    """Which part of the law it broke; empty if none."""
    seconds: float
    megabytes: float


def seen(outside: Path) -> list[tuple[str, bytes]]:
    """All that is in a folder."""
    return sorted((str(path), path.read_bytes() if path.is_file() else b"") for path in outside.rglob("*"))


def size_of(folder: Path) -> float:
    """Megabytes of a folder's regular files, as they are told and not as they lie on the disk."""
    files = (path.lstat() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(about.st_size for about in files) / 1e6


def fault_of(code: int, told: str) -> str:
    """What is wrong with how a command ended, and what it wrote to standard error."""
    last = told.strip().rpartition("\n")[2]
    if "Traceback" in told:
        return f"a traceback: {last}"
    if code not in CODES:
        return f"exit code {code}: {last}"
    if code and not last.startswith(("regard: ", "usage:", "regard ")):
        return f"no message: {last[:200]}"
    if told.count("regard: ") > 1 and code:
        return f"several messages: {told[:300]}"
    if bad := [character for character in told if not (character.isprintable() or character in "\n\t\r")]:
        return f"control characters {bad[:3]} in: {last[:200]!r}"
    return f"{len(last):,} characters of message" if len(last) > 3000 else ""


# --------------------------------------------------------------------------------------------------------- in a process


def in_process(
    folder: Path, outside: Path, asked: Callable[[Path, Path], Iterator[tuple[str, list[str]]]]
) -> Iterator[Tried]:
    """All commands in one child of this process, which ends them if they do not end by themselves."""
    before, most = seen(outside), MEGABYTES + 2 * size_of(folder)
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryFile("w+") as told:
        child = os.fork()
        if not child:
            os._exit(_attempts(list(asked(folder, Path(work))), told, most))
        end = _waited(child)
        told.seek(0)
        found = [Tried(*json.loads(line)) for line in told.read().splitlines()]
    *whole, last = found or [Tried("none", "", 0, 0)]
    yield from whole
    yield last if not last.fault.startswith("began") else last._replace(fault=f"ended the process ({end})")
    if seen(outside) != before:
        yield Tried("one of them", "wrote outside", 0, 0)


def _waited(child: int) -> str:
    _, status = os.waitpid(child, 0)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"code {os.WEXITSTATUS(status)}"


def _attempts(commands: list[tuple[str, list[str]]], told: io.TextIOBase, most: float) -> int:
    from regard.cli.main import main

    base = _peak()
    sys.stdin = open(os.devnull)  # noqa: SIM115 (until the process ends)
    for name, arguments in commands:
        place = told.tell()
        told.write(json.dumps([name, "began", 0, 0]) + "\n")
        told.flush()
        began = time.process_time()
        _limit(began + 3 * SECONDS)
        signal.alarm(PATIENCE)
        fault = _attempt(lambda arguments=arguments: main(arguments))  # type: ignore[misc]
        signal.alarm(0)
        took, peak = time.process_time() - began, _peak()
        fault = fault or (f"took {took:.1f} CPU seconds" if took > SECONDS else "")
        fault = fault or (f"took {peak:,.0f} MB" if peak > base + most else "")
        told.seek(place)
        told.truncate()
        told.write(json.dumps([name, fault, took, peak]) + "\n")
        told.flush()
    return 0


def _limit(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, resource.RLIM_INFINITY))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _attempt(run: Callable[[], int]) -> str:
    out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "regard" in frame.filename]
            at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
            return f"{type(error).__name__} at {at}: {str(error)[:200]}"
        for stream in (out, errors):
            stream.flush()
    return fault_of(code, errors.buffer.getvalue().decode())  # type: ignore[attr-defined]


# --------------------------------------------------------------------------------------------------- as a process alone


def as_process(name: str, arguments: list[str], folder: Path, outside: Path, room: float) -> Tried:
    """One command in a Python of its own; `room` are megabytes of addresses that an empty one takes."""
    before, most = seen(outside), MEGABYTES + 2 * size_of(folder)

    def limit() -> None:
        _limit(SECONDS)
        addresses = int(1e6 * (room + most))
        resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))

    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "regard", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told, preexec_fn=limit,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        timer = _alarm(process)
        _, status, used = os.wait4(process.pid, 0)
        timer()
        told.seek(0)
        text = told.read().decode(errors="replace")
    took, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1000
    fault = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else fault_of(os.WEXITSTATUS(status), text)
    fault = fault or (f"took {peak:,.0f} MB" if peak > most else "")
    fault = fault or ("wrote outside" if seen(outside) != before else "")
    return Tried(name, fault, took, peak)


def _alarm(process: "subprocess.Popen[bytes]") -> Callable[[], None]:
    """Ends a process that sleeps, which costs no CPU time."""
    from threading import Timer

    timer = Timer(PATIENCE, process.kill)
    timer.start()
    return timer.cancel
