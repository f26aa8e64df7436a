"""Whatever is in a file, whoever reads it ends with what it read, or with a message that a user can act on.

`make fuzz` looks for longer, by the same targets (docs/fuzzing.md). What it found stays here.
"""

from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given

from damage import bounded, damaged
from fuzz.targets import TARGETS
from regard.errors import RegardError

EXAMPLES = {"check": 40, "checkpoint": 40, "translator": 60, "labeller": 60, "import": 60, "import-vocabulary": 40}
# The target, and what it was given behind the byte that chooses the file.
FOUND = [
    ("recipe", b"[text]\ntokenizer = " + b"[" * 100_000),
    ("recipe", b"[model]\nwidth = 0x" + b"f" * 4000),
    ("recipe", b"train = 0x" + b"f" * 4000),
    ("tokens", b'\x00{"dtype": [], "pairs": [3], "longest": 2}'),
    ("tokens", b'\x00{"dtype": "uint16", "pairs": [1000000000000], "longest": 2}'),
    ("tokens", b'\x00{"dtype": "uint16", "pairs": [3], "longest": Infinity}'),
    ("tokens", b"\x00" + b"[" * 100_000),
    ("tokens", b"\x03" + bytes(24)),
    ("tokens", b'\x04{"dtype": [], "bytes": 9}'),
    ("tokens", b'\x04{"dtype": "uint16", "bytes": Infinity}'),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory):
    """The folder in which a target reads, made once."""

    @cache
    def made(name: str) -> Path:
        at = tmp_path_factory.mktemp(name) / "made"
        TARGETS[name].made(at)
        return at

    return made


@pytest.mark.parametrize("name", TARGETS)
def test_a_whole_file_is_read(name: str, folders) -> None:
    for content in TARGETS[name].seeds():
        TARGETS[name].read(content, folders(name))


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_read_or_refused(name: str, folders) -> None:
    @bounded(EXAMPLES.get(name, 150))
    @given(damaged(list(TARGETS[name].seeds())))
    def law(content: bytes) -> None:
        with suppress(RegardError):
            TARGETS[name].read(content, folders(name))

    law()


@pytest.mark.parametrize(("name", "content"), FOUND)
def test_what_was_found_once_is_read_or_refused(name: str, content: bytes, folders) -> None:
    with suppress(RegardError):
        TARGETS[name].read(content, folders(name))
