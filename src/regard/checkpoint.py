"""Checkpoints that survive a kill at any moment, a full disk and a damaged disk.

A checkpoint is a folder `step-N` of safetensors and JSON files, with a manifest of their sizes and checksums. It is
written under a temporary name, flushed, and renamed; so a folder with its final name is complete, unless the disk
spoiled it later, which the manifest shows. No pickle anywhere: weights, optimizer and state are all plain data.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard import storage
from regard.errors import FolderError

NAME = re.compile(r"step-(\d+)")
WEIGHTS, TRAINING, STATE, MANIFEST = "weights.safetensors", "training.safetensors", "state.json", "manifest.json"
Tensors = Mapping[str, Tensor]


def folder_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is kept."""
    return folder / f"step-{step:08d}"


def save(folder: Path, step: int, weights: Tensors, training: Tensors, state: Mapping[str, Any]) -> None:
    """Write the checkpoint of `step`; when this returns, it is on the disk."""
    final = folder_of(folder, step)
    temporary = folder / f".{final.name}.tmp"
    with storage.explained(final):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            safetensors.torch.save_file(_plain(weights), temporary / WEIGHTS)
            safetensors.torch.save_file(_plain(training), temporary / TRAINING)
            (temporary / STATE).write_text(json.dumps(state, indent=1))
            _write_manifest(temporary, [WEIGHTS, TRAINING, STATE])
            for file in temporary.iterdir():
                storage.sync_file(file)
            storage.sync_folder(temporary)
            shutil.rmtree(final, ignore_errors=True)
            temporary.rename(final)
            storage.sync_folder(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def steps(folder: Path) -> list[int]:
    """Steps that have a checkpoint, whole or damaged, the oldest first."""
    if not folder.is_dir():
        return []
    return sorted(int(match[1]) for path in folder.iterdir() if (match := NAME.fullmatch(path.name)))


def newest(folder: Path, report: Callable[[str], None]) -> int | None:
    """The newest step from which training can go on; damaged checkpoints are reported and passed over."""
    there = steps(folder)
    for step in reversed(there):
        if fault := damage(folder_of(folder, step)):
            report(f"{folder_of(folder, step)} is damaged ({fault}); going back to the one before it")
        elif TRAINING in _files(folder_of(folder, step)):
            return step
    if there:
        raise FolderError(
            f"None of the {len(there)} checkpoints in {folder} can be used. "
            "Restore that folder from a copy, or train into a new one with --to."
        )
    return None


def damage(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint, or None if every file is as it was written."""
    try:
        files = _files(checkpoint)
        for name, recorded in files.items():
            if recorded != _fingerprint(checkpoint / name):
                return f"{name} has changed since it was written"
        if not {WEIGHTS, STATE} <= set(files):
            return "the manifest is incomplete"
    except OSError as error:
        return f"{Path(error.filename).name}: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "the manifest cannot be read"
    return None


def load_state(folder: Path, step: int) -> dict[str, Any]:
    """The state that was saved with a checkpoint."""
    state: dict[str, Any] = json.loads((folder_of(folder, step) / STATE).read_text())
    return state


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file."""
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise FolderError(f"{path} is missing. Copy the folder again, or go on training to make it.") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise FolderError(f"{path} cannot be read as weights ({error}). Copy the folder again.") from None


def prune(folder: Path, keep: int, regular: int) -> None:
    """Keep the last `keep` checkpoints of steps divisible by `regular`, and the two newest of all.

    Only the two newest keep the optimizer: the older ones are there to be averaged. Whatever moment this is
    interrupted at, each checkpoint left is one that verifies.
    """
    there = steps(folder)
    wanted = set([step for step in there if step % regular == 0][-keep:]) | set(there[-2:])
    for step in there:
        if step not in wanted:
            doomed = folder / f".{folder_of(folder, step).name}.tmp"
            shutil.rmtree(doomed, ignore_errors=True)
            folder_of(folder, step).rename(doomed)
            shutil.rmtree(doomed)
    for step in sorted(wanted)[:-2]:
        checkpoint = folder_of(folder, step)
        if TRAINING in _files(checkpoint):
            _write_manifest(checkpoint, [WEIGHTS, STATE])
        (checkpoint / TRAINING).unlink(missing_ok=True)
    for leftover in folder.glob(".step-*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)


def average(folder: Path, chosen: list[int]) -> dict[str, Tensor]:
    """The mean of several checkpoints' weights."""
    return mean([load_tensors(folder_of(folder, step) / WEIGHTS) for step in chosen])


def mean(models: Sequence[Tensors]) -> dict[str, Tensor]:
    """The mean of several models' weights, summed in double precision so that their order cannot matter."""
    total = {name: tensor.detach().double() for name, tensor in models[0].items()}
    for weights in models[1:]:
        for name, tensor in weights.items():
            total[name] = total[name] + tensor.detach().double()
    return {name: (tensor / len(models)).to(torch.float32) for name, tensor in total.items()}


def _plain(tensors: Tensors) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _files(checkpoint: Path) -> dict[str, Any]:
    """What the manifest says is there."""
    files = json.loads((checkpoint / MANIFEST).read_text())["files"]
    return dict(files)


def _write_manifest(checkpoint: Path, names: list[str]) -> None:
    manifest = {"format": 1, "files": {name: _fingerprint(checkpoint / name) for name in names}}
    storage.write_file(checkpoint / MANIFEST, json.dumps(manifest, indent=1).encode())


def _fingerprint(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
