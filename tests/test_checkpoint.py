"""A checkpoint is there whole or not at all, and damage is seen."""

import errno
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard import checkpoint, storage
from regard.errors import BusyError, FolderError, StorageError


def save(folder: Path, step: int) -> None:
    weights = {"a": torch.full((40, 5), float(step)), "b": torch.arange(7.0)}
    checkpoint.save(folder, step, weights, {"adam.a": torch.ones(3)}, {"step": step})


def ignore(_: str) -> None:
    pass


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    save(tmp_path, 10)
    path = checkpoint.folder_of(tmp_path, 10)
    assert checkpoint.newest(tmp_path, ignore) == 10
    assert checkpoint.load_tensors(path / checkpoint.WEIGHTS)["a"].eq(10).all()
    assert checkpoint.load_state(tmp_path, 10) == {"step": 10}


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip_one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = random.Random(path.name).randrange(len(content))
    content[place] ^= 1
    path.write_bytes(content)


def zero_a_page(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(bytes(len(content[:64])) + content[64:])


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [truncate, flip_one_bit, zero_a_page, delete, empty])
@pytest.mark.parametrize("file", ["weights.safetensors", "training.safetensors", "state.json", "manifest.json"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    tmp_path: Path, harm: Callable[[Path], None], file: str
) -> None:
    save(tmp_path, 10)
    save(tmp_path, 20)
    harm(checkpoint.folder_of(tmp_path, 20) / file)
    said: list[str] = []
    assert checkpoint.newest(tmp_path, said.append) == 10
    assert len(said) == 1 and "step-00000020 is damaged" in said[0]


def test_when_all_are_damaged_training_does_not_begin_anew(tmp_path: Path) -> None:
    for step in (10, 20):
        save(tmp_path, step)
        delete(checkpoint.folder_of(tmp_path, step) / "weights.safetensors")
    with pytest.raises(FolderError, match="None of the 2 checkpoints"):
        checkpoint.newest(tmp_path, ignore)


def test_a_bit_of_manifest_that_is_json_but_nonsense_counts_as_damage(tmp_path: Path) -> None:
    save(tmp_path, 10)
    for nonsense in ([], {}, {"files": 3}, {"files": {}}, {"files": {"../../x": {}}}):
        (checkpoint.folder_of(tmp_path, 10) / "manifest.json").write_text(json.dumps(nonsense))
        assert checkpoint.damage(checkpoint.folder_of(tmp_path, 10))


class KilledError(BaseException):
    """Stands for a kill -9: nothing may be tidied up after it."""


CALLS: list[tuple[Any, str]] = [
    (os, "fsync"), (os, "replace"), (Path, "rename"), (Path, "mkdir"), (Path, "write_text"), (Path, "unlink"),
]  # fmt: skip


@pytest.mark.parametrize("kill_at", range(16))
def test_a_kill_at_any_call_leaves_a_checkpoint_that_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int
) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    count = 0

    def killing(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            nonlocal count
            if count >= kill_at:
                raise KilledError
            count += 1
            return original(*arguments, **keywords)

        return call

    with monkeypatch.context() as patched:
        for owner, name in CALLS:
            patched.setattr(owner, name, killing(getattr(owner, name)))
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)  # after a kill nobody tidies up
        try:
            save(tmp_path, 40)
            checkpoint.prune(tmp_path, keep=2, regular=10)
        except KilledError:
            pass
    newest = checkpoint.newest(tmp_path, ignore)
    assert newest in (30, 40)
    save(tmp_path, 50)
    checkpoint.prune(tmp_path, keep=2, regular=10)
    assert checkpoint.newest(tmp_path, ignore) == 50
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("fail_at", range(5))
def test_a_full_disk_is_told_and_the_last_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int
) -> None:
    save(tmp_path, 10)
    count, fsync = 0, os.fsync

    def full(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count > fail_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No room to write .* MB free"):
        save(tmp_path, 20)
    assert checkpoint.newest(tmp_path, ignore) == 10
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000010"]


def test_pruning_keeps_the_last_regular_ones_and_the_two_newest(tmp_path: Path) -> None:
    for step in (10, 20, 25, 30, 40, 45, 47):
        save(tmp_path, step)
    checkpoint.prune(tmp_path, keep=2, regular=10)
    assert checkpoint.steps(tmp_path) == [30, 40, 45, 47]
    slim = checkpoint.folder_of(tmp_path, 30)
    assert checkpoint.damage(slim) is None and not (slim / checkpoint.TRAINING).exists()


def test_only_a_checkpoint_with_its_optimizer_can_be_gone_on_from(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    checkpoint.prune(tmp_path, keep=3, regular=10)
    for step in (20, 30):
        delete(checkpoint.folder_of(tmp_path, step) / checkpoint.TRAINING)
    with pytest.raises(FolderError):
        checkpoint.newest(tmp_path, ignore)


def test_the_average_is_the_mean_in_any_order(tmp_path: Path) -> None:
    for step in (1, 2, 6):
        save(tmp_path, step)
    assert checkpoint.average(tmp_path, [1, 2, 6])["a"].eq(3.0).all()
    assert checkpoint.average(tmp_path, [6, 1, 2])["a"].eq(3.0).all()


def test_a_second_holder_of_the_lock_is_refused_and_the_first_named(tmp_path: Path) -> None:
    with (
        storage.locked(tmp_path / ".lock"),
        pytest.raises(BusyError, match=str(os.getpid())),
        storage.locked(tmp_path / ".lock"),
    ):
        pass
    with storage.locked(tmp_path / ".lock"):
        pass


def test_a_file_is_replaced_whole_or_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    storage.write_file(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError):
        storage.write_file(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
