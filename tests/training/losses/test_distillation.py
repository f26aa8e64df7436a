"""Learning the probabilities of teachers: the loss is the one of the paper, and they are asked once."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import regard
from conftest import QUICK, WRITERS, small, write_digits
from regard.config import parse_set, read
from regard.decode.ensemble import Ensemble
from regard.errors import ConfigError
from regard.experiments.synthetic import Models, distill
from regard.models import build
from regard.models.base import Source, Writer
from regard.text.batching.batch import Pairs, make_pairs
from regard.text.tokenizers.tokenizer import PAD
from regard.training.losses import distillation
from regard.training.losses.cross_entropy import pairs_loss
from regard.training.losses.distillation import Teacher, taught

WORDS, SMOOTHING = 12, 0.1
BATCH = make_pairs([[5, 6, 7], [6, 7], [9]], [[8, 9], [9, 8, 7], [5]], [0, 1, 2])


def teacher(name: str = "transformer") -> Writer:
    torch.manual_seed(1)
    model = build(small(name).model, WORDS)
    assert isinstance(model, Writer)
    return model


def scores(model: Writer, batch: Pairs) -> torch.Tensor:
    """For each word of the batch's targets."""
    output = model(Source(batch.source_BS, batch.source_lengths_B), batch.target_BT[:, :-1])
    return model.words(output.hidden_BTW)[batch.target_BT[:, 1:] != PAD]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", WRITERS)
def test_the_loss_is_cross_entropy_with_probabilities_for_answers(name: str, share: float) -> None:
    torch.manual_seed(2)
    model = build(small(name).model, WORDS).train()
    assert isinstance(model, Writer)
    ours = taught(Teacher(teacher()), share)(model, BATCH, SMOOTHING, ()).total
    with torch.no_grad():
        wanted = scores(teacher().eval(), BATCH).softmax(-1)
    label = BATCH.target_BT[:, 1:][BATCH.target_BT[:, 1:] != PAD]
    smoothed = (1 - SMOOTHING) * F.one_hot(label, WORDS) + SMOOTHING / WORDS
    output = model(Source(BATCH.source_BS, BATCH.source_lengths_B), BATCH.target_BT[:, :-1])
    answers = (1 - share) * smoothed + share * wanted
    theirs = F.cross_entropy(scores(model, BATCH), answers, reduction="sum")
    theirs = theirs if output.extra_loss is None else theirs + output.extra_loss
    assert_close(ours, theirs, atol=2e-3, rtol=1e-3)  # probabilities are kept with three digits
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    gradients = [torch.autograd.grad(loss, weights, allow_unused=True) for loss in (ours, theirs)]
    for one, other in zip(*gradients, strict=True):
        if one is not None:
            assert_close(one, other, atol=2e-3, rtol=1e-2)


def test_bfloat16_stays_close_to_float32() -> None:
    model = teacher("conv").train()
    full = taught(Teacher(teacher()), 0.5)(model, BATCH, SMOOTHING, ()).total
    with torch.autocast("cpu", torch.bfloat16):
        half = taught(Teacher(teacher()), 0.5)(model, BATCH, SMOOTHING, ()).total
    assert_close(half, full, rtol=0.02, atol=0.0)


def test_several_teachers_are_averaged() -> None:
    members = [teacher("transformer"), teacher("conv")]
    likely, probabilities = Teacher(Ensemble(members)).likely(BATCH)
    with torch.no_grad():
        mean = sum((scores(member.eval(), BATCH).softmax(-1) for member in members), torch.zeros(())) / 2
    assert_close(probabilities, mean.gather(1, likely), atol=1e-3, rtol=1e-3)


def test_what_is_unlikely_is_left_away_and_the_rest_sums_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "LIKELY", 3)
    likely, probabilities = Teacher(teacher()).likely(BATCH)
    assert likely.shape == probabilities.shape == (9, 3)
    assert_close(probabilities.sum(1), torch.ones(9), atol=1e-3, rtol=0.0)
    with torch.no_grad():
        assert torch.equal(likely, scores(teacher().eval(), BATCH).topk(3).indices)


