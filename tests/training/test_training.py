"""Training: what a step does, when training ends, and that nothing is lost on the way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import regard
from conftest import QUICK, small, write_digits
from regard.config import TrainConfig, parse_set, read
from regard.errors import BusyError, ConfigError, DataError, FolderError, RegardError, TrainingError
from regard.folder import checkpoints
from regard.models import build
from regard.system.storage import locked
from regard.text.batching.batch import make_pairs
from regard.training.log import CLOCK, read_log
from regard.training.loop import Display
from regard.training.run import train
from regard.training.trainer import Learner
from regard.training.validation import Validation

PAIRS = [([5, 6, 7], [8, 9]), ([6, 7], [9, 8, 7]), ([9], [5]), ([7, 8, 9, 5], [6, 6, 6])]


def learner(**settings: Any) -> Learner:
    torch.manual_seed(1)
    model = build(small("transformer").model, 12)
    return Learner(model, TrainConfig(**settings), torch.device("cpu"), torch.float32)


def batch(first: int = 0, last: int = 4) -> Any:
    pairs = PAIRS[first:last]
    return make_pairs([s for s, _ in pairs], [t for _, t in pairs], list(range(first, last)))


def weights(of: Learner) -> list[torch.Tensor]:
    return [p.detach().clone() for p in of.model.parameters()]


def test_two_half_batches_make_the_update_of_the_whole() -> None:
    whole, halves = learner(), learner()
    whole.update([batch()], 1, 0.01)
    halves.update([batch(0, 2), batch(2, 4)], 1, 0.01)
    for a, b in zip(whole.optimizer.state.values(), halves.optimizer.state.values(), strict=True):
        assert_close(a["exp_avg"], b["exp_avg"])


def test_clipping_bounds_the_gradient_and_reports_it_whole() -> None:
    one = learner(clip=1e-3)
    assert one.update([batch()], 1, 0.0).gradient > 1e-2
    sum_of_squares = sum(float(v["exp_avg_sq"].sum()) for v in one.optimizer.state.values())
    assert sum_of_squares <= 1.001e-6 * (1 - 0.98)


def test_padding_is_not_counted_as_tokens() -> None:
    assert batch().tokens == sum(len(target) + 1 for _, target in PAIRS)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_leaves_the_weights_alone(poison: float) -> None:
    one = learner()
    one.model.words.weight.data[0, 0] = poison
    before = weights(one)
    with pytest.raises(TrainingError):
        one.update([batch()], 1, 0.1)
    for a, b in zip(before, weights(one), strict=True):
        assert_close(a, b, equal_nan=True)


def test_bfloat16_learns_what_float32_learns() -> None:
    full, half = learner(), learner()
    half.precision = torch.bfloat16
    losses = [[one.update([batch()], s, 0.01).loss for s in range(1, 31)] for one in (full, half)]
    assert losses[1][-1] == pytest.approx(losses[0][-1], rel=0.1)
    assert losses[0][-1] < 0.5 * losses[0][0]


def test_validation_sees_the_moving_average_and_leaves_the_weights() -> None:
    one = learner(ema=0.5)
    one.update([batch()], 1, 0.1)
    own = weights(one)
    model = one.model_with(one.best_weights())
    assert not torch.equal(next(iter(model.parameters())), own[0])
    for a, b in zip(own, weights(one), strict=True):
        assert_close(a, b)


# A whole run.


def run(folder: Path, to: str = "model", stop: Callable[[], bool] = lambda: False, **settings: Any) -> Any:
    data = write_digits(folder, 120)
    given = {**QUICK, **{key.replace("__", "."): value for key, value in settings.items()}}
    config = read(parse_set(f"{key}={value}" for key, value in given.items()))
    return train(data, folder / to, config, stop=stop)


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in CLOCK} for line in read_log(folder / "log.jsonl")]


def after(steps: int) -> Callable[[], bool]:
    calls = iter(range(10**6))
    return lambda: next(calls) >= steps


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"train__ema": 0.9},
        {"train__optimizer": "muon"},
        {"train__accumulate": 2},
        {"train__schedule": "plateau", "train__plateau_patience": 1, "train__metric": "bleu"},
        {"text__tokenizer": "bpe", "text__vocabulary": 60, "text__sampling": 0.2},
    ],
    ids=str,
)
def test_a_run_stopped_and_gone_on_with_is_byte_for_byte_the_uninterrupted_one(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    run(tmp_path, "whole", **settings)
    for steps in (7, 1, 13, 100):
        run(tmp_path, "pieces", stop=after(steps), **settings)
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    assert (whole / "model.safetensors").read_bytes() == (pieces / "model.safetensors").read_bytes()
    for file in ("weights.safetensors", "training.safetensors"):
        last = Path("checkpoints") / "step-00000040" / file
        assert (whole / last).read_bytes() == (pieces / last).read_bytes()
    assert log_of(whole) == log_of(pieces)


def test_the_log_has_what_was_promised(tmp_path: Path) -> None:
    run(tmp_path)
    lines = read_log(tmp_path / "model" / "log.jsonl")
    training = [line for line in lines if "loss" in line]
    assert [line["step"] for line in training] == list(range(5, 45, 5))
    assert {"step", "loss", "tokens_per_second", "rate", "gradient", "padding"} <= set(training[0])
    assert [line["step"] for line in lines if "valid_perplexity" in line] == [20, 40]


def test_the_weights_that_are_kept_have_the_most_texts_exactly_right_if_that_is_asked_for(tmp_path: Path) -> None:
    run(tmp_path, train__metric="exact", train__steps=120, train__validate_steps=30, train__samples=10)
    shown = [line["samples"] for line in read_log(tmp_path / "model" / "probe.jsonl")]
    right = [100 * sum(made == right for _, made, right in samples) / len(samples) for samples in shown]
    validations = [line for line in log_of(tmp_path / "model") if "best" in line]
    assert [line["valid_exact"] for line in validations] == right
    assert [line["valid_exact"] for line in validations if line["best"]][-1] == max(right) > min(right)


@pytest.mark.parametrize(
    ("metric", "value", "loss", "better"),
    [
        ("loss", 2.0, 2.0, True), ("loss", 1.0, 1.0, False), ("loss", 0.5, 0.5, False),
        ("exact", 49.0, 0.5, True), ("exact", 51.0, 2.0, False),
        ("exact", 50.0, 2.0, True), ("exact", 50.0, 1.0, False),
    ],
)  # fmt: skip
def test_of_equal_scores_the_smaller_loss_is_better(metric: str, value: float, loss: float, better: bool) -> None:
    assert Validation(1.0, {"exact": 50.0}).better_than(value, loss, metric) == better


def test_steps_end_a_run_and_more_steps_go_on(tmp_path: Path) -> None:
    assert run(tmp_path, train__steps=10).reason == "10 steps done (train.steps)"
    outcome = run(tmp_path, train__steps=15)
    assert (outcome.step, outcome.reason) == (15, "15 steps done (train.steps)")


def test_minutes_end_a_run(tmp_path: Path) -> None:
    outcome = run(tmp_path, train__steps=100_000, train__max_minutes=0.01)
    assert "minutes used" in outcome.reason and outcome.step < 100_000


def test_patience_ends_a_run(tmp_path: Path) -> None:
    settings = {"train__rate": 1e-30, "train__patience": 2, "train__validate_steps": 5, "train__metric": "bleu"}
    assert "train.patience" in run(tmp_path, **settings).reason


def test_time_makes_checkpoints_too(tmp_path: Path) -> None:
    seen: list[int] = []

    def look() -> bool:
        seen.extend(checkpoints.steps(tmp_path / "model" / "checkpoints"))
        return False

    run(tmp_path, stop=look, train__checkpoint_minutes=1e-9)
    assert 3 in seen


def test_a_finished_run_stays_finished(tmp_path: Path) -> None:
    run(tmp_path)
    stamp = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    assert run(tmp_path).validation is None
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == stamp


def test_the_average_is_kept_only_if_validation_prefers_it(tmp_path: Path) -> None:
    run(tmp_path)
    averaged = log_of(tmp_path / "model")[-1]
    best = min(line["valid_loss"] for line in log_of(tmp_path / "model") if "valid_perplexity" in line)
    kept = checkpoints.load_tensors(tmp_path / "model" / "model.safetensors")
    mean = checkpoints.average(tmp_path / "model" / "checkpoints", averaged["averaged"])
    same = all(torch.equal(kept[name], mean[name]) for name in mean)
    assert averaged["averaged"] == [30, 40]
    assert same == (averaged["valid_loss"] < best)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"train__rate": 0.02}, "train.rate 0.01 -> 0.02. Add --override"),
        ({"train__batch_tokens": 128}, "train.batch_tokens 256 -> 128"),
        ({"train__seed": 9}, "train.seed 1 -> 9"),
        ({"model__width": 64}, "model.width 32 -> 64. Train into a new folder"),
        ({"text__lowercase": "true"}, "text.lowercase False -> True. Train into a new folder"),
    ],
)
def test_changed_settings_are_refused_with_old_and_new(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    run(tmp_path, stop=after(3))
    with pytest.raises(ConfigError) as error:
        run(tmp_path, **change)
    assert says in str(error.value)


def test_changed_settings_can_be_overridden(tmp_path: Path) -> None:
    run(tmp_path, stop=after(3))
    outcome = regard.train(
        write_digits(tmp_path, 120), tmp_path / "model", settings={**QUICK, "train.rate": 0.02}, override=True
    )
    assert outcome.step == 40


def test_changed_text_is_refused(tmp_path: Path) -> None:
    run(tmp_path, stop=after(3))
    with pytest.raises(ConfigError, match="The text is not the one"):
        regard.train(write_digits(tmp_path, 119), tmp_path / "model", settings=QUICK)


def test_a_stranger_s_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").write_text("ten years of work")
    with pytest.raises(FolderError, match=r"thesis\.txt"):
        run(tmp_path)
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("made", [False, True])
def test_text_that_cannot_be_read_leaves_no_new_folder_behind(tmp_path: Path, made: bool) -> None:
    if made:
        (tmp_path / "model").mkdir()
    with pytest.raises(DataError, match=r"nowhere\.en"):
        regard.train([str(tmp_path / "nowhere.en"), str(tmp_path / "nowhere.fr")], tmp_path / "model", settings=QUICK)
    assert (tmp_path / "model").exists() == made


def test_a_second_trainer_on_the_folder_is_refused(tmp_path: Path) -> None:
    run(tmp_path, stop=after(3))
    with locked(tmp_path / "model" / ".lock"), pytest.raises(BusyError):
        run(tmp_path)


def test_a_damaged_checkpoint_costs_steps_not_the_result(tmp_path: Path) -> None:
    run(tmp_path, "whole")
    run(tmp_path, "pieces", stop=after(25))
    newest = max((tmp_path / "pieces" / "checkpoints").glob("step-*")) / "weights.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    run(tmp_path, "pieces")
    assert (tmp_path / "whole" / "model.safetensors").read_bytes() == (
        tmp_path / "pieces" / "model.safetensors"
    ).read_bytes()


def test_a_finished_model_without_checkpoints_is_not_trained_anew(tmp_path: Path) -> None:
    run(tmp_path)
    for path in sorted((tmp_path / "model" / "checkpoints").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(FolderError, match="no checkpoints to go on from"):
        run(tmp_path, train__steps=50)


def test_a_step_that_is_not_finite_is_told_with_step_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Learner.update

    def poisoned(self: Learner, batches: list[Any], step: int, rate: float) -> Any:
        if step == 12:
            self.model.words.weight.data[5] = float("nan")
        return original(self, batches, step, rate)

    monkeypatch.setattr(Learner, "update", poisoned)
    with pytest.raises(TrainingError, match=r"Step 12 was not made.*lines \d+, \d+.*train.rate"):
        run(tmp_path)
    stored = checkpoints.load_tensors(tmp_path / "model" / "checkpoints" / "step-00000010" / "weights.safetensors")
    assert all(tensor.isfinite().all() for tensor in stored.values())


class Notes(Display):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_what_is_held_out_is_said_and_never_trained_on(tmp_path: Path) -> None:
    notes = Notes()
    config = read(parse_set(f"{k}={v}" for k, v in {**QUICK, "train.steps": 2}.items()))
    train(write_digits(tmp_path, 120), tmp_path / "model", config, display=notes)
    assert any("held out 12 of 120 pairs" in note for note in notes.notes)


def test_long_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    notes = Notes()
    source, target = write_digits(tmp_path, 120)
    Path(source).write_text(Path(source).read_text() + "1 " * 50 + "\n")
    Path(target).write_text(Path(target).read_text() + "one " * 50 + "\n")
    config = read(parse_set(f"{k}={v}" for k, v in {**QUICK, "train.steps": 2, "text.longest": 10}.items()))
    train([source, target], tmp_path / "model", config, valid=[source, target], display=notes)
    assert any("left out 1 pairs longer than 10 tokens" in note for note in notes.notes)


def test_the_model_card_says_what_is_in_the_folder(tmp_path: Path) -> None:
    run(tmp_path)
    card = (tmp_path / "model" / "README.md").read_text()
    about = json.loads((tmp_path / "model" / "config.json").read_text())["about"]
    assert "regard translate" in card and f"{about['parameters']:,}" in card and "train.num" in card


def test_python_refuses_what_the_command_refuses(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"Did you mean train\.steps"):
        regard.train(write_digits(tmp_path), tmp_path / "model", settings={"train.stepz": 3})
