"""The recurrent models against torch's layers, the papers' equations, and what each must be able to learn."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regard.config import BahdanauConfig, LuongConfig, Seq2SeqConfig
from regard.models.base import Source
from regard.models.seq2seq import SCORES, Additive, Bahdanau, Cells, Encoder, Luong, Recurrent, Seq2Seq, Stack
from regard.training.losses.label_smoothing import smoothed_cross_entropy

WIDTH, VOCABULARY = 16, 20
FORMS: list[tuple[type[Recurrent], type[Seq2SeqConfig], dict[str, Any]]] = [
    (Seq2Seq, Seq2SeqConfig, {}),
    (Bahdanau, BahdanauConfig, {}),
    *(
        (Luong, LuongConfig, {"score": score, "input_feeding": feeding})
        for score, feeding in product(["dot", "general", "concat"], [True, False])
    ),
]
VARIANTS = [
    (model, kind(width=WIDTH, dropout=0.0, cell=cell, bidirectional=both, **settings))  # type: ignore[arg-type]
    for (model, kind, settings), cell, both in product(FORMS, ["lstm", "gru"], [True, False])
]
THREE = [(Seq2Seq, Seq2SeqConfig), (Bahdanau, BahdanauConfig), (Luong, LuongConfig)]
close = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(params=VARIANTS, ids=lambda v: f"{v[1]}".replace("Config", ""))
def model(request: pytest.FixtureRequest) -> Recurrent:
    model, config = request.param
    return model(config, VOCABULARY).eval()


@pytest.fixture(params=THREE, ids=lambda three: three[0].__name__)
def three(request: pytest.FixtureRequest) -> Any:
    """Makes each of the three models, with these settings."""
    model, config = request.param
    return lambda vocabulary=VOCABULARY, **settings: model(config(**settings), vocabulary)


def source(*lengths: int, size: int = 0) -> Source:
    ids = torch.randint(4, VOCABULARY, (len(lengths), size or max(lengths)))
    lengths_B = torch.tensor(lengths)
    return Source(ids.masked_fill(torch.arange(ids.shape[1]) >= lengths_B[:, None], 0), lengths_B)


def target(rows: int = 3, length: int = 6) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, length))


def loss_of(model: Recurrent, read: Source, written: Tensor) -> Tensor:
    hidden = model(read, written[:, :-1]).hidden_BTW.flatten(0, 1)
    return smoothed_cross_entropy(hidden, model.words.weight, written[:, 1:].flatten(), 0.0)


def disturb(module: nn.Module) -> None:
    """Biases that are all alike would hide a gate in another's place."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)


