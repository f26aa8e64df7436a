"""The convolutional model against its paper, and what is true of it alone."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from regard.config import ConvConfig
from regard.errors import DataError
from regard.models.base import Source
from regard.models.conv import Conv, ConvState, Memory
from regard.training.losses.label_smoothing import smoothed_cross_entropy

VOCABULARY = 20
close = {"atol": 1e-5, "rtol": 1e-4}


def config(**settings: Any) -> ConvConfig:
    return ConvConfig(**{"width": 16, "depth": 2, "dropout": 0.0, "longest": 64, **settings})


def conv(**settings: Any) -> Conv:
    """A model whose biases are not zero and whose attention is far from uniform, so that nothing cancels."""
    model = Conv(config(**settings), VOCABULARY).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def source(lengths: list[int], size: int | None = None) -> Source:
    size = size or max(lengths)
    ids = torch.randint(4, VOCABULARY, (len(lengths), size))
    lengths_B = torch.tensor(lengths)
    return Source(ids.masked_fill(torch.arange(size) >= lengths_B[:, None], 0), lengths_B)


def target(rows: int = 3, length: int = 6) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, length))


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_a_gated_convolution_is_torchs_convolution_and_gate(kernel: int) -> None:
    convolution = conv(kernel=kernel).encoder.layers[0]
    x_BPW = torch.randn(2, 7, 16)
    weight_XKW = convolution.product.weight.unflatten(1, (kernel, 16))
    both = F.conv1d(x_BPW.transpose(1, 2), weight_XKW.transpose(1, 2), convolution.product.bias)
    assert_close(convolution(x_BPW), F.glu(both, 1).transpose(1, 2), **close)


def test_an_encoder_is_the_equation_of_the_paper_word_by_word() -> None:
    encoder, length = conv(depth=1, kernel=3).encoder, 4
    e = torch.randn(1, length, 16)
    z = numbers(encoder.enter(e))[0]
    weight, bias = numbers(encoder.layers[0].product.weight), numbers(encoder.layers[0].product.bias)
    padded = np.concatenate([np.zeros((1, 16)), z, np.zeros((1, 16))])
    for i in range(length):
        both = weight @ np.concatenate([padded[i], padded[i + 1], padded[i + 2]]) + bias
        z[i] = (both[:16] / (1 + np.exp(-both[16:])) + z[i]) * np.sqrt(0.5)
    z = z @ numbers(encoder.leave.weight).T + numbers(encoder.leave.bias)
    memory = encoder(e, torch.tensor([length]))
    assert np.allclose(memory.key_BSW[0].detach(), z, atol=1e-5)
    assert np.allclose(memory.value_BSW[0].detach(), (z + numbers(e)[0]) * length * np.sqrt(1 / length), atol=1e-5)


def test_a_decoder_layer_is_the_equations_of_the_paper_word_by_word() -> None:
    layer, m = conv(kernel=3).decoder.layers[1], 5
    x, past, g = torch.randn(1, 3, 16), torch.randn(1, 2, 16), torch.randn(1, 3, 16)
    z, value = torch.randn(1, m, 16), torch.randn(1, m, 16)
    out, _, weights = layer(x, past, g, Memory(z, value, None))
    weight, bias = numbers(layer.convolution.product.weight), numbers(layer.convolution.product.bias)
    inputs = np.concatenate([numbers(past)[0], numbers(x)[0]])
    for i in range(3):
        both = weight @ np.concatenate([inputs[i], inputs[i + 1], inputs[i + 2]]) + bias
        h = both[:16] / (1 + np.exp(-both[16:]))
        d = numbers(layer.query.weight) @ h + numbers(layer.query.bias) + numbers(g)[0, i]
        a = np.array([np.exp(d @ numbers(z)[0, j]) for j in range(m)])
        a = a / a.sum()
        c = sum(a[j] * numbers(value)[0, j] for j in range(m))
        assert np.allclose(weights[0, 0, i].detach(), a, atol=1e-5)
        assert np.allclose(out[0, i].detach(), (numbers(x)[0, i] + h + c) * np.sqrt(0.5), atol=1e-5)


def test_uniform_attention_to_words_of_unit_variance_gives_unit_variance() -> None:
    model, m = Conv(config(width=256, depth=1), VOCABULARY), 25
    for linear in (model.encoder.leave, model.decoder.layers[0].query):
        torch.nn.init.zeros_(linear.weight)
    memory = model.encoder(torch.randn(8, m, 256), torch.full((8,), m))
    context, _ = model.decoder.layers[0].look(torch.zeros(8, 1, 256), torch.zeros(8, 1, 256), memory)
    assert context.std().item() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("length", [1, 4, 15])
def test_padding_changes_nothing(kernel: int, length: int) -> None:
    model = conv(kernel=kernel)  # sees 1, 5 or 9 words: fewer than the longest here
    alone, written = source([length]), target(1)
    together = source([length, 17])
    together.ids_BS[0, :length] = alone.ids_BS[0]
    together.ids_BS[0, length:] = torch.randint(0, VOCABULARY, (17 - length,))  # whatever stands there
    both = model(together, written.expand(2, -1)).hidden_BTW
    assert_close(both[:1], model(alone, written).hidden_BTW, **close)


VARIANTS = [
    *({"kernel": kernel, "depth": depth} for kernel in (1, 3, 5) for depth in (1, 2, 3)),
    {"tie": "target"},
    {"tie": "none"},
    {"decoder_depth": 1},
    {"decoder_depth": 3, "kernel": 5},
]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_stepping_equals_reading_whole(settings: dict[str, Any]) -> None:
    model, read, written = conv(**settings), source([5, 3, 4]), target(length=9)
    whole = model.words(model(read, written).hidden_BTW)
    state = model.start(read)
    for t in range(written.shape[1]):
        logits, state = model.step(written[:, t], state)
        assert_close(logits, whole[:, t], **close)


def test_a_later_word_never_changes_an_earlier_prediction() -> None:
    model, read, written = conv(kernel=5), source([5, 3, 4]), target(length=8)
    for t in range(1, 8):
        other = torch.cat([written[:, :t], target(length=8 - t)], 1)
        assert model(read, written).hidden_BTW[:, :t].equal(model(read, other).hidden_BTW[:, :t])


def test_reordered_rows_go_on_as_the_rows_they_were() -> None:
    model, read, written = conv(), source([5, 3, 4]), target()
    state = model.start(read, attention=True)
    for t in range(3):
        _, state = model.step(written[:, t], state)
    plain, after = model.step(written[:, 3], state)
    order = torch.tensor([2, 2, 0, 1, 0])
    reordered, after_reordered = model.step(written[order, 3], state.reorder(order))
    assert_close(reordered, plain[order], **close)
    assert_close(after_reordered.attention_BS, after.attention_BS[order], **close)
    assert state.reorder(order).attention_BS.equal(state.attention_BS[order])


def test_a_step_leaves_the_state_it_was_given_alone() -> None:
    model, read, written = conv(), source([5, 3, 4]), target()
    _, state = model.step(written[:, 0], model.start(read))
    before = [part.clone() for part in tensors(state)]
    model.step(written[:, 1], state)
    assert all(a.equal(b) for a, b in zip(tensors(state), before, strict=True))


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_the_state_holds_a_kernels_width_of_past_however_long_the_text(kernel: int) -> None:
    model = conv(kernel=kernel)
    state = model.start(source([5, 3, 4]))
    for word_B in target(length=20).T:
        assert [past.shape for past in state.past] == [(3, kernel - 1, 16)] * 2
        _, state = model.step(word_B, state)


def test_attention_rows_sum_to_one_and_padding_gets_none() -> None:
    model, read, written = conv(decoder_depth=3), source([5, 3, 4]), target()
    seen = model(read, written, attention=True).attention
    assert sorted(seen) == [f"decoder.{number}.source" for number in range(3)]
    for weights_BHTS in seen.values():
        assert weights_BHTS.shape == (3, 1, 6, 5)
        assert_close(weights_BHTS.sum(-1), torch.ones(3, 1, 6))
        assert weights_BHTS[1, ..., 3:].eq(0).all() and weights_BHTS[2, ..., 4:].eq(0).all()
    assert not model(read, written).attention


def test_where_a_step_looked_is_the_mean_of_its_layers_and_told_only_when_asked() -> None:
    model, read, written = conv(), source([5, 3, 4]), target()
    mean_BTS = torch.stack(list(model(read, written, attention=True).attention.values())).mean(0)[:, 0]
    state = model.start(read, attention=True)
    for t in range(written.shape[1]):
        _, state = model.step(written[:, t], state)
        assert_close(state.attention_BS, mean_BTS[:, t], **close)
    assert model.step(written[:, 0], model.start(read))[1].attention_BS is None


@pytest.mark.parametrize(("kernel", "depth"), [(1, 2), (3, 1), (3, 3), (5, 2)])
def test_the_encoder_sees_its_receptive_field_and_nothing_else(kernel: int, depth: int) -> None:
    encoder, middle = conv(kernel=kernel, depth=depth).encoder, 12
    e_BSW = torch.randn(1, 25, 16, requires_grad=True)
    encoder(e_BSW, torch.tensor([25])).key_BSW[0, middle].sum().backward()
    seen = (e_BSW.grad[0] != 0).any(-1).nonzero()[:, 0].tolist()
    side = depth * (kernel - 1) // 2
    assert seen == list(range(middle - side, middle + side + 1))
    assert len(seen) == encoder.receptive_field == 1 + depth * (kernel - 1)


@pytest.mark.parametrize(("kernel", "depth"), [(1, 2), (3, 1), (3, 3), (5, 2)])
def test_the_decoder_sees_its_receptive_field_and_nothing_else(kernel: int, depth: int) -> None:
    model, last = conv(kernel=kernel, decoder_depth=depth), 18
    state = model.start(source([7]))
    g_BTW = torch.randn(1, 25, 16, requires_grad=True)
    model.decoder(g_BTW, state.past, state.memory)[0][0, last].sum().backward()
    seen = (g_BTW.grad[0] != 0).any(-1).nonzero()[:, 0].tolist()
    assert seen == list(range(last - depth * (kernel - 1), last + 1))
    assert len(seen) == model.decoder.receptive_field == 1 + depth * (kernel - 1)


def test_variance_is_kept_from_layer_to_layer() -> None:
    encoder = Conv(config(width=256, depth=10), VOCABULARY).encoder
    z_BSW = encoder(torch.randn(8, 40, 256) * 0.1, torch.full((8,), 40)).key_BSW
    assert 0.05 < z_BSW.std().item() < 0.2


def test_weights_begin_as_wide_as_the_paper_says() -> None:
    model, keep = Conv(config(width=128, dropout=0.3, tie="none"), 500), 0.7
    expected = {
        model.source_embedding.table: 0.1,
        model.target_embedding.positions.table: 0.1,
        model.encoder.enter: (keep / 128) ** 0.5,
        model.encoder.layers[0].product: (4 * keep / (3 * 128)) ** 0.5,
        model.decoder.layers[0].query: (1 / 128) ** 0.5,
        model.words: (keep / 128) ** 0.5,
    }
    for module, std in expected.items():
        assert module.weight.std().item() == pytest.approx(std, rel=0.05)
    assert not any(p.any() for name, p in model.named_parameters() if name.endswith("bias"))


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_embeddings_are_shared_as_told(tie: str) -> None:
    model = conv(tie=tie)
    assert (model.words.weight is model.target_embedding.table.weight) == (tie != "none")
    assert (model.source_embedding is model.target_embedding) == (tie == "all")


def test_a_sentence_beyond_the_learned_positions_is_refused() -> None:
    model = conv(longest=6)
    model(source([6]), target(1, 6))
    with pytest.raises(DataError, match="7 tokens"):
        model(source([7]), target(1, 6))
    with pytest.raises(DataError, match="7 tokens"):
        model(source([6]), target(1, 7))


def test_a_step_of_training_in_bfloat16_has_finite_gradients() -> None:
    model = Conv(config(dropout=0.3, depth=4), VOCABULARY).train()
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss_of(model, source([5, 3, 4]), target())
    loss.backward()
    assert all(p.grad.isfinite().all() and p.grad.abs().max() > 0 for p in model.parameters())


def test_dropout_is_a_function_of_the_seed_and_everywhere_it_should_be() -> None:
    model, read, written = conv(dropout=0.3), source([5, 3, 4]), target()
    plain = model(read, written).hidden_BTW
    layer = model.decoder.layers[0]
    for part in (model.source_embedding, model.encoder, model.decoder, layer):
        part.dropout.train()
        torch.manual_seed(3)
        first = model(read, written).hidden_BTW
        torch.manual_seed(3)
        assert model(read, written).hidden_BTW.equal(first)
        assert not first.equal(plain), part
        part.dropout.eval()


def test_one_batch_can_be_memorised() -> None:
    model, read, written = Conv(config(), VOCABULARY), source([5, 3, 4]), target()
    learn(model, [(read, written)] * 120, rate=0.005)
    assert model.words(model(read, written[:, :-1]).hidden_BTW).argmax(-1).equal(written[:, 1:])


def learn(model: Conv, batches: list[tuple[Source, Tensor]], rate: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for read, written in batches:
        optimizer.zero_grad()
        loss_of(model, read, written).backward()
        optimizer.step()


def loss_of(model: Conv, read: Source, written: Tensor) -> Tensor:
    """Of each word but the padding."""
    hidden_BTW, word_BT = model(read, written[:, :-1]).hidden_BTW, written[:, 1:] > 0
    return smoothed_cross_entropy(hidden_BTW[word_BT], model.words.weight, written[:, 1:][word_BT], 0.0) / word_BT.sum()


def numbers(x: Tensor) -> np.ndarray:
    return x.detach().double().numpy()


def tensors(state: ConvState) -> list[Tensor]:
    return [part for part in (*state.past, *state.memory) if part is not None]
