"""kill -9 at random moments, for every model: the same training again ends with the same bytes."""

import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import regard
from conftest import SMALL
from killed import begun, differences, finished, killed, training_of
from regard.errors import BusyError
from torture.rows import Row

KILLS, STEPS = 20, 30
CHAIN, CHAINED = 10, 300
RIVALS = 20


def run(scratch: Path) -> Iterator[Row]:
    yield every_model(scratch / "models")
    yield in_a_row(scratch / "chain")
    yield rivals(scratch / "rivals")


def every_model(scratch: Path) -> Row:
    results, wrong = 0, []
    for number, name in enumerate(SMALL):
        folder = scratch / name
        folder.mkdir(parents=True)
        training = training_of(name, folder, STEPS)
        for result in killed(training, folder, KILLS, seed=number):
            results += 1
            wrong += [f"{name}: {file}" for file in differences(folder / "whole", result)]
        print(f"{name}: {results} results so far, {wrong or 'all equal'}", file=sys.stderr, flush=True)
        shutil.rmtree(folder)
    seen = f"{results} results, {', '.join(wrong) + ' differ' if wrong else 'each equal to the uninterrupted one'}"
    return Row(
        "T1", f"kill -9 at {KILLS} random moments for each of {len(SMALL)} models", KILLS * len(SMALL), seen, not wrong
    )


def in_a_row(scratch: Path) -> Row:
    """Kills before anything was saved: the folder does not grow, and nothing of them is left."""
    scratch.mkdir()
    training = training_of("transformer", scratch, CHAINED)
    never = {"train.checkpoint_steps": 10 * CHAINED, "train.validate_steps": 10 * CHAINED}
    training = training._replace(settings=training.settings | never)
    duration, moments, sizes = finished(training, scratch / "whole"), random.Random(CHAIN), []
    for _ in range(CHAIN):
        process = begun(training, scratch / "killed")
        process.join(moments.uniform(0.1, 0.8) * duration)
        process.kill()
        process.join()
        sizes.append(len(list((scratch / "killed").rglob("*"))))
    finished(training, scratch / "killed")
    left = len(list((scratch / "killed").rglob(".*.tmp")))
    most = len(list((scratch / "whole").rglob("*")))
    wrong = differences(scratch / "whole", scratch / "killed")
    seen = f"at most {max(sizes)} files and folders ({most} of a finished run), {left} temporary ones left, "
    seen += f"{', '.join(wrong) + ' differ' if wrong else 'the result equal'}"
    what = f"kill -9, {CHAIN} times in a row before the first checkpoint"
    return Row("T3", what, CHAIN, seen, max(sizes) <= most and not left and not wrong)


def rivals(scratch: Path) -> Row:
    """A second trainer in the same folder is refused; when the first one is killed, it is taken in at once."""
    scratch.mkdir()
    training = training_of("transformer", scratch, 100_000)
    refused = taken = 0
    for trial in range(RIVALS):
        to = scratch / f"{trial}"
        first = begun(training, to)
        while not (to / "log.jsonl").exists():
            time.sleep(0.01)
        try:
            regard.train(training.data, to, settings=training.settings)
        except BusyError as error:
            refused += f"process {first.pid} on " in str(error)
        first.kill()
        first.join()
        taken += regard.train(training.data, to, settings={**training.settings, "train.steps": 10}).step >= 10
        shutil.rmtree(to)
    seen = f"{refused} refused by the name of the other, {taken} let in when that was killed"
    return Row("T16", "a second training in the same folder", RIVALS, seen, refused == taken == RIVALS)
