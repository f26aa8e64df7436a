"""Which pairs each update learns from, when training is stopped and gone on with; torture/parts/order.py kills it."""

from itertools import count
from pathlib import Path

import pytest

from conftest import QUICK, write_digits
from regard.config import parse_set, read
from regard.training.run import train
from regard.training.trainer import Learner


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_order_of_pairs_is_the_uninterrupted_one(
    accumulate: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[tuple[int, list[int]]] = []
    plain = Learner.update

    def update(self: Learner, batches, step: int, rate: float):
        learned.append((step, [number for batch in batches for number in batch.numbers]))
        return plain(self, batches, step, rate)

    monkeypatch.setattr(Learner, "update", update)
    data = write_digits(tmp_path, 400)
    given = {
        **QUICK,
        "train.steps": 30,
        "train.accumulate": accumulate,
        "model.width": 8,
        "train.validate_sentences": 1,
    }
    config = read(parse_set(f"{key}={value}" for key, value in given.items()))
    train(data, tmp_path / "whole", config, valid=data)
    whole, learned[:] = list(learned), []
    for steps in (1, 9, 4, 100):
        asked = count()
        train(data, tmp_path / "pieces", config, valid=data, stop=lambda asked=asked, steps=steps: next(asked) > steps)
    assert learned == whole and len(whole) == 30
    first_epoch = [number for _, numbers in whole for number in numbers][:400]
    assert sorted(first_epoch) == list(range(400))
