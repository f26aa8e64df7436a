"""Files that are there whole or not at all: written under a temporary name, flushed to disk, then renamed."""

import errno
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        folder = next((p for p in [path, *path.parents] if p.exists()), Path("/"))
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            free = shutil.disk_usage(folder).free / 1e6
            raise StorageError(
                f"No room to write {path} ({error.strerror}; {free:,.0f} MB free). "
                "What was saved before is intact: make room and run the same command again."
            ) from None
        raise StorageError(f"Cannot write {path}: {error.strerror}. Choose a folder you may write to.") from None
    except Exception as error:
        # safetensors reports a full disk as an error of its own.
        if "No space left" in str(error) or "os error 28" in str(error) or "File too large" in str(error):
            raise StorageError(
                f"No room to write {path}. What was saved before is intact: make room and run the same command again."
            ) from None
        raise


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
