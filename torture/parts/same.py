"""The same training elsewhere gives the same bytes; and what a checkpoint costs beside writing so much."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from conftest import SMALL
from killed import differences, finished, training_of
from regard.folder import checkpoints
from torture.rows import Row

STEPS = 30
PLACES = [
    {"PYTHONHASHSEED": "77", "LC_ALL": "C", "TZ": "Asia/Kathmandu"},
    {"PYTHONHASHSEED": "0", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns", "COLUMNS": "20"},
]
SAVED, MEGABYTES = 10, 100


def run(scratch: Path) -> Iterator[Row]:
    wrong = []
    for name in SMALL:
        folder = scratch / name
        folder.mkdir()
        training = training_of(name, folder, STEPS)
        finished(training, folder / "whole")
        for number, strange in enumerate(PLACES):
            away = folder / f"{number}" / "deeper"
            away.mkdir(parents=True)
            program = f"import regard; regard.train({training.data!r}, 'model', settings={training.settings!r})"
            subprocess.run([sys.executable, "-c", program], cwd=away, env={**os.environ, **strange}, check=True)
            wrong += [f"{name}: {file}" for file in differences(folder / "whole", away / "model")]
    what = f"{len(SMALL)} models again: other folders, locales, time zones and hash seeds"
    yield Row("T12", what, len(SMALL) * len(PLACES), f"{', '.join(wrong) or 'no byte'} differs", not wrong)
    yield cost(scratch)


def cost(scratch: Path) -> Row:
    """Training waits for a checkpoint until it is on the disk. There is no saving in the background that could change a bit."""
    tensors = {f"{n}": torch.randn(250_000) for n in range(MEGABYTES)}  # a megabyte each
    content = b"".join(tensor.numpy().tobytes() for tensor in tensors.values())
    waited = written = 0.0
    for step in range(SAVED):
        began = time.monotonic()
        checkpoints.save(scratch / "checkpoints", step, tensors, {}, {})
        checkpoints.prune(scratch / "checkpoints", 1, 1)
        waited += time.monotonic() - began
        began = time.monotonic()
        with open(scratch / "plain", "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        written += time.monotonic() - began
    seen = f"training waits {waited / SAVED:.2f} s for {MEGABYTES} MB, which take {written / SAVED:.2f} s to write and flush"
    return Row("T17", "a checkpoint, checksums counted", SAVED, seen, waited <= written)
