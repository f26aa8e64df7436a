"""Converted models, kept in the model folder: made on first use, made anew when the model or what is kept has changed.

Each lies in a folder of its own, `cache/ctranslate2/int8-0123456789abcdef`, named by what it was made from, with a
manifest of its files. It is written under a name that nobody else has, whatever the processes' numbers, and renamed: so
of several that make the same the first one wins, and each removes only what is its own.

Whoever writes or loads such a folder holds a shared lock on its manifest, and nobody removes what is locked. The system
lets go of the lock when a process ends, so what a killed one left behind is removed later.
"""

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from regard.folder.layout import CACHE, CONFIG, weights_file

Files = dict[str, bytes]
T = TypeVar("T")
# To be raised when the conversion changes, so that what it made before is not used any more.
_FORMAT = 3
_MANIFEST = "manifest.json"
_MANIFEST_BYTES = 1 << 16
_CHUNK = 1 << 20


class ConvertedModel:
    """A model folder's model as CTranslate2 loads it, in each precision. Safe for threads; can be sent to a process."""

    def __init__(self, folder: Path, convert: Callable[[str], Files]) -> None:
        """`convert` makes the files for a precision."""
        self._folder = folder
        self._convert = convert

    def load(self, precision: str, load: Callable[[Path | Files], T]) -> T:
        """What `load` makes of the place of the files; or of the files, if they cannot be kept in the model folder.

        It is called again if it cannot load what lies there.
        """
        place = self._place(precision)
        if place is None:
            return load(self._convert(precision))
        with suppress(_UnusableError):
            return _used(place, load)
        _remove(place, unless=_is_whole)
        files = self._convert(precision)
        if not _written(place, files):
            return load(files)
        del files  # the place may be loaded without a second copy in memory
        try:
            return _used(place, load)
        except _UnusableError:
            return load(self._convert(precision))
        finally:
            _clean(place, precision)

    def _place(self, precision: str) -> Path | None:
        """Where it is kept; None if that is outside the model folder, where nothing may be written."""
        folder, places = (os.path.realpath(path) for path in (self._folder, self._folder / CACHE / "ctranslate2"))
        if not Path(places).is_relative_to(folder):
            return None
        return Path(places) / f"{precision}-{_fingerprint(self._folder)}"


class _UnusableError(Exception):
    """What was to be used is not there, damaged, or about to be removed."""


def _used(place: Path, load: Callable[[Path | Files], T]) -> T:
    with _held(place, fcntl.LOCK_SH, os.O_RDONLY):
        if not _is_whole(place):
            raise _UnusableError
        try:
            return load(place)
        except (RuntimeError, ValueError, OSError, MemoryError):
            raise _UnusableError from None


def _written(place: Path, files: Files) -> bool:
    """Whether it lies there now, by this process or one that was faster. There may be no room, or no permission."""
    temporary = _beside(place)
    manifest = {name: [len(content), zlib.crc32(content)] for name, content in files.items()}
    try:
        temporary.mkdir(parents=True)
        with _held(temporary, fcntl.LOCK_SH, os.O_RDWR | os.O_CREAT):
            for name, content in files.items():
                (temporary / name).write_bytes(content)
            (temporary / _MANIFEST).write_text(json.dumps(manifest))
            temporary.rename(place)
    except (OSError, _UnusableError):
        shutil.rmtree(temporary, ignore_errors=True)
    return place.is_dir()


def _is_whole(place: Path) -> bool:
    """Whether every file is as it was written. (A checksum costs a tenth of loading; a bit lost would be a wrong word.)"""
    try:
        about = {path.name: path.lstat() for path in place.iterdir()}
        if not all(stat.S_ISREG(one.st_mode) for one in about.values()):
            return False
        if about.pop(_MANIFEST).st_size > _MANIFEST_BYTES:
            return False
        told = json.loads((place / _MANIFEST).read_bytes())
        if {name: size for name, (size, _) in told.items()} != {name: one.st_size for name, one in about.items()}:
            return False
        return all(checksum == _checksum(place / name) for name, (_, checksum) in told.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _checksum(path: Path) -> int:
    found = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found


def _clean(place: Path, precision: str) -> None:
    """Remove what was made of an earlier model, and what processes left that were killed."""
    for pattern in (f"{precision}-*", ".*.tmp"):
        for other in place.parent.glob(pattern):
            if other != place:
                _remove(other)


def _remove(path: Path, unless: Callable[[Path], bool] | None = None) -> None:
    """Remove it, if nobody is using it."""
    with suppress(OSError, _UnusableError):
        if path.is_symlink() or path.is_file():
            path.unlink()
            return
        with _held(path, fcntl.LOCK_EX, os.O_RDWR | os.O_CREAT) as descriptor:
            # Another process may have removed it before, and put its own in its place.
            there = (path / _MANIFEST).lstat()
            if os.path.samestat(os.fstat(descriptor), there) and not (unless and unless(path)):
                doomed = path.rename(_beside(path))
                shutil.rmtree(doomed, ignore_errors=True)


def _beside(place: Path) -> Path:
    """A name of its own in the same folder."""
    return place.with_name(f".{place.name.strip('.')[:40]}.{secrets.token_hex(8)}.tmp")


@contextmanager
def _held(place: Path, kind: int, flags: int) -> Iterator[int]:
    """A folder locked, shared or alone; never waits. (The lock is a file's, as network disks do not lock folders.)"""
    try:
        # A hostile folder's manifest may be a link, or a pipe that nobody fills.
        descriptor = os.open(place / _MANIFEST, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError:
        raise _UnusableError from None
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _UnusableError from None
        except OSError:  # a disk without locks: use what is there, remove nothing
            if kind == fcntl.LOCK_EX:
                raise _UnusableError from None
        yield descriptor
    finally:
        os.close(descriptor)


def _fingerprint(folder: Path) -> str:
    """A name for the settings, and for the weights' size and times: to read them all would take longer than to load them.

    Whoever packs a folder can choose when its weights were written, but not when they came to this disk: so what was
    converted elsewhere is not trusted.
    """
    about = weights_file(folder).stat()
    parts = (_FORMAT, about.st_size, about.st_mtime_ns, about.st_ctime_ns, (folder / CONFIG).read_bytes())
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
