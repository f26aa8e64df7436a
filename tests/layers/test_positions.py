"""Positions counted from a random number in training: where each text then begins, and that nothing else changes."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from conftest import VOCABULARY, small
from regard.errors import ConfigError, DataError
from regard.layers.positions import Learned, Sinusoidal, sinusoids, vectors
from regard.models import build
from regard.models.base import Source, Writer

BOTH = ["transformer", "universal"]
PLAIN: dict[str, Any] = {"dropout": 0.0}


def made(name: str, **settings: Any) -> Writer:
    torch.manual_seed(3)
    model = build(small(name, **{**PLAIN, **settings}).model, VOCABULARY)
    assert isinstance(model, Writer)
    return model


def pairs(rows: int, read: int = 5, written: int = 6) -> tuple[Source, Tensor]:
    ids_BS = torch.randint(4, VOCABULARY, (rows, read), generator=torch.Generator().manual_seed(1))
    target_BT = torch.randint(4, VOCABULARY, (rows, written), generator=torch.Generator().manual_seed(2))
    return Source(ids_BS, torch.full((rows,), read)), target_BT


def beginnings(model: Writer, rows: int, **lengths: int) -> list[Any]:
    """Where the texts of one batch were said to begin: what the source was told, and what the target was."""
    told: list[Any] = []
    if hasattr(model, "halting"):
        hooks = [part.register_forward_pre_hook(lambda _, given: told.append(given[-1])) for part in model.children()]
    else:
        hooks = [model.source_embedding.register_forward_pre_hook(lambda _, given: told.append(given[1]))]
    source, target_BT = pairs(rows, **lengths)
    model(source, target_BT)
    for hook in hooks:
        hook.remove()
    return [first for first in told if isinstance(first, int) or first.dim() == 1]


def test_a_row_that_begins_elsewhere_has_the_vectors_of_there() -> None:
    first_B = torch.tensor([0, 7, 300])
    waves = sinusoids(310, 16)
    assert vectors(Sinusoidal(16), 7, 5).equal(waves[7:12])
    assert vectors(Sinusoidal(16), first_B, 5).equal(torch.stack([waves[n : n + 5] for n in (0, 7, 300)]))
    learned = Learned(16, 305)
    assert vectors(learned, first_B, 5).equal(torch.stack([learned.table.weight[n : n + 5] for n in (0, 7, 300)]))


@pytest.mark.parametrize("name", BOTH)
def test_each_pair_begins_at_a_number_of_its_own_and_the_same_on_both_sides(name: str) -> None:
    source, target = beginnings(made(name, offset=7).train(), rows=400)
    assert source.equal(target)
    assert set(source.tolist()) == set(range(8))


@pytest.mark.parametrize("name", BOTH)
def test_only_training_moves_positions(name: str) -> None:
    model, plain = made(name, offset=9).eval(), made(name).eval()
    assert beginnings(model, rows=3) == [0, 0]
    source, target_BT = pairs(3)
    whole = model(source, target_BT).hidden_BTW
    assert whole.equal(plain(source, target_BT).hidden_BTW)
    state = model.start(source)
    for t in range(target_BT.shape[1]):
        logits, state = model.step(target_BT[:, t], state)
        assert_close(logits, model.words(whole[:, t]), atol=1e-5, rtol=1e-4)
    assert not model.train()(source, target_BT).hidden_BTW.allclose(whole)


@pytest.mark.parametrize("name", BOTH)
def test_without_an_offset_nothing_is_drawn(name: str) -> None:
    model, before = made(name).train(), torch.get_rng_state()
    model(*pairs(3))
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("name", BOTH)
def test_the_same_seed_draws_the_same(name: str) -> None:
    model = made(name, offset=50).train()
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(model(*pairs(4)).hidden_BTW)
    assert outputs[0].equal(outputs[1]) and not outputs[0].allclose(outputs[2])


def test_a_moved_pair_is_read_as_if_the_table_of_positions_began_there() -> None:
    model, plain = made("transformer", offset=20).train(), made("transformer").eval()
    source, target_BT = pairs(6)
    torch.manual_seed(11)
    moved = model(source, target_BT).hidden_BTW
    torch.manual_seed(11)
    for row, first in enumerate(torch.randint(21, (6,)).tolist()):
        plain.source_embedding.positions.table = sinusoids(64, 16)[first:]
        alone = plain(Source(source.ids_BS[row, None], source.lengths_B[row, None]), target_BT[row, None])
        assert_close(alone.hidden_BTW[0], moved[row], atol=1e-5, rtol=1e-4)


def test_every_repetition_of_a_moved_pair_begins_at_the_same_place() -> None:
    model, plain = made("universal", offset=20).train(), made("universal").eval()
    source, target_BT = pairs(6)
    torch.manual_seed(11)
    moved = model(source, target_BT).hidden_BTW
    torch.manual_seed(11)
    for row, first in enumerate(torch.randint(21, (6,)).tolist()):
        for part in (plain.encoder, plain.decoder):
            part.place = lambda x, n, _, part=part, first=first: type(part).place(part, x, n, first)
        alone = plain(Source(source.ids_BS[row, None], source.lengths_B[row, None]), target_BT[row, None])
        assert_close(alone.hidden_BTW[0], moved[row], atol=1e-5, rtol=1e-4)


def test_a_repetition_of_a_moved_pair_is_told_where_it_stands() -> None:
    encoder, x, waves = made("universal", offset=20).encoder, torch.randn(2, 3, 16), sinusoids(30, 16)
    placed = encoder.place(x, 3, torch.tensor([9, 0]))
    assert_close(placed - x, torch.stack([waves[9:12], waves[:3]]) + waves[4])


def test_learned_positions_are_moved_no_farther_than_there_are_any() -> None:
    model = made("transformer", positions="learned", longest=12, offset=11).train()
    source, target = beginnings(model, rows=300, read=5, written=8)
    assert source.equal(target) and set(source.tolist()) == set(range(5))
    model(*pairs(300, 5, 8)).hidden_BTW.square().sum().backward()
    assert model.source_embedding.positions.table.weight.grad.abs().sum(1).gt(0).all()
    model(*pairs(2, 5, 12))
    with pytest.raises(DataError, match="13 tokens"):
        model(*pairs(2, 5, 13))


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"offset": 40, "positions": "relative"}, "model.offset=0"),
        ({"offset": 64, "positions": "learned", "longest": 64}, "model.longest"),
        ({"offset": -1}, "model.offset"),
    ],
    ids=str,
)
def test_offsets_that_mean_nothing_are_refused(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small("transformer", **settings)
    assert part in str(caught.value)
    small("transformer", **{**settings, "offset": 0})
