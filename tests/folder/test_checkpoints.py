"""A checkpoint is there whole or not at all, and damage is seen."""

import errno
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest
import safetensors.torch
import torch

from faults import FaultyDisk, KilledError, counted, failing, faulty, full, killed
from regard.errors import BusyError, FolderError, StorageError
from regard.folder import checkpoints
from regard.system import storage
from regard.training.loop import TrainState

NAMES = {"weights.safetensors", "training.safetensors", "state.json", "manifest.json"}
NAMES |= {f"step-{step:08d}" for step in (20, 30, 40, 50)}


def save(folder: Path, step: int) -> None:
    weights = {"a": torch.full((40, 5), float(step)), "b": torch.arange(7.0)}
    checkpoints.save(folder, step, weights, {"adam.a": torch.ones(3)}, {"step": step})


def ignore(_: str) -> None:
    pass


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    save(tmp_path, 10)
    path = checkpoints.folder_of(tmp_path, 10)
    assert checkpoints.newest(tmp_path, ignore) == 10
    assert checkpoints.load_tensors(path / checkpoints.WEIGHTS)["a"].eq(10).all()
    assert checkpoints.load_state(tmp_path, 10) == {"step": 10}


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
    harm(checkpoints.folder_of(tmp_path, 20) / file)
    said: list[str] = []
    assert checkpoints.newest(tmp_path, said.append) == 10
    assert len(said) == 1 and "step-00000020 is damaged" in said[0]


def test_when_all_are_damaged_training_does_not_begin_anew(tmp_path: Path) -> None:
    for step in (10, 20):
        save(tmp_path, step)
        delete(checkpoints.folder_of(tmp_path, step) / "weights.safetensors")
    with pytest.raises(FolderError, match="None of the 2 checkpoints"):
        checkpoints.newest(tmp_path, ignore)


def test_a_bit_of_manifest_that_is_json_but_nonsense_counts_as_damage(tmp_path: Path) -> None:
    save(tmp_path, 10)
    for nonsense in ([], {}, {"files": 3}, {"files": {}}, {"files": {"../../x": {}}}):
        (checkpoints.folder_of(tmp_path, 10) / "manifest.json").write_text(json.dumps(nonsense))
        assert checkpoints.damage(checkpoints.folder_of(tmp_path, 10))


@pytest.mark.parametrize("fault", [full, failing, killed])
@pytest.mark.parametrize("lasts", [False, True])
def test_any_call_may_be_the_last_and_a_whole_checkpoint_stays(
    tmp_path: Path, fault: Callable[[], None], lasts: bool
) -> None:
    def more(folder: Path, step: int = 40) -> None:
        save(folder, step)
        checkpoints.prune(folder, keep=2, regular=10)

    for step in (10, 20, 30):
        save(tmp_path / "before", step)
    calls = counted(lambda: more(Path(shutil.copytree(tmp_path / "before", tmp_path / "counted"))))
    assert len(calls) > 30
    for at in range(len(calls)):
        folder = Path(shutil.copytree(tmp_path / "before", tmp_path / f"{at}"))
        with faulty(FaultyDisk(at, fault, lasts=lasts or fault is killed)), suppress(StorageError, KilledError):
            more(folder)
        assert checkpoints.newest(folder, pytest.fail) in (30, 40), calls[at]
        with faulty(FaultyDisk(-2, full)):
            more(folder, 50)
        assert checkpoints.newest(folder, pytest.fail) == 50 and len(list(folder.iterdir())) in (2, 3), calls[at]
        assert {path.name for path in folder.rglob("*")} <= NAMES, calls[at]