# Against torch


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("both", [True, False])
def test_the_encoder_is_torchs_layers(cell: Any, both: bool) -> None:
    ours = Encoder(Seq2SeqConfig(width=WIDTH, depth=3, cell=cell, bidirectional=both)).eval()
    kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
    theirs = kind(WIDTH, WIDTH // (1 + both), num_layers=3, batch_first=True, bidirectional=both)
    disturb(theirs)
    copy_layers(ours, theirs)
    x = torch.randn(4, 7, WIDTH)
    memory, ends = ours(x, torch.full((4,), 7))
    expected, last = theirs(x)
    assert_close(memory, expected, **close)
    for part, theirs_NBW in enumerate(last if cell == "lstm" else [last]):
        by_layer = theirs_NBW.view(3, 1 + both, 4, -1).transpose(1, 2).flatten(2)
        assert_close(torch.stack([end[part] for end in ends]), by_layer, **close)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("both", [True, False])
def test_the_encoder_reads_and_learns_from_each_row_as_if_it_stood_alone(cell: Any, both: bool) -> None:
    encoder = Encoder(Seq2SeqConfig(width=WIDTH, depth=2, cell=cell, bidirectional=both)).eval()
    disturb(encoder)
    x, lengths = torch.randn(3, 6, WIDTH, requires_grad=True), torch.tensor([6, 2, 1])
    weighed = torch.randn(3, 6, WIDTH)  # so that no two places have the same gradient
    memory, ends = encoder(x, lengths)
    assert not memory[1, 2:].any()
    assert not memory[2, 1:].any()
    alone = [encoder(x[row : row + 1, :length], lengths[row : row + 1]) for row, length in enumerate(lengths)]
    for row, (length, (own, own_ends)) in enumerate(zip(lengths, alone, strict=True)):
        assert_close(memory[row, :length], own[0], **close)
        for end, own_end in zip(ends, own_ends, strict=True):
            assert_close([part[row] for part in end], [part[0] for part in own_end], **close)
    wanted = [x, *encoder.parameters()]
    together = torch.autograd.grad((memory * weighed).sum() + sum(part.sum() for end in ends for part in end), wanted)
    one_by_one = [
        (own * weighed[row, : own.shape[1]]).sum() + sum(part.sum() for end in own_ends for part in end)
        for row, (own, own_ends) in enumerate(alone)
    ]
    assert_close(together, torch.autograd.grad(torch.stack(one_by_one).sum(), wanted), **close)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_decoders_layers_are_torchs_whether_whole_or_word_by_word(cell: Any) -> None:
    config = Seq2SeqConfig(width=WIDTH, depth=2, cell=cell)
    stack, cells = Stack(config).eval(), Cells(config).eval()
    theirs = {"lstm": nn.LSTM, "gru": nn.GRU}[cell](WIDTH, WIDTH, num_layers=2, batch_first=True)
    disturb(theirs)
    copy_layers(stack, theirs)
    copy_cells(cells, theirs)
    x, first_LBW = torch.randn(3, 5, WIDTH), torch.randn(2, 3, WIDTH)
    expected, _ = theirs(x, (first_LBW, first_LBW) if cell == "lstm" else first_LBW)
    layers = [(first, first) if cell == "lstm" else (first,) for first in first_LBW]
    assert_close(stack(x, layers)[0], expected, **close)
    for t, (gates, kept) in enumerate(cells.prepare(x)):
        layers = cells(gates, torch.zeros(3, WIDTH), layers, kept)
        assert_close(layers[-1][0], expected[:, t], **close)


def copy_layers(ours: Encoder | Stack, theirs: nn.LSTM | nn.GRU) -> None:
    with torch.no_grad():
        for number, layer in enumerate(ours.layers):
            for name, parameter in layer.named_parameters():
                parameter.copy_(getattr(theirs, name.replace("l0", f"l{number}")))


def copy_cells(ours: Cells, theirs: nn.LSTM | nn.GRU) -> None:
    with torch.no_grad():
        for number, (words, again) in enumerate(zip(ours.inputs, ours.agains, strict=True)):
            for linear, name in ((words, "ih"), (again, "hh")):
                linear.weight.copy_(getattr(theirs, f"weight_{name}_l{number}"))
                linear.bias.copy_(getattr(theirs, f"bias_{name}_l{number}"))


# Against the papers


def test_additive_attention_is_the_papers_equation() -> None:
    score, s, h = Additive(WIDTH), torch.randn(WIDTH), torch.randn(5, WIDTH)
    w, u, v = (linear.weight.detach().double().numpy() for linear in (score.query, score.key, score.v))
    expected = [(v[0] * np.tanh(w @ s.numpy() + u @ h_j)).sum() for h_j in h.numpy()]
    found = score(s[None, None], score.key(h[None]))[0, 0]
    assert_close(found.detach().double(), torch.tensor(expected), **close)


@pytest.mark.parametrize("name", SCORES)
def test_luongs_scores_are_the_papers_equations(name: str) -> None:
    score, state, h = SCORES[name](WIDTH), torch.randn(WIDTH), torch.randn(5, WIDTH)
    weights = {key: p.detach().double().numpy() for key, p in score.named_parameters()}
    t = state.double().numpy()
    equations = {
        "dot": lambda s: t @ s,
        "general": lambda s: t @ weights["key.weight"] @ s,
        "concat": lambda s: (
            weights["v.weight"][0]
            @ np.tanh(np.hstack([weights["query.weight"], weights["key.weight"]]) @ np.hstack([t, s]))
        ),
    }
    found = score(state[None, None], score.key(h[None]))[0, 0]
    assert_close(found.detach().double(), torch.tensor([equations[name](s) for s in h.double().numpy()]), **close)


def test_what_bahdanau_writes_is_the_papers_equations() -> None:
    """One word by a GRU of one layer: look, read word and context together, and mix by maxout."""
    model = Bahdanau(BahdanauConfig(width=4, depth=1, cell="gru", dropout=0.0), VOCABULARY).eval()
    disturb(model)
    state = model.start(source(3))
    p = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    h, s, y = (x.detach().double().numpy() for x in (state.memory_BSW[0], state.layers[0][0][0], embedded(model, 7)))
    energy = np.tanh(p["score.query.weight"] @ s + h @ p["score.key.weight"].T) @ p["score.v.weight"][0]
    context = np.exp(energy) / np.exp(energy).sum() @ h
    read = p["decoder.inputs.0.weight"] @ y + p["decoder.inputs.0.bias"] + p["decoder.fed.weight"] @ context
    again = p["decoder.agains.0.weight"] @ s + p["decoder.agains.0.bias"]
    reset, keep = 1 / (1 + np.exp(-(read + again)[:8].reshape(2, 4)))
    s = keep * s + (1 - keep) * np.tanh(read[8:] + reset * again[8:])
    mixed = p["mix.weight"] @ np.hstack([s, y, context]) + p["mix.bias"]
    logits, _ = model.step(torch.tensor([7]), state)
    assert_close(
        logits[0].detach().double(),
        torch.tensor(p["words.weight"] @ mixed.reshape(2, 4).max(0)),
        **close,
    )


def embedded(model: Recurrent, word: int) -> Tensor:
    return model.target_embedding(torch.tensor([[word]]))[0, 0]


# The laws of the contract, in every form


def test_stepping_equals_reading_whole(model: Recurrent) -> None:
    read, written = source(5, 3, 4), target()
    whole = model.words(model(read, written).hidden_BTW)
    state = model.start(read)
    for t in range(written.shape[1]):
        logits, state = model.step(written[:, t], state)
        assert_close(logits, whole[:, t], **close)


def test_padding_changes_nothing_in_either_direction(model: Recurrent) -> None:
    read, written = source(5, 3, 4, size=9), target()
    together = model(read, written).hidden_BTW
    for row, length in enumerate([5, 3, 4]):
        alone = Source(read.ids_BS[row : row + 1, :length], torch.tensor([length]))
        assert_close(model(alone, written[row : row + 1]).hidden_BTW[0], together[row], **close)


def test_reordered_rows_go_on_as_the_rows_they_were(model: Recurrent) -> None:
    read, written, order = source(5, 3, 4), target(), torch.tensor([2, 2, 0, 1])
    _, state = model.step(written[:, 0], model.start(read, attention=True))
    plain, later = model.step(written[:, 1], state)
    reordered, later_reordered = model.step(written[order, 1], state.reorder(order))
    assert_close(reordered, plain[order])
    if later.attention_BS is not None:
        assert_close(later_reordered.attention_BS, later.attention_BS[order])
        assert_close(state.reorder(order).attention_BS, state.attention_BS[order])


def test_attention_sums_to_one_and_is_zero_where_there_is_no_word(model: Recurrent) -> None:
    read, written = source(5, 3, 4), target()
    seen = model(read, written, attention=True).attention
    assert list(seen) == ([] if isinstance(model, Seq2Seq) else ["decoder.source"])
    assert not model(read, written).attention
    state = model.start(read, attention=True)
    for weights_BHTS in seen.values():
        assert weights_BHTS.shape == (3, 1, 6, 5)
        assert_close(weights_BHTS.sum(-1), torch.ones(3, 1, 6))
        assert weights_BHTS[1, :, :, 3:].abs().max() == 0
        _, state = model.step(written[:, 0], state)
        assert_close(state.attention_BS, weights_BHTS[:, 0, 0])


def test_the_first_word_of_the_source_is_felt_by_the_last_of_the_target(model: Recurrent) -> None:
    felt = []
    model.source_embedding.register_forward_hook(lambda _m, _i, x_BSW: x_BSW.retain_grad() or felt.append(x_BSW))
    model(source(6, 4), target(2)).hidden_BTW[:, -1].pow(2).sum().backward()
    assert (felt[0].grad[:, 0].norm(dim=-1) > 0).all()
    assert felt[0].grad[1, 4:].abs().max() == 0, "padding was felt"


def test_recurrent_layers_begin_by_keeping_what_they_read(three: Any) -> None:
    weights = dict(three(width=WIDTH, cell="lstm").named_parameters())
    again = {name: p for name, p in weights.items() if "weight_hh" in name or ("agains" in name and p.dim() == 2)}
    assert len(again) == 6  # two layers: an encoder's in two directions, and a decoder's
    for name, again_GW in again.items():
        for gate in again_GW.chunk(4):
            assert_close(gate @ gate.T, torch.eye(len(gate)), **close)
        bias = weights[name.replace("weight_hh", "bias_ih").replace("agains", "inputs").replace(".weight", ".bias")]
        other = weights[name.replace("weight_hh", "bias_hh").replace("weight", "bias")]
        assert (bias + other).view(4, -1).mean(1).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_embeddings_are_shared_as_told(three: Any, tie: str) -> None:
    model = three(width=WIDTH, tie=tie)
    matrices = model.source_embedding.table.weight, model.target_embedding.table.weight, model.words.weight
    assert len({id(matrix) for matrix in matrices}) == {"all": 1, "target": 2, "none": 3}[tie]


# What they learn


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_step_in_bfloat16_stays_close_to_float32(three: Any, cell: str) -> None:
    model, read, written = three(width=32, cell=cell, dropout=0.0), source(5, 3, 4), target()
    gradients = []
    for enabled in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_of(model, read, written)
        loss.backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    exact, rounded = gradients
    assert rounded.isfinite().all()
    assert torch.cosine_similarity(exact, rounded, dim=0) > 0.99


def test_processors_without_bfloat16_take_such_a_step_too() -> None:
    """As older ones: oneDNN leaves newer instructions alone where it is told to, once for a process."""
    files = [str(Path(__file__).with_name(name)) for name in ("test_seq2seq.py", "test_rnn.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", "a_step_in_bfloat16"]
    older = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run(command, env=older, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_dropout_is_a_function_of_the_seed_and_of_training(three: Any) -> None:
    model, read, written = three(width=WIDTH, dropout=0.5), source(5, 3, 4), target()
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(loss_of(model, read, written).item())
    assert found[0] == found[1] != found[2]
    model.eval()
    assert loss_of(model, read, written) == loss_of(model, read, written)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_one_batch_can_be_memorised(three: Any, cell: str) -> None:
    model, read, written = three(width=WIDTH, cell=cell, dropout=0.0), source(5, 3, 4), target()
    learn(model, lambda: (read, written), steps=120, rate=0.02)
    assert model.words(model(read, written[:, :-1]).hidden_BTW).argmax(-1).equal(written[:, 1:])


def learn(model: Recurrent, batch: Any, steps: int, rate: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, 2 * (1 - step / steps))
        read, written = batch()
        hidden, labels = model(read, written[:, :-1]).hidden_BTW, written[:, 1:]
        loss = smoothed_cross_entropy(hidden[labels != 0], model.words.weight, labels[labels != 0], 0.0)
        optimizer.zero_grad()
        (loss / (labels != 0).sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
