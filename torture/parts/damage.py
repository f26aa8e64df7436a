"""Checkpoints of a real training, damaged in every way: noticed, named and passed over, or refused."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import regard
from conftest import QUICK, write_digits
from regard.errors import FolderError
from regard.folder import checkpoints
from torture.rows import Row

TRIALS, ALL_DAMAGED, RESUMED = 200, 40, 20
SETTINGS = {**QUICK, "train.ema": 0.9, "train.keep": 5}
FILES = (checkpoints.WEIGHTS, checkpoints.TRAINING, checkpoints.STATE, checkpoints.MANIFEST)
PAGE = 4096


def truncated(content: bytes, place: random.Random) -> bytes:
    return content[: place.randrange(len(content))]


def flipped(content: bytes, place: random.Random) -> bytes:
    bit = place.randrange(8 * len(content))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def zeroed(content: bytes, place: random.Random) -> bytes:
    start = place.randrange(len(content)) // PAGE * PAGE
    end = min(start + PAGE, len(content))
    return content[:start] + bytes(end - start) + content[end:]


def missing(content: bytes, place: random.Random) -> None:
    return None


def emptied(content: bytes, place: random.Random) -> bytes:
    return b""


HARMS: list[Callable[[bytes, random.Random], bytes | None]] = [truncated, flipped, zeroed, missing, emptied]


def harm(folder: Path, trial: int) -> None:
    """Damage one file of a checkpoint: every way and every file in turn, at places of chance."""
    path = folder / FILES[trial % len(FILES)]
    content = path.read_bytes()
    left = HARMS[trial // len(FILES) % len(HARMS)](content, random.Random(trial))
    if left is None:
        path.unlink()
    elif left == content:  # a page that was nothing but zeros: no damage
        path.write_bytes(flipped(content, random.Random(trial)))
    else:
        path.write_bytes(left)


def run(scratch: Path) -> Iterator[Row]:
    data, whole = write_digits(scratch, 120), scratch / "whole"
    regard.train(data, whole, settings=SETTINGS)
    regard.train(data, scratch / "begun", settings={**SETTINGS, "train.steps": 30})
    yield noticed(scratch)
    yield resumed(data, scratch)
    yield refused(data, scratch)


def noticed(scratch: Path) -> Row:
    kept = scratch / "begun" / "checkpoints"
    *_, before, newest = checkpoints.steps(kept)
    found = 0
    for trial in range(TRIALS):
        copy = Path(shutil.copytree(kept, scratch / "copy"))
        harm(checkpoints.folder_of(copy, newest), trial)
        said: list[str] = []
        used = checkpoints.newest(copy, said.append)
        found += used == before and len(said) == 1 and f"step-{newest:08d} is damaged" in said[0]
        shutil.rmtree(copy)
    ways = "truncated, one bit flipped, a page zeroed, a file missing, a file emptied"
    return Row("T6", f"the newest checkpoint: {ways}", TRIALS, f"{found} noticed, named, passed over", found == TRIALS)


def resumed(data: list[str], scratch: Path) -> Row:
    same = 0
    for trial in range(RESUMED):
        to = Path(shutil.copytree(scratch / "begun", scratch / "resumed"))
        harm(checkpoints.folder_of(to / "checkpoints", max(checkpoints.steps(to / "checkpoints"))), trial)
        regard.train(data, to, settings=SETTINGS)
        last = Path("checkpoints/step-00000040")
        files = ["model.safetensors", "probe.jsonl", *(last / name for name in FILES[:2])]
        same += all((to / file).read_bytes() == (scratch / "whole" / file).read_bytes() for file in files)
        shutil.rmtree(to)
    return Row("T6", "the same, and training goes on", RESUMED, f"{same} results equal, byte for byte", same == RESUMED)


def refused(data: list[str], scratch: Path) -> Row:
    count = 0
    for trial in range(ALL_DAMAGED):
        to = Path(shutil.copytree(scratch / "begun", scratch / "refused"))
        folders = [checkpoints.folder_of(to / "checkpoints", step) for step in checkpoints.steps(to / "checkpoints")]
        for number, folder in enumerate(folders):
            # Only the two newest hold what Adam remembers; of an older one anything else may be damaged.
            harm(folder, trial + number if number >= len(folders) - 2 else 2 + trial % 2)
        try:
            regard.train(data, to, settings=SETTINGS)
        except FolderError as error:
            count += "None of the" in str(error) and all(folder.exists() for folder in folders)
        shutil.rmtree(to)
    return Row(
        "T7", "all checkpoints damaged", ALL_DAMAGED, f"{count} refused, nothing begun anew", count == ALL_DAMAGED
    )
