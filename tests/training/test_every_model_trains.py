"""Every model, through the front door: trained from raw text, stopped and gone on with, and used."""

from itertools import count
from pathlib import Path

import pytest

import regard
from conftest import QUICK, SMALL, WRITERS, write_digits
from regard.config import Config, parse_set, read
from regard.training.run import train


def settings(name: str) -> Config:
    chosen = {key: value for key, value in QUICK.items() if not key.startswith("model.")}
    chosen |= {
        "model.name": name,
        "train.steps": 14,
        "train.validate_steps": 7,
        "train.checkpoint_steps": 7,
        "text.kind": "pairs",
        "text.longest": 15,
    }
    chosen |= {f"model.{key}": value for key, value in {**SMALL[name], "dropout": 0.2}.items()}
    return read(parse_set(f"{key}={value}" for key, value in chosen.items()))


@pytest.mark.parametrize("name", WRITERS)
def test_it_trains_goes_on_to_the_same_bytes_and_translates(name: str, tmp_path: Path) -> None:
    data, config = write_digits(tmp_path, 80), settings(name)
    train(data, tmp_path / "whole", config)
    for steps in (6, 4, 100):
        asked = count()
        train(data, tmp_path / "pieces", config, stop=lambda asked=asked, steps=steps: next(asked) >= steps)
    whole, pieces = ((tmp_path / run / "model.safetensors").read_bytes() for run in ("whole", "pieces"))
    assert whole == pieces
    model = regard.load(tmp_path / "whole", device="cpu")
    found = model.n_best(["1 2", "", "3"], beam=3, n_best=2, max_length=5)
    assert [len(hypotheses) for hypotheses in found] == [2, 1, 2]