def asked(monkeypatch: pytest.MonkeyPatch, *batches: Pairs) -> list[int]:
    """How many pairs a teacher reads each time it does, if it is asked for these batches one after the other."""
    times: list[int] = []
    whole = Teacher._asked
    monkeypatch.setattr(Teacher, "_asked", lambda self, batch: times.append(len(batch.numbers)) or whole(self, batch))
    one = Teacher(teacher())
    for batch in batches:
        found, fresh = one.likely(batch), Teacher(teacher())
        for ours, theirs in zip(found, whole(fresh, batch), strict=True):
            assert_close(ours, theirs.to(ours.dtype), atol=2e-3, rtol=1e-3)
    return times


OTHER_ORDER = make_pairs([[9], [5, 6, 7]], [[5], [8, 9]], [2, 0])
TWICE = make_pairs([[9], [9]], [[5], [5]], [2, 3])
OTHER_CUT = make_pairs([[5, 6, 7]], [[8, 5, 9]], [0])


def test_a_pair_is_asked_for_once_whatever_stands_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, BATCH, OTHER_ORDER, TWICE, BATCH) == [3]


def test_only_the_pairs_of_a_batch_that_are_not_known_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, OTHER_ORDER, BATCH, TWICE, BATCH) == [2, 1]
    assert asked(monkeypatch, TWICE, BATCH) == [1, 2]


def test_a_pair_that_is_cut_otherwise_is_another_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, BATCH, OTHER_CUT) == [3, 1]


def test_what_is_too_much_to_remember_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "_REMEMBERED", 1)
    assert asked(monkeypatch, BATCH, BATCH) == [3, 2]


def test_validation_asks_no_teacher() -> None:
    model = teacher().eval()
    assert_close(taught(Teacher(teacher()), 0.5)(model, BATCH, 0.0, ()).total, pairs_loss(model, BATCH, 0.0).total)


def test_a_batch_that_others_learn_asks_no_teacher_and_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Teacher, "_asked", lambda *_: pytest.fail("it was asked"))
    loss = taught(Teacher(teacher()), 0.5)(teacher().train(), BATCH.emptied(), SMOOTHING, ()).total
    assert float(loss.detach()) == 0.0


def settings(**more: Any) -> dict[str, Any]:
    return {**QUICK, "train.steps": 60, "train.soft": 0.5} | {
        key.replace("__", "."): value for key, value in more.items()
    }


def test_a_smaller_student_learns_with_the_words_of_its_teachers(tmp_path: Path) -> None:
    data = write_digits(tmp_path, 120)
    for seed in (1, 2):
        regard.train(data, tmp_path / f"{seed}", settings={**QUICK, "train.seed": seed, "train.steps": 60})
    config = read(parse_set(f"{key}={value}" for key, value in settings(model__width=16, text__vocabulary=99).items()))
    teachers = Models(folders=[tmp_path / "1", tmp_path / "2"], engine="torch")
    outcome = distill(teachers, data, tmp_path / "student", config)
    assert outcome.validation is not None and outcome.validation.loss < 2.2  # one of ten words or an end: 2.4
    ours, theirs = (regard.load(tmp_path / name).tokenizer.as_bytes() for name in ("student", "1"))
    assert ours == theirs


def test_what_cannot_be_said(tmp_path: Path) -> None:
    data = write_digits(tmp_path, 40)
    with pytest.raises(ConfigError, match="regard distill"):
        regard.train(data, tmp_path / "model", settings=settings())
    with pytest.raises(ConfigError, match="different losses"):
        regard.train(data, tmp_path / "model", settings=settings(train__rdrop=1))
    for name, words in (("one", "words"), ("two", "characters")):
        regard.train(data, tmp_path / name, settings={**QUICK, "train.steps": 1, "text.tokenizer": words})
    config = read(parse_set(f"{key}={value}" for key, value in settings().items()))
    with pytest.raises(ConfigError, match="not those of"):
        distill(Models(folders=[tmp_path / "one"]), data, tmp_path / "to", config, start=tmp_path / "two")
