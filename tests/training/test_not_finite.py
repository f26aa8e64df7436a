"""NaN and infinity: noticed before anything learns from them, and never on the disk."""

from pathlib import Path
from typing import Any

import pytest

import regard
from conftest import QUICK, write_digits
from poisoned import PLACES, not_finite, poisoned
from regard.errors import TrainingError
from regard.folder import checkpoints
from regard.training import loop
from regard.training.validation import Validation

SETTINGS = {**QUICK, "train.steps": 12, "train.checkpoint_steps": 3, "train.validate_steps": 6, "train.ema": 0.9}


def run(folder: Path, to: str = "model", **settings: Any) -> Any:
    return regard.train(write_digits(folder, 120), folder / to, settings={**SETTINGS, **settings})


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=str)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_not_finite_makes_no_update_and_the_run_goes_on_to_the_same_result(
    place: str, value: float, tmp_path: Path
) -> None:
    precision = {"train.accumulate": 2, "train.precision": "bfloat16" if value > 0 else "float32"}
    run(tmp_path, "whole", **precision)
    with poisoned(8, place, value) as met, pytest.raises(TrainingError, match=r"Step 8 was not made.*lines \d+, \d+"):
        run(tmp_path, **precision)
    assert met and not not_finite(tmp_path / "model")
    run(tmp_path, **precision)
    whole, again = (tmp_path / name / "model.safetensors" for name in ("whole", "model"))
    assert whole.read_bytes() == again.read_bytes()


def test_weights_that_an_update_spoilt_are_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, **{"train.steps": 3})
    monkeypatch.setattr(loop, "rate_at", lambda *_: 1e300)  # no setting may be so large
    with pytest.raises(TrainingError, match=r"Step \d+ .*not finite.*not saved.*train\.rate"):
        regard.train(
            write_digits(tmp_path, 120),
            tmp_path / "model",
            settings={
                **SETTINGS,
                "train.checkpoint_steps": 1,
                "train.warm_up": 1,
                "train.clip": 0,
            },
            override=True,
        )
    assert not not_finite(tmp_path / "model")
    assert checkpoints.newest(tmp_path / "model" / "checkpoints", print) is not None


@pytest.mark.parametrize("loss", [2.0, 1e9])
def test_any_validation_is_better_than_one_that_is_no_number(loss: float) -> None:
    assert Validation(loss).better_than(float("nan"), float("nan"), "loss")
    assert not Validation(float("nan")).better_than(loss, loss, "loss")
