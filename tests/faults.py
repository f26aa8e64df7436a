"""A disk that fails, or a process that ends, at any one call that was to change something; and a small training for it."""

import errno
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import regard
from conftest import QUICK
from regard.folder import checkpoints
from regard.system import storage
from regard.training.log import CLOCK, read_log

MODEL_FREE = {key: value for key, value in QUICK.items() if not key.startswith("model.")}
BRIEF = {
    **MODEL_FREE, "train.steps": 3, "train.validate_steps": 2, "train.checkpoint_steps": 1, "train.log_steps": 1,
    "train.validate_sentences": 2, "train.keep": 2,
}  # fmt: skip
"""Three steps, each with a checkpoint; two validations; the average of two; and one checkpoint too many to be kept."""


class KilledError(BaseException):
    """Stands for a kill -9: nothing that comes after it reaches the disk."""


class FaultyDisk:
    """Does what the real one does, up to a call; that one and, if the fault is to last, all later ones fail.

    A write that fails has written a half before, as on a disk that becomes full.
    """

    def __init__(
        self,
        at: int,
        fault: Callable[[], None],
        *,
        lasts: bool = False,
        only: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self._at, self._fault, self._lasts, self._only = at, fault, lasts, only
        self._real = storage.Disk()
        self.calls: list[str] = []
        """What was asked for, such as `rename step-00000010`."""

    def __getattr__(self, call: str) -> Callable[..., Any]:
        def made(*arguments: Any) -> Any:
            told = f"{call} {_name(arguments[0])}"
            if self._only(told):
                self.calls.append(told)
                if len(self.calls) == self._at + 1 or (self._lasts and len(self.calls) > self._at):
                    if call == "write" and len(self.calls) == self._at + 1:
                        self._real.write(arguments[0], arguments[1][: len(arguments[1]) // 2])
                    self._fault()
            if call == "sync":  # what is written survives the process in any case, and tests have no time to wait
                return None
            return getattr(self._real, call)(*arguments)

        return made


def _name(thing: Any) -> str:
    """Of a path, an open file or its number: its name and that of the folder it lies in."""
    number = thing if isinstance(thing, int) else None if isinstance(thing, Path) else thing.fileno()
    path = thing if number is None else Path(f"/proc/self/fd/{number}").readlink()
    return "/".join(path.parts[-2:])


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def failing() -> None:
    raise OSError(errno.EIO, "Input/output error")


def killed() -> None:
    raise KilledError


def kill_for_good() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def faulty(disk: FaultyDisk) -> Iterator[FaultyDisk]:
    """Put this disk in the place of the real one."""
    real, storage.disk = storage.disk, disk  # type: ignore[assignment]
    try:
        yield disk
    finally:
        storage.disk = real


def counted(work: Callable[[], object], only: Callable[[str], bool] = lambda name: True) -> list[str]:
    """The calls that a piece of work makes."""
    with faulty(FaultyDisk(-2, full, only=only)) as disk:
        work()
    return disk.calls


def running_text(folder: Path) -> list[str]:
    """A small text to train on."""
    path = folder / "text.txt"
    path.write_text("".join(f"line {n} of the text has {n % 7} words\n" for n in range(80)))
    return [str(path)]


def train(data: list[str], to: Path, model: str = "rnn", **settings: Any) -> None:
    """A training that is over in the twinkling of an eye."""
    regard.train(data, to, model=model, settings={**BRIEF, "model.width": 8, **settings})


def whole_checkpoint(to: Path) -> int | None:
    """The newest step from which training can go on; a damaged checkpoint is an error."""
    damaged: list[str] = []
    newest = checkpoints.newest(to / "checkpoints", damaged.append)
    assert not damaged, damaged
    return newest


def differences(whole: Path, other: Path) -> list[str]:
    """Files that only one folder has, or that differ by more than what the clock says and where the folder lies."""
    names = [{str(path.relative_to(to)) for path in to.rglob("*") if path.is_file()} for to in (whole, other)]
    return sorted(names[0] ^ names[1]) + [
        name for name in sorted(names[0] & names[1]) if _timeless(whole, name) != _timeless(other, name)
    ]


def fingerprint(to: Path) -> frozenset[tuple[str, str]]:
    """A folder's files and what is in them, but for the clock: from equal ones training goes on equally."""
    files = [str(path.relative_to(to)) for path in to.rglob("*") if path.is_file()]
    return frozenset((re.sub("[0-9a-f]{8}.tmp", "tmp", name), repr(_timeless(to, name))) for name in files)


def _timeless(to: Path, name: str) -> object:
    if name == "log.jsonl":
        return [{key: value for key, value in line.items() if key not in CLOCK} for line in read_log(to / name)]
    if name.endswith(("state.json", "validated.json", "manifest.json", ".lock")):
        return None
    return (to / name).read_bytes().replace(bytes(to), b"DIR")
