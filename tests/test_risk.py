"""Minimum risk training: the risk is the mean that the paper has, and a model learns to write what is better."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import regard
from conftest import QUICK, WRITERS, small, write_digits
from regard.errors import ConfigError
from regard.models import build
from regard.models.interface import Source, Writer
from regard.text.batch import Pairs, make_pairs
from regard.text.tokenizer import BEGIN, END
from regard.training.loss import pairs_loss
from regard.training.risk import Written, at_risk, expected_risk

WORDS, SMOOTHING = 12, 0.1
BATCH = make_pairs([[5, 6, 7], [6, 7], [9]], [[8, 9], [9, 8, 7], [5]], [0, 1, 2])
# Texts of different lengths, an empty one too, and not equally many for each source.
WRITTEN: list[Written] = [
    [([8, 9], 0.0), ([8], 0.25), ([], 1.0)],
    [([9, 8, 7, 7], 0.5), ([9, 8, 7], 0.125)],
    [([6, 5], 0.75)],
]


def model_of(name: str, **settings: Any) -> Writer:
    torch.manual_seed(1)
    model = build(small(name, **settings).model, WORDS)
    assert isinstance(model, Writer)
    return model.train()


def by_hand(model: Writer, batch: Pairs, written: list[Written]) -> list[torch.Tensor]:
    """One text at a time, word after word."""
    risks = []
    for number, texts in enumerate(written):
        length = int(batch.source_lengths_B[number])
        source = Source(batch.source_BS[number : number + 1, :length], torch.tensor([length]))
        means = []
        for ids, _ in texts:
            hidden = model(source, torch.tensor([[BEGIN, *ids]])).hidden_BTW[0]
            words = model.words(hidden).log_softmax(-1)
            means.append(torch.stack([words[place, word] for place, word in enumerate([*ids, END])]).mean())
        shares = torch.stack(means).softmax(0)
        risks.append(sum(share * wrong for share, (_, wrong) in zip(shares, texts, strict=True)))
    return risks  # type: ignore[return-value]


@pytest.mark.parametrize("name", WRITERS)
def test_the_risk_is_the_mean_error_and_likely_texts_count_more(name: str) -> None:
    model = model_of(name)
    ours, theirs = expected_risk(model, BATCH, WRITTEN), torch.stack(by_hand(model, BATCH, WRITTEN))
    assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    both = [torch.autograd.grad(risk.sum(), weights, allow_unused=True) for risk in (ours, theirs)]
    for one, other in zip(*both, strict=True):
        if other is not None:
            assert_close(one, other, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("name", WRITERS)
def test_it_comes_beside_cross_entropy_in_training_alone(name: str) -> None:
    model = model_of(name)
    objective = at_risk(lambda *_: WRITTEN, 3.0)
    words = BATCH.target_lengths_B - 1
    wanted = pairs_loss(model, BATCH, SMOOTHING).total + 3 * (expected_risk(model, BATCH, WRITTEN) * words).sum()
    assert_close(objective(model, BATCH, SMOOTHING, ()).total, wanted)
    model.eval()
    assert_close(objective(model, BATCH, SMOOTHING, ()).total, pairs_loss(model, BATCH, SMOOTHING).total)


def test_texts_that_are_equally_wrong_teach_nothing() -> None:
    model = model_of("transformer")
    same: list[Written] = [[(ids, 0.4) for ids, _ in texts] for texts in WRITTEN]
    expected_risk(model, BATCH, same).sum().backward()
    assert all(parameter.grad is None or parameter.grad.abs().max() < 1e-6 for parameter in model.parameters())


@pytest.mark.parametrize("name", WRITERS)
def test_the_better_text_becomes_the_likelier_one(name: str) -> None:
    model = model_of(name)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = float(expected_risk(model, BATCH, WRITTEN)[:2].sum().detach())
    for _ in range(15):
        optimizer.zero_grad()
        expected_risk(model, BATCH, WRITTEN).sum().backward()
        optimizer.step()
    assert float(expected_risk(model, BATCH, WRITTEN)[:2].sum().detach()) < before - 0.05


def test_a_batch_that_others_learn_costs_nothing() -> None:
    loss = at_risk(lambda *_: WRITTEN, 3.0)(model_of("transformer"), BATCH.emptied(), SMOOTHING, ()).total
    assert float(loss.detach()) == 0.0


def test_a_whole_run_goes_on_with_it(tmp_path: Path) -> None:
    data = write_digits(tmp_path, 120)
    regard.train(data, tmp_path / "begun", settings={**QUICK, "train.steps": 60})
    train = {key: value for key, value in QUICK.items() if key.startswith("train.")}
    settings = {**train, "train.risk": 10, "train.candidates": 4}
    regard.train(data, tmp_path / "model", start=tmp_path / "begun", settings=settings)
    before, after = (regard.score(tmp_path / name, data, beam=1).scores["bleu"].value for name in ("begun", "model"))
    assert after > before + 5


def test_what_cannot_use_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("It was a dark night.\n" * 20)
    with pytest.raises(ConfigError, match="learn from pairs, to write"):
        regard.train(tmp_path / "book.txt", tmp_path / "lm", model="lm", settings={"train.risk": 1})
    with pytest.raises(ConfigError, match=r"train.rdrop 1 and train.risk 2 are different losses"):
        regard.train("builtin:copy", tmp_path / "both", settings={"train.rdrop": 1, "train.risk": 2})