def test_a_full_disk_is_told_with_what_it_takes_and_what_is_free(tmp_path: Path) -> None:
    save(tmp_path, 10)
    weights = {"a": torch.zeros(1_000_000)}
    with (
        faulty(FaultyDisk(5, full)),
        pytest.raises(StorageError, match=r"No room to write .*step-00000020 \(4.0 MB needed, [\d,.]+ MB free\)"),
    ):
        checkpoints.save(tmp_path, 20, weights, {}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000010"]


def test_tensors_are_written_as_the_library_writes_them() -> None:
    kinds = {str(kind): torch.ones(3, 2).to(kind) for kind in checkpoints.DTYPES}
    tensors = kinds | {"é": torch.tensor(2.5), "none": torch.empty(0, 3), "turned": torch.rand(3, 4).T}
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    assert b"".join(checkpoints.as_parts(tensors)) == safetensors.torch.save(whole)


def test_pruning_keeps_the_last_regular_ones_and_the_two_newest(tmp_path: Path) -> None:
    for step in (10, 20, 25, 30, 40, 45, 47):
        save(tmp_path, step)
    checkpoints.prune(tmp_path, keep=2, regular=10)
    assert checkpoints.steps(tmp_path) == [30, 40, 45, 47]
    slim = checkpoints.folder_of(tmp_path, 30)
    assert checkpoints.damage(slim) is None and not (slim / checkpoints.TRAINING).exists()


def test_pruning_does_not_take_damage_for_what_was_written(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    flip_one_bit(checkpoints.folder_of(tmp_path, 10) / checkpoints.WEIGHTS)
    checkpoints.prune(tmp_path, keep=3, regular=10)
    assert "has changed" in str(checkpoints.damage(checkpoints.folder_of(tmp_path, 10)))


@pytest.mark.parametrize("harm", [truncate, delete, empty])
def test_pruning_passes_over_an_older_checkpoint_without_a_manifest(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    harm(checkpoints.folder_of(tmp_path, 10) / checkpoints.MANIFEST)
    checkpoints.prune(tmp_path, keep=3, regular=10)
    assert checkpoints.newest(tmp_path, ignore) == 30


def test_pruning_takes_away_what_a_kill_left_in_a_checkpoint(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    left = checkpoints.folder_of(tmp_path, 10) / ".manifest.json.0123abcd.tmp"
    left.write_text("{")
    checkpoints.prune(tmp_path, keep=3, regular=10)
    assert not left.exists()


def test_only_a_checkpoint_with_its_optimizer_can_be_gone_on_from(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    checkpoints.prune(tmp_path, keep=3, regular=10)
    for step in (20, 30):
        delete(checkpoints.folder_of(tmp_path, step) / checkpoints.TRAINING)
    with pytest.raises(FolderError):
        checkpoints.newest(tmp_path, ignore)


def test_the_average_is_the_mean_in_any_order(tmp_path: Path) -> None:
    for step in (1, 2, 6):
        save(tmp_path, step)
    assert checkpoints.average(tmp_path, [1, 2, 6])["a"].eq(3.0).all()
    assert checkpoints.average(tmp_path, [6, 1, 2])["a"].eq(3.0).all()


def test_a_second_holder_of_the_lock_is_refused_and_the_first_named(tmp_path: Path) -> None:
    with (
        storage.locked(tmp_path / ".lock"),
        pytest.raises(BusyError, match=str(os.getpid())),
        storage.locked(tmp_path / ".lock"),
    ):
        pass
    with storage.locked(tmp_path / ".lock"):
        pass


def test_a_file_is_replaced_whole_or_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    storage.write_file(path, b"old")
    for at in range(4):
        with faulty(FaultyDisk(at, full)), pytest.raises(StorageError):
            storage.write_file(path, b"new")
        assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_leftovers_of_the_killed_are_swept_but_not_what_is_being_written(tmp_path: Path) -> None:
    (tmp_path / ".left.0123abcd.tmp").write_text("half")

    def parts() -> Iterator[bytes]:
        storage.sweep(tmp_path)
        yield b"whole"

    storage.write_parts(tmp_path / "file", parts(), 5)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_removing_a_folder_leaves_what_its_links_lead_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("")
    storage.make_folder(tmp_path / "a/b")
    (tmp_path / "a/b/file").symlink_to(kept)
    (tmp_path / "a/folder").symlink_to(tmp_path)
    storage.remove_folder(tmp_path / "a")
    assert list(tmp_path.iterdir()) == [kept]


def test_a_checkpoint_that_the_disk_does_not_give_back_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)

    def unreadable(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")  # a read, unlike an opening, names no file

    monkeypatch.setattr(checkpoints, "_fingerprint", unreadable)
    assert "Input/output error" in str(checkpoints.damage(checkpoints.folder_of(tmp_path, 1)))


def test_a_state_may_hold_a_loss_that_is_no_number() -> None:
    state = TrainState(step=1, best=float("nan"), best_loss=float("nan"))
    assert TrainState.restored(asdict(state), Path("state.json")).step == 1
