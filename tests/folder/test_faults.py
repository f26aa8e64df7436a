"""Every call that changes the disk fails once, or is the last: training goes on from there as if nothing had happened."""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from faults import (
    BRIEF,
    FaultyDisk,
    KilledError,
    counted,
    differences,
    failing,
    faulty,
    fingerprint,
    full,
    killed,
    running_text,
    train,
    whole_checkpoint,
)
from regard.errors import StorageError
from regard.folder import checkpoints, layout
from regard.training.loop import Display, TrainState

Begun = tuple[list[str], Path, Path]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """A text, a whole training on it, and one that was killed just before its last checkpoint."""
    place = tmp_path_factory.mktemp("begun")
    data, whole, part = running_text(place), place / "whole/model", place / "part/model"
    calls = counted(lambda: train(data, whole))
    last = calls.index("mkdir checkpoints/.step-00000003.tmp")
    with faulty(FaultyDisk(last, killed, lasts=True)), pytest.raises(KilledError):
        train(data, part)
    return data, whole, part


def tried_at_every_call(
    begun: Begun, place: Path, fault: Callable[[], None], every: int = 1, lasts: bool = False
) -> int:
    """How many calls a resumed run makes; each fault leaves a whole checkpoint, and the next run the same result."""
    data, whole, part = begun
    calls = counted(lambda: train(data, Path(shutil.copytree(part, place / "counted/model"))))
    seen = set()
    for at in range(0, len(calls), every):
        to = Path(shutil.copytree(part, place / f"{at}/model"))
        with faulty(FaultyDisk(at, fault, lasts=lasts)):
            try:
                train(data, to)
            except (StorageError, KilledError) as error:
                assert "\n" not in str(error)
        assert whole_checkpoint(to) in (2, 3), calls[at]
        if (left := fingerprint(to)) not in seen:
            with faulty(FaultyDisk(-2, full)):
                train(data, to)
            assert differences(whole, to) == [], calls[at]
        seen.add(left)
        shutil.rmtree(to)
    return len(calls)


def test_no_room_at_any_call_costs_nothing_that_was_saved(begun: Begun, tmp_path: Path) -> None:
    assert tried_at_every_call(begun, tmp_path, full) > 80


def test_a_failing_disk_costs_nothing_that_was_saved(begun: Begun, tmp_path: Path) -> None:
    tried_at_every_call(begun, tmp_path, failing, every=15, lasts=True)


def test_a_kill_at_a_call_costs_nothing_that_was_saved(begun: Begun, tmp_path: Path) -> None:
    tried_at_every_call(begun, tmp_path, killed, every=10, lasts=True)


def test_a_kill_while_a_folder_is_begun_does_not_make_it_a_strange_one(begun: Begun, tmp_path: Path) -> None:
    config, about = layout.load_config(begun[1])

    def begin(to: Path) -> None:
        with layout.held(to):
            layout.save_config(to, config, about)

    for at in range(len(counted(lambda: begin(tmp_path / "counted")))):
        with faulty(FaultyDisk(at, killed, lasts=True)), pytest.raises(KilledError):
            begin(tmp_path / f"{at}")
        begin(tmp_path / f"{at}")
        assert {path.name for path in (tmp_path / f"{at}").iterdir()} == {".lock", "config.json"}


CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink", "shutil.rmtree"}
watched: list[str] | None = None


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if watched is not None and (event in CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR))):
        watched.append(f"{event} {arguments[0]}")


def test_a_training_changes_nothing_on_the_disk_but_through_the_one_place(begun: Begun, tmp_path: Path) -> None:
    global watched
    sys.addaudithook(watch)
    watched = []
    calls = counted(lambda: train(begun[0], tmp_path / "model"))
    seen, watched = [change for change in watched if str(tmp_path) in change], None
    assert len(seen) == len([call for call in calls if not call.startswith(("write", "sync", "truncate"))]), seen


@pytest.mark.parametrize("file", ["log.jsonl", "probe.jsonl"])
def test_no_room_in_the_log_alone_is_told_and_costs_no_checkpoint(begun: Begun, tmp_path: Path, file: str) -> None:
    data, whole, part = begun
    to = Path(shutil.copytree(part, tmp_path / "model"))
    for at in range(3):
        with (
            faulty(FaultyDisk(at, full, lasts=True, only=lambda call: call.endswith(file))),
            pytest.raises(StorageError, match=f"No room to write .*{file}"),
        ):
            train(data, to)
        assert whole_checkpoint(to) == 2
    train(data, to)
    assert differences(whole, to) == []


def test_a_damaged_checkpoint_has_no_part_in_the_average(begun: Begun, tmp_path: Path) -> None:
    data, _, part = begun
    to, said = Path(shutil.copytree(part, tmp_path / "model")), list[str]()
    weights = checkpoints.folder_of(to / "checkpoints", 2) / checkpoints.WEIGHTS
    content = weights.read_bytes()

    class Damaging(Display):
        def training(self, state: TrainState, line: dict[str, Any]) -> None:
            weights.write_bytes(content[:-1] + bytes([content[-1] ^ 64]))

        def note(self, text: str) -> None:
            said.append(text)

    settings = {**BRIEF, "model.width": 8, "train.steps": 3}
    regard.train(data, to, model="rnn", settings=settings, display=Damaging())
    assert any("step-00000002 is damaged (weights.safetensors has changed" in text for text in said)
    assert not any("average" in text and "keeping" in text for text in said)


def test_files_that_may_not_grow_end_the_command_with_one_line(begun: Begun, tmp_path: Path) -> None:
    """The system's own limit, from the first file of weights on; with room, the same command goes on."""
    to = Path(shutil.copytree(begun[2], tmp_path / "model"))
    settings = {**BRIEF, "model.width": 8}
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "regard", "train", *begun[0], "--to", str(to), "--model", "rnn", *options]
    largest = max(path.stat().st_size for path in to.rglob("*.safetensors"))
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, resource.RLIM_INFINITY)),
    )
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("regard:")]
    assert done.returncode == 74 and re.search(
        r"No room to write .*step-00000003 \([\d.]+ MB needed, .* MB free\)", said
    )
    train(begun[0], to)
    assert differences(begun[1], to) == []
