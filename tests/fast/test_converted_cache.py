"""The converted model that is kept: whole for everyone, whoever makes, loads, damages or removes it at the same time."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.fast import translator
from regard.folder import layout
from torture.parts.engine_cache import first_use_by_threads
from untrained import leaning, made

TEXTS = ["a b c", "d", "o n m l k j i h"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return leaning(tmp_path / "m")


def written(path: Path, precision: str = "float32") -> Any:
    return regard.load(path, engine="ctranslate2").translate(TEXTS, beam=1, precision=precision)


def kept(path: Path) -> list[str]:
    return sorted(place.name for place in (path / "cache" / "ctranslate2").iterdir())


def no_conversion(*_: Any) -> None:
    raise AssertionError("it was kept, and need not be converted")


@pytest.mark.parametrize("name", ["transformer", "bert"])
def test_ten_threads_use_a_model_first(tmp_path: Path, name: str) -> None:
    row = first_use_by_threads(
        tmp_path, made(name, tmp_path / "m"), "tried twice", trials=2, fresh=name == "transformer"
    )
    assert row.passed, row.seen


# One process writes half of its files; the other comes, makes its own, and ends; the first one goes on.
HALF = """
import os, sys, time
from pathlib import Path
from regard.fast import convert_transformer
from regard.inference.load import load

os.getpid = lambda: 7
path, mine, other = map(Path, sys.argv[1:])

def wait(for_: Path) -> None:
    while not for_.exists():
        time.sleep(0.01)

class Halved(dict):
    def items(self):
        (first, *rest) = super().items()
        yield first
        mine.touch()
        wait(other)
        yield from rest

if mine.name == "first":
    converted = convert_transformer.converted
    convert_transformer.converted = lambda *given: Halved(converted(*given))
else:
    wait(other)
print(load(path, engine="ctranslate2").translate("a b c", beam=1, precision="float32"))
mine.touch()
"""


def test_two_processes_of_the_same_number_spoil_nothing(model: Path, tmp_path: Path) -> None:
    first, second = (str(tmp_path / name) for name in ("first", "second"))
    commands = [[sys.executable, "-c", HALF, str(model), *names] for names in ((first, second), (second, first))]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    said = [one.communicate(timeout=60)[0] for one in running]
    assert re.fullmatch("float32-[0-9a-f]+", " ".join(kept(model)))
    assert said == [written(model)[0] + "\n"] * 2


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-40] ^= 64
    file.write_bytes(content)


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


HARMS: list[Callable[[Path], Any]] = [cut, flip, Path.unlink, lambda file: file.write_bytes(b""), pipe]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", ["model.bin", "manifest.json", "shared_vocabulary.json"])
def test_what_is_damaged_is_made_anew(
    model: Path, harm: Callable[[Path], Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = written(model)
    (place,) = (model / "cache" / "ctranslate2").iterdir()
    harm(place / name)
    assert written(model) == expected and kept(model) == [place.name]
    monkeypatch.setattr("regard.fast.convert_transformer.converted", no_conversion)
    assert written(model) == expected


def test_what_the_library_cannot_load_is_converted_in_memory(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, real = written(model), translator.ctranslate2.Translator

    def refuses(name: str, **settings: Any) -> Any:
        if not settings["files"]:
            raise RuntimeError("Unsupported model binary version")
        return real(name, **settings)

    monkeypatch.setattr(translator.ctranslate2, "Translator", refuses)
    assert written(model) == expected


def test_what_is_being_loaded_is_not_removed(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, real = written(model), translator.ctranslate2.Translator

    def slowly(name: str, **settings: Any) -> Any:
        monkeypatch.undo()
        os.utime(model / layout.MODEL)  # as if it were another model, which is then kept instead
        assert written(model) == expected
        return real(name, **settings)

    monkeypatch.setattr(translator.ctranslate2, "Translator", slowly)
    assert written(model) == expected
    assert len(kept(model)) == 2
    os.utime(model / layout.MODEL, (1, 1))
    assert written(model) == expected and len(kept(model)) == 1


def test_what_a_killed_process_left_is_removed(model: Path) -> None:
    left = model / "cache" / "ctranslate2" / ".int8-0123456789abcdef.7.tmp"
    left.mkdir(parents=True)
    (left / "model.bin").write_text("half a mod")
    assert written(model) and not left.exists()


@pytest.mark.parametrize("link", ["cache", "cache/ctranslate2"])
def test_nothing_is_written_through_a_link_out_of_the_folder(model: Path, tmp_path: Path, link: str) -> None:
    outside, expected = tmp_path / "outside", written(model)
    outside.mkdir()
    shutil.rmtree(model / "cache")
    (model / link).parent.mkdir(exist_ok=True)
    (model / link).symlink_to(outside)
    assert written(model) == expected and not list(outside.iterdir())


def test_a_link_to_the_folder_itself_is_no_way_out(model: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(model)
    assert written(tmp_path / "latest") == written(model) and len(kept(model)) == 1


def test_what_others_must_not_write_they_may_read(model: Path, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        written(model)
    finally:
        os.umask(mask)
    (place,) = (model / "cache" / "ctranslate2").iterdir()
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in (place, *place.iterdir()))
    copy = Path(shutil.copytree(model, tmp_path / "copy"))
    assert written(copy) == written(model)
    assert kept(copy) != kept(model), "what was converted elsewhere is not trusted"
