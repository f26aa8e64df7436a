"""Checkpoints that survive a kill at any moment, a full disk and a damaged disk.

A checkpoint is a folder `step-N` of safetensors and JSON files, with a manifest of their sizes and checksums. It is
written under a temporary name, flushed, and renamed; so a folder with its final name is complete, unless the disk
spoiled it later, which the manifest shows. No pickle anywhere: weights, optimizer and state are all plain data.
"""

import hashlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard.errors import FolderError
from regard.system import files, storage

NAME = re.compile(r"step-(\d{8,15})", re.ASCII)
WEIGHTS, TRAINING, STATE, MANIFEST = "weights.safetensors", "training.safetensors", "state.json", "manifest.json"
VALIDATED = "validated.json"
"""The state after the validation of a step, whose checkpoint was written before it."""
Tensors = Mapping[str, Tensor]
DTYPES = {
    torch.int64: "I64", torch.float64: "F64", torch.float32: "F32", torch.int32: "I32", torch.bfloat16: "BF16",
    torch.float16: "F16", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
"""The names that safetensors has for them, in the order in which it writes them."""


def folder_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is kept."""
    return folder / f"step-{step:08d}"


def save(folder: Path, step: int, weights: Tensors, training: Tensors, state: Mapping[str, Any]) -> None:
    """Write the checkpoint of `step`; when this returns, it is on the disk."""
    final = folder_of(folder, step)
    temporary = folder / f".{final.name}.tmp"
    with storage.explained(final, size_of(weights) + size_of(training)):
        storage.make_folder(folder)
        try:
            storage.remove_folder(temporary)
            storage.disk.mkdir(temporary)
            contents = {
                WEIGHTS: as_parts(weights),
                TRAINING: as_parts(training),
                STATE: iter([json.dumps(state, indent=1).encode()]),
            }
            _write_manifest(temporary, {name: _written(temporary / name, parts) for name, parts in contents.items()})
            storage.remove_folder(final)
            storage.disk.rename(temporary, final)
            storage.sync_folder(folder)
        except BaseException:
            storage.remove_folder(temporary)
            raise


def add_outcome(folder: Path, step: int, state: Mapping[str, Any]) -> None:
    """Add to the checkpoint of `step` the state after its validation. It counts once the manifest, which is replaced, has it."""
    checkpoint = folder_of(folder, step)
    storage.write_file(checkpoint / VALIDATED, json.dumps(state, indent=1).encode())
    _write_manifest(checkpoint, _files(checkpoint) | {VALIDATED: _fingerprint(checkpoint / VALIDATED)})


def steps(folder: Path) -> list[int]:
    """Steps that have a checkpoint, whole or damaged, the oldest first."""
    if not folder.is_dir():
        return []
    found = (int(match[1]) for path in folder.iterdir() if (match := NAME.fullmatch(path.name)))
    return sorted(step for step in found if folder_of(folder, step).is_dir())


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
        listed = _files(checkpoint)
        for name, recorded in listed.items():
            if recorded != _fingerprint(checkpoint / name):
                return f"{name} has changed since it was written"
        if not {WEIGHTS, STATE} <= set(listed):
            return "the manifest is incomplete"
    except OSError as error:
        return f"{Path(error.filename or checkpoint).name}: {error.strerror or error}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "the manifest cannot be read"
    return None


def load_state(folder: Path, step: int) -> dict[str, Any]:
    """The state that was saved last with a checkpoint."""
    checkpoint = folder_of(folder, step)
    path = checkpoint / (VALIDATED if VALIDATED in _files(checkpoint) else STATE)
    try:
        return files.table(path)
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read ({error}). Delete {checkpoint} to go on from an older one.") from None


def as_parts(tensors: Tensors) -> Iterator[storage.Part]:
    """The bytes of a safetensors file, one tensor after the other: never is more than one of them copied.

    The library writes a file by itself, where its errors cannot be told apart, nor a test let it fail; or it copies all.
    """
    kinds = list(DTYPES)
    order = sorted(tensors, key=lambda name: (kinds.index(tensors[name].dtype), name))
    header, end = {}, 0
    for name in order:
        begin, end = end, end + tensors[name].nbytes
        shape = list(tensors[name].shape)
        header[name] = {"dtype": DTYPES[tensors[name].dtype], "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for name in order:
        yield tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def size_of(tensors: Tensors) -> int:
    """How many bytes the numbers take."""
    return sum(tensor.nbytes for tensor in tensors.values())


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file."""
    try:
        return safetensors.torch.load_file(files.tensors(path))
    except FileNotFoundError:
        raise FolderError(f"{path} is missing. Copy the folder again, or go on training to make it.") from None
    except (OSError, ValueError, safetensors.SafetensorError) as error:
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
            storage.remove_folder(doomed)
            with storage.explained(folder):
                storage.disk.rename(folder_of(folder, step), doomed)
            storage.remove_folder(doomed)
    for step in sorted(wanted)[:-2]:
        _lighten(folder_of(folder, step))
    for leftover in folder.glob(".step-*.tmp"):
        storage.remove_folder(leftover)
    for leftover in folder.glob("step-*/.*.tmp"):
        storage.remove_file(leftover)


def _lighten(checkpoint: Path) -> None:
    """Take away the optimizer, and what a kill left there. A damaged checkpoint stays as it is."""
    try:
        kept = {name: recorded for name, recorded in _files(checkpoint).items() if name != TRAINING}
    except (OSError, ValueError, KeyError, TypeError):
        return
    if (checkpoint / TRAINING).exists():
        _write_manifest(checkpoint, kept)  # of what was once written: damage since then is to be seen later, too
    for path in list(checkpoint.iterdir()):
        if path.name not in (MANIFEST, *kept):
            storage.remove_file(path)


def undamaged(folder: Path, chosen: Sequence[int], report: Callable[[str], None]) -> list[int]:
    """Those of the checkpoints in which every file is as it was written; the others are reported."""
    faults = {step: damage(folder_of(folder, step)) for step in chosen}
    for step, fault in faults.items():
        if fault:
            report(f"{folder_of(folder, step)} is damaged ({fault}); it has no part in the average")
    return [step for step in chosen if not faults[step]]


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


def _files(checkpoint: Path) -> dict[str, Any]:
    """What the manifest says is there."""
    listed = dict(files.table(checkpoint / MANIFEST)["files"])
    if strangers := set(listed) - {WEIGHTS, TRAINING, STATE, VALIDATED}:
        raise ValueError(f"it names {min(strangers)}")
    return listed


def _write_manifest(checkpoint: Path, listed: Mapping[str, Any]) -> None:
    manifest = {"format": 1, "files": listed}
    storage.write_file(checkpoint / MANIFEST, json.dumps(manifest, indent=1).encode())


def _written(path: Path, parts: Iterator[storage.Part]) -> dict[str, Any]:
    """Write a file; the fingerprint it has if the disk gives back the bytes that it was given."""
    size, digest = 0, hashlib.sha256()

    def passing() -> Iterator[storage.Part]:
        nonlocal size
        for part in parts:
            size += len(part)
            digest.update(part)
            yield part

    storage.write_new(path, passing())
    return {"bytes": size, "sha256": digest.hexdigest()}


def _fingerprint(path: Path) -> dict[str, Any]:
    with open(files.regular(path), "rb") as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
