"""Files that are there whole or not at all: written under a temporary name, flushed to disk, then renamed."""

import errno
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import safetensors

from regard.errors import BusyError, StorageError


def write_file(path: Path, content: bytes) -> None:
    """Replace `path` by this content, atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path):
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def sync_file(path: Path) -> None:
    """Make sure a written file's content is on the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make sure that new names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a failure to write into a message that says where, why and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StorageError(f"Cannot write {path}: {error.strerror}. Choose a folder you may write to.") from None
        raise _no_room(path) from None
    except safetensors.SafetensorError as error:
        if "os error" not in str(error):
            raise
        raise _no_room(path) from None


def _no_room(path: Path) -> StorageError:
    folder = next(p for p in path.absolute().parents if p.exists())
    return StorageError(
        f"No room to write {path} ({shutil.disk_usage(folder).free / 1e6:,.0f} MB free). "
        "What was saved before is intact: make room and run the same command again."
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a folder for this process alone. The system lets go of the lock when the process ends, however it ends."""
    with explained(path):
        file = open(path, "a+")  # noqa: SIM115 (open as long as the lock is held)
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise BusyError(
                f"{path.parent} is being trained by another process ({holder}). Wait for it, or train into another folder."
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def is_locked(path: Path) -> bool:
    """Whether somebody holds the folder now. Asking changes nothing."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no lock, or it is not ours to ask for
        pass
    return False
