"""Recurrent language models against torch's layers, their equations, and what it means to carry a state on."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from one_row import VOCABULARY, logits, nothing, step_by_step, text
from regard.config import GruConfig, LstmConfig, RecurrentConfig, RnnConfig
from regard.models.base import Source
from regard.models.rnn import RecurrentLm
from regard.training.losses.label_smoothing import smoothed_cross_entropy

WIDTH = 16
CONFIGS: dict[str, type[RecurrentConfig]] = {"rnn": RnnConfig, "lstm": LstmConfig, "gru": GruConfig}
THEIRS: dict[str, type[nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
close = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(params=CONFIGS)
def cell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(cell: str) -> RecurrentLm:
    return small(cell).eval()


def small(cell: str, **settings: Any) -> RecurrentLm:
    return RecurrentLm(CONFIGS[cell](**{"width": WIDTH, "depth": 2, "dropout": 0.0, **settings}), VOCABULARY)


def loss_of(model: RecurrentLm, row_BT: Tensor) -> Tensor:
    hidden = model(nothing(len(row_BT)), row_BT[:, :-1]).hidden_BTW
    return smoothed_cross_entropy(hidden.flatten(0, 1), model.words.weight, row_BT[:, 1:].flatten(), 0.0)


# Against torch and the equations


def test_it_is_torchs_layers_over_word_vectors(cell: str, model: RecurrentLm) -> None:
    theirs = THEIRS[cell](WIDTH, WIDTH, num_layers=2, batch_first=True)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    with torch.no_grad():
        for number, layer in enumerate(model.layers):
            for name, parameter in layer.named_parameters():
                parameter.copy_(getattr(theirs, name.replace("l0", f"l{number}")))
    row = text(3, 7)
    x = nn.functional.embedding(row, model.embedding.table.weight) * WIDTH**0.5
    hidden, last = theirs(x)
    output = model(nothing(3), row)
    assert_close(output.hidden_BTW, hidden, **close)
    expected = last if isinstance(last, tuple) else (last,)
    assert len(output.carried) == len(expected)
    for ours, part_LBW in zip(output.carried, expected, strict=True):
        assert_close(ours, part_LBW, **close)


def test_it_computes_the_equations(cell: str) -> None:
    """In NumPy, one layer, one text, gate by gate."""
    model = small(cell, depth=1, width=4).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    p = {name: parameter.detach().double().numpy() for name, parameter in model.layers[0].named_parameters()}
    table = model.embedding.table.weight.detach().double().numpy()
    row, h, c = text(1, 5), np.zeros(4), np.zeros(4)

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    found = logits(model, nothing(1), row)[0].double()
    for word, logits_V in zip(row[0].tolist(), found, strict=True):
        read = (p["weight_ih_l0"] @ (2 * table[word]) + p["bias_ih_l0"]).reshape(-1, 4)
        again = (p["weight_hh_l0"] @ h + p["bias_hh_l0"]).reshape(-1, 4)
        if cell == "rnn":
            h = np.tanh(read[0] + again[0])
        elif cell == "lstm":
            take, keep, new, show = read + again
            c = sigmoid(keep) * c + sigmoid(take) * np.tanh(new)
            h = sigmoid(show) * np.tanh(c)
        else:
            reset, keep = sigmoid(read[:2] + again[:2])
            h = keep * h + (1 - keep) * np.tanh(read[2] + reset * again[2])
        assert_close(logits_V, torch.tensor(table @ h), **close)


# What is carried on


def test_a_text_in_pieces_is_the_text_read_whole(model: RecurrentLm) -> None:
    row, carried, pieces = text(3, 10), (), []
    whole = model(nothing(3), row)
    for piece in row.split([4, 1, 5], 1):
        output = model(nothing(3), piece, carried=carried)
        carried = output.carried
        pieces.append(output.hidden_BTW)
    assert_close(torch.cat(pieces, 1), whole.hidden_BTW, **close)
    assert_close(carried, whole.carried, **close)
    alone = model(nothing(3), row[:, 5:]).hidden_BTW
    assert (alone - whole.hidden_BTW[:, 5:]).abs().max() > 0.01, "what was carried makes no difference"


def test_no_gradient_goes_back_into_an_earlier_piece(cell: str) -> None:
    model = small(cell, tie=False)
    first, second = torch.arange(4, 10)[None], torch.arange(10, 16)[None]
    model(nothing(1), torch.cat([first, second], 1)).hidden_BTW[:, 6:].sum().backward()
    felt_VW = model.embedding.table.weight.grad
    assert felt_VW[4:10].norm(dim=1).min() > 0
    model.zero_grad()
    carried = model(nothing(1), first).carried
    assert not any(part.requires_grad for part in carried)
    model(nothing(1), second, carried=carried).hidden_BTW.sum().backward()
    felt_VW = model.embedding.table.weight.grad
    assert felt_VW[4:10].abs().max() == 0
    assert felt_VW[10:16].norm(dim=1).min() > 0


def test_rows_carry_their_own_state(model: RecurrentLm) -> None:
    first, second = text(3, 4), text(3, 4)
    together = model(nothing(3), second, carried=model(nothing(3), first).carried).hidden_BTW
    for row in range(3):
        carried = model(nothing(1), first[row : row + 1]).carried
        assert_close(model(nothing(1), second[row : row + 1], carried=carried).hidden_BTW[0], together[row], **close)


def test_what_is_carried_is_float32_whatever_the_products_are_in(cell: str, model: RecurrentLm) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        carried = model(nothing(3), text(3, 4)).carried
    assert [(part.dtype, tuple(part.shape)) for part in carried] == [(torch.float32, (2, 3, WIDTH))] * (
        2 if cell == "lstm" else 1
    )
    model(nothing(3), text(3, 4), carried=carried)


# How it begins and learns


def test_layers_begin_by_keeping_what_they_read(cell: str, model: RecurrentLm) -> None:
    gates = {"rnn": 1, "lstm": 4, "gru": 3}[cell]
    for layer in model.layers:
        _, again_GW, bias_G, again_bias_G = layer.all_weights[0]
        for gate_WW in again_GW.chunk(gates):
            assert_close(gate_WW @ gate_WW.T, torch.eye(WIDTH), **close)
        bias = (bias_G + again_bias_G).view(gates, -1)
        assert bias.mean(1).tolist() == ([0, 1, 0, 0] if cell == "lstm" else [0] * gates)


def test_word_vectors_are_shared_as_told(cell: str) -> None:
    shared, own = small(cell), small(cell, tie=False)
    assert shared.words.weight is shared.embedding.table.weight
    assert own.words.weight is not own.embedding.table.weight


def test_dropout_is_a_function_of_the_seed_and_of_training(cell: str) -> None:
    model, row = small(cell, dropout=0.5), text(3, 8)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(loss_of(model, row).item())
    assert found[0] == found[1] != found[2]
    model.eval()
    assert loss_of(model, row) == loss_of(model, row)


def test_dropout_falls_on_words_between_layers_and_at_the_top(cell: str) -> None:
    model = small(cell, dropout=0.5, depth=3)
    asked: list[tuple[int, ...]] = []
    for part in (model.dropout, model.embedding.dropout):
        part.register_forward_hook(lambda _module, given, _made: asked.append(tuple(given[0].shape)))
    model(nothing(2), text(2, 5))
    assert asked == [(2, 5, WIDTH)] * 4  # the embedding, twice between three layers, the top


def test_a_step_in_bfloat16_stays_close_to_float32(model: RecurrentLm) -> None:
    row, gradients = text(3, 7), []
    for rounded in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=rounded):
            loss = loss_of(model, row)
            stepped = step_by_step(model, Source(row, torch.tensor([7, 3, 0])), row)
        loss.backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        assert stepped.isfinite().all()
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99


@pytest.mark.parametrize("carries", [True, False])
def test_a_rhythm_longer_than_the_pieces_is_learned_if_the_state_is_carried(cell: str, carries: bool) -> None:
    """Pieces of four words out of a text that repeats after six: the first word alone does not tell the second."""
    row = torch.tensor([4, 4, 4, 5, 5, 5]).repeat(1, 240)
    model, carried, wrong = small(cell, depth=1), (), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for first in range(0, row.shape[1] - 4, 4):
        piece = row[:, first : first + 5]
        output = model(nothing(1), piece[:, :-1], carried=carried)
        carried = output.carried if carries else ()
        scores_TV, next_T = model.words(output.hidden_BTW)[0], piece[0, 1:]
        wrong.append(int((scores_TV.argmax(-1) != next_T).sum()))
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores_TV, next_T).backward()
        optimizer.step()
    if carries:
        assert sum(wrong[-30:]) == 0
    else:
        assert sum(wrong[-30:]) >= 10  # of every three pieces, two begin alike and go on differently
