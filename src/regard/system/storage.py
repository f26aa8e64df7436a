"""Files that are there whole or not at all: written under a temporary name, flushed to disk, then renamed.

Whatever a training changes on a disk, it changes by a call of `disk`: so a test can let any one of them fail.
"""

import errno
import fcntl
import os
import secrets
import shutil
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import cast

from regard.errors import BusyError, StorageError

Part = bytes | bytearray | memoryview


class Disk:
    """Every call that changes something on a disk, and nothing else."""

    def open(self, path: Path, mode: str) -> FileIO:
        """A file to write to. Nothing is kept back in memory, to fail when it is closed."""
        return cast(FileIO, open(path, mode, buffering=0))

    def write(self, file: FileIO, content: memoryview) -> int:
        """Write some of it, or all; how many bytes."""
        return file.write(content)

    def truncate(self, file: FileIO, size: int) -> None:
        """Cut a file off."""
        file.truncate(size)

    def sync(self, descriptor: int) -> None:
        """Wait until a file, or the names in a folder, are on the disk."""
        os.fsync(descriptor)

    def rename(self, path: Path, to: Path) -> None:
        """Give a file or folder another name; a file that has this name already is replaced."""
        os.replace(path, to)

    def mkdir(self, path: Path) -> None:
        """Make a folder."""
        path.mkdir()

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def rmdir(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()


disk = Disk()


def write_file(path: Path, content: bytes) -> None:
    """Replace `path` by this content, atomically."""
    write_parts(path, [content], len(content))


def write_parts(path: Path, parts: Iterable[Part], size: int) -> None:
    """Replace `path` by these parts, one after the other, atomically; they are `size` bytes or more."""
    # Not named by the process alone: on a shared disk, another machine's may have the same number.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with explained(path, size):
        try:
            write_new(temporary, parts)
            disk.rename(temporary, path)
            sync_folder(path.parent)
        except BaseException:
            remove_file(temporary)
            raise


def write_new(path: Path, parts: Iterable[Part]) -> None:
    """Write a file of these parts to the disk, without a temporary name."""
    with disk.open(path, "wb") as file:
        # Held as long as it is written, so that nobody takes it for a leftover. Not every disk knows locks.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for part in parts:
            append(file, part)
        disk.sync(file.fileno())


def append(file: FileIO, content: Part) -> None:
    """Write all of it."""
    with memoryview(content) as items, items.cast("B") as rest:
        done = 0
        while done < len(rest):
            done += disk.write(file, rest[done:])


def make_folder(path: Path) -> None:
    """Make a folder and those it lies in, where they are not there yet; when this returns, they are on the disk."""
    if not path.is_dir():
        make_folder(path.parent)
        with suppress(FileExistsError):  # another process was faster
            disk.mkdir(path)
        sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there and can be removed."""
    with suppress(OSError):
        disk.unlink(path)


def remove_folder(path: Path) -> None:
    """Remove a folder and all in it, as far as it can be removed. What links lead to stays."""
    with suppress(OSError):
        for inside in list(path.iterdir()):
            if inside.is_dir() and not inside.is_symlink():
                remove_folder(inside)
            else:
                remove_file(inside)
        disk.rmdir(path)


def leftovers(folder: Path) -> list[Path]:
    """Temporary files, of those who are writing now or were killed."""
    return list(folder.glob(f".*.{'[0-9a-f]' * 8}.tmp"))


def sweep(folder: Path) -> None:
    """Remove the temporary files of processes that were killed, not those that somebody is writing now."""
    for path in leftovers(folder):
        with suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            disk.unlink(path)


def sync_file(path: Path) -> None:
    """Make sure a written file's content is on the disk."""
    with open(path, "rb") as file:
        disk.sync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make sure that new names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        disk.sync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path, size: int | None = None) -> Iterator[None]:
    """Turn a failure to write into a message that says where, why and what to do; `size` is how many bytes it takes."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EIO:
            raise StorageError(
                f"Cannot write {path}: the disk fails ({error.strerror}). What was saved before is intact: copy the "
                "folder to another disk, and run the command again with that one."
            ) from None
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StorageError(f"Cannot write {path}: {error.strerror}. Choose a folder you may write to.") from None
        folder = next(p for p in path.absolute().parents if p.exists())
        needed = f"{size / 1e6:,.1f} MB needed, " if size else ""
        raise StorageError(
            f"No room to write {path} ({needed}{shutil.disk_usage(folder).free / 1e6:,.1f} MB free). "
            "What was saved before is intact: make room and run the same command again."
        ) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a folder for this process alone. The system lets go of the lock when the process ends, however it ends."""
    with explained(path):
        file = disk.open(path, "a+b")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().decode(errors="replace").strip() or "unknown"
            raise BusyError(
                f"{path.parent} is being trained by another process ({holder}). Wait for it, or train into another folder."
            ) from None
        with explained(path):
            disk.truncate(file, 0)
            append(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield


def is_locked(path: Path) -> bool:
    """Whether somebody holds the folder now. Asking changes nothing."""
    if not path.is_file():  # a pipe would keep us waiting
        return False
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no lock, or it is not ours to ask for
        pass
    return False
