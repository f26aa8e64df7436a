"""NaN and infinity in losses and gradients: no update, nothing of it on the disk, and the run goes on to the same result."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import regard
from killed import Training, differences, training_of
from poisoned import PLACES, not_finite, poisoned
from regard.errors import TrainingError
from torture.rows import Row

TRIALS, STEPS = 100, 12
NAMES = ("transformer", "lstm", "bert", "classifier", "universal")
VALUES = (float("nan"), float("inf"), float("-inf"))


def run(scratch: Path) -> Iterator[Row]:
    stopped = finite = same = 0
    chance = random.Random(TRIALS)
    for number, name in enumerate(NAMES):
        folder = scratch / name
        folder.mkdir()
        training = training_of(name, folder, STEPS)
        precision = "bfloat16" if number % 2 else "float32"
        training = training._replace(settings=training.settings | {"train.accumulate": 2, "train.precision": precision})
        regard.train(training.data, folder / "whole", settings=training.settings)
        for trial in range(TRIALS // len(NAMES)):
            to = folder / "spoilt"
            stopped += refused(training, to, chance.randint(1, STEPS), PLACES[trial % 3], VALUES[trial // 3 % 3])
            finite += not not_finite(to)
            regard.train(training.data, to, settings=training.settings)
            same += not differences(folder / "whole", to)
            shutil.rmtree(to)
    what = f"NaN and infinity in losses and gradients of {len(NAMES)} models, float32 and bfloat16"
    seen = f"{stopped} named and not learned from, {finite} times nothing of it on the disk, {same} results equal"
    yield Row("T10", what, TRIALS, seen, stopped == finite == same == TRIALS)


def refused(training: Training, to: Path, step: int, place: str, value: float) -> bool:
    """Whether a training ends there, with weights that are those from before, and says so."""
    try:
        with poisoned(step, place, value):
            regard.train(training.data, to, settings=training.settings)
    except TrainingError as error:
        return f"Step {step} was not made" in str(error) and "Its batch was" in str(error)
    return False
