"""Converted models, kept in the model folder: made on first use, made anew when the model has changed.

Each lies in a folder of its own, `cache/ctranslate2/int8-0123456789abcdef`, named by what it was made from. It is written
under another name and renamed, so that a folder with such a name is whole, whichever of several processes made it.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from regard.folder import CACHE, CONFIG, weights_file

Files = dict[str, bytes]
# To be raised when the conversion changes, so that what it made before is not used any more.
_FORMAT = 1


def kept(folder: Path, precision: str, convert: Callable[[], Files]) -> Path | Files:
    """Where the converted model lies; or its files themselves, if the folder cannot be written to."""
    place = folder / CACHE / "ctranslate2" / f"{precision}-{_fingerprint(folder)}"
    if place.is_dir():
        return place
    files = convert()
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        temporary.rename(place)
    except OSError:
        # No room, no permission; or another process was faster, and has made the same.
        return files
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    for other in place.parent.glob(f"{precision}-*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    return place


def _fingerprint(folder: Path) -> str:
    """Of the settings, and of the weights' size and time: to read them all would take longer than to load them."""
    about = weights_file(folder).stat()
    parts = (_FORMAT, about.st_size, about.st_mtime_ns, (folder / CONFIG).read_bytes())
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
