"""Equality with independent truths: torch's own modules, and the lectures' worked example done by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from regard.layers.attention import SHORT, MultiHead, attend, attend_fused
from regard.layers.blocks import xavier
from regard.layers.cpu_attention import attend_short
from regard.layers.dropout import Dropout, dropout_mask
from regard.layers.masks import causal, real
from regard.layers.positions import Relative, sinusoids
from regard.layers.transformer import BlockShape, DecoderBlock, EncoderBlock
from regard.training.losses.label_smoothing import smoothed_cross_entropy

WIDTH, HEADS, INNER = 16, 4, 24
close = {"atol": 1e-5, "rtol": 1e-4}


def test_the_worked_example_of_the_lectures_comes_out_by_hand() -> None:
    inputs = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
    key = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
    query = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
    value = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]

    def times(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
        return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]

    by_hand = []
    for q in times(inputs, query):
        scores = [math.exp(sum(x * y for x, y in zip(q, k, strict=True))) for k in times(inputs, key)]
        by_hand.append(times([[s / sum(scores) for s in scores]], times(inputs, value))[0])
    x = torch.tensor(inputs, dtype=torch.float32)
    heads = [(x @ torch.tensor(w, dtype=torch.float32))[None, None] for w in (query, key, value)]
    context, _ = attend(*heads, scale=1.0)
    assert_close(context[0, 0], torch.tensor(by_hand))
    lecture = torch.tensor([[1.94, 6.68, 1.60], [2.00, 7.96, 0.05], [2.00, 7.76, 0.36]])
    assert_close(context[0, 0], lecture, atol=0.006, rtol=0)


@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention_equals_torchs(masked: bool) -> None:
    ours, theirs = MultiHead(WIDTH, HEADS), nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    copy_attention(ours, theirs)
    x, memory = torch.randn(2, 5, WIDTH), torch.randn(2, 7, WIDTH)
    real_BK = real(torch.tensor([7, 4]), 7) if masked else None
    key, value = ours.project_memory(memory)
    context, weights = ours(ours.project_query(x), key, value, real_BK, weights=True)
    padding = ~real_BK if real_BK is not None else None
    expected, seen = theirs(x, memory, memory, key_padding_mask=padding, average_attn_weights=False)
    assert_close(context, expected, **close)
    assert_close(weights, seen, **close)


@pytest.mark.parametrize("norm", ["after", "before"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "elu"])
def test_an_encoder_layer_equals_torchs(norm: str, activation: str) -> None:
    ours = EncoderBlock(shape(norm, activation)).eval()
    theirs = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, batch_first=True, norm_first=norm == "before", activation=getattr(F, activation)
    )
    copy_attention(ours.attention, theirs.self_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    copy_norms([(ours.around_attention, theirs.norm1), (ours.around_feed_forward, theirs.norm2)])
    x, real_BS = torch.randn(2, 6, WIDTH), real(torch.tensor([6, 3]), 6)
    expected = theirs.train(False)(x, src_key_padding_mask=~real_BS)
    found, _ = ours(x, real_BS, weights=False)
    assert_close(found[real_BS], expected[real_BS], **close)


@pytest.mark.parametrize("norm", ["after", "before"])
def test_a_decoder_layer_equals_torchs(norm: str) -> None:
    ours = DecoderBlock(shape(norm, "relu")).eval()
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, batch_first=True, norm_first=norm == "before").eval()
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_attention(ours.source_attention, theirs.multihead_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    around = [ours.around_self, ours.around_source, ours.around_feed_forward]
    copy_norms(list(zip(around, [theirs.norm1, theirs.norm2, theirs.norm3], strict=True)))
    x, memory, real_BS = torch.randn(2, 5, WIDTH), torch.randn(2, 7, WIDTH), real(torch.tensor([7, 4]), 7)
    expected = theirs(x, memory, tgt_mask=~causal(5), memory_key_padding_mask=~real_BS)
    found, _, _ = ours(x, memory, real_BS, weights=False)
    assert_close(found, expected, **close)


@pytest.mark.parametrize("looking", ["all", "real", "causal"])
@pytest.mark.parametrize("biased", [False, True])
def test_fused_attention_equals_plain(looking: str, biased: bool) -> None:
    query, key, value = torch.randn(3, 2, 4, 5, 8).unbind(0)
    bias = torch.randn(2, 4, 5, 5) if biased else None
    mask = {"all": None, "real": real(torch.tensor([5, 3]), 5)[:, None, None], "causal": causal(5)}[looking]
    plain, _ = attend(query, key, value, mask, bias)
    is_causal = looking == "causal"
    fused = attend_fused(query, key, value, None if is_causal else mask, bias, causal=is_causal)
    assert_close(fused, plain, **close)


@pytest.mark.parametrize("largest", [1.0, 300.0])
@pytest.mark.parametrize("looking", ["all", "real", "causal", "biased"])
def test_attention_of_short_texts_has_the_gradients_of_the_plain_one(looking: str, largest: float) -> None:
    query, key, value = (torch.randn(2, 4, words, 8, requires_grad=True) for words in (5, 5, 5))
    bias = torch.randn(2, 4, 5, 5, requires_grad=True)
    mask = {"real": real(torch.tensor([5, 3]), 5)[:, None, None], "causal": causal(5)}.get(looking)
    leaves = [query, key, value, *([bias] if looking == "biased" else [])]
    plain, _ = attend(query * largest, key, value, mask, bias if looking == "biased" else None)
    scaled = bias / math.sqrt(8) if looking == "biased" else mask
    short = attend_short(query * largest, key, value, scaled)
    assert_close(short, plain, **close)
    upstream = torch.randn(2, 4, 5, 8)
    for ours, theirs in zip(
        torch.autograd.grad(short, leaves, upstream), torch.autograd.grad(plain, leaves, upstream), strict=True
    ):
        assert_close(ours, theirs, atol=1e-4 * largest, rtol=1e-4)


@pytest.mark.parametrize("keys", [7, SHORT + 3])
@pytest.mark.parametrize("looking", ["all", "real", "causal"])
@pytest.mark.parametrize("biased", [False, True])
def test_attention_in_bfloat16_stays_close_to_float32(keys: int, looking: str, biased: bool) -> None:
    query, key, value = torch.randn(3, 2, 4, keys, 8).unbind(0)
    bias = torch.randn(2, 4, keys, keys) if biased else None
    mask = {"all": None, "real": real(torch.tensor([keys, 3]), keys)[:, None, None], "causal": causal(keys)}[looking]
    plain, _ = attend(query, key, value, mask, bias)
    is_causal = looking == "causal"
    halves = (x.bfloat16() for x in (query, key, value))
    found = attend_fused(*halves, None if is_causal else mask, bias, causal=is_causal)
    assert_close(found.float(), plain, atol=0.05, rtol=0.05)


def test_relative_positions_are_the_equation_word_by_word() -> None:
    relative, query = Relative(8, span=2), torch.randn(1, 2, 4, 8)
    gained = relative(query, 4)
    for i in range(4):
        for j in range(4):
            vector = relative.table.weight[max(-2, min(2, j - i)) + 2]
            assert_close(gained[0, :, i, j], query[0, :, i] @ vector)


def test_sinusoids_are_the_equation_of_the_paper() -> None:
    table = sinusoids(50, 6)
    for position in (0, 7, 49):
        for i in range(3):
            angle = position / 10_000 ** (2 * i / 6)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [3, 1500])
def test_the_chunked_loss_and_its_gradients_equal_torchs(smoothing: float, rows: int) -> None:
    hidden = torch.randn(rows, WIDTH, requires_grad=True)
    weight = torch.randn(3000, WIDTH, requires_grad=True)
    target = torch.randint(0, 3000, (rows,))
    ours = smoothed_cross_entropy(hidden, weight, target, smoothing) / rows
    theirs = F.cross_entropy(hidden @ weight.T, target, label_smoothing=smoothing)
    assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    for a, b in zip(
        torch.autograd.grad(ours, [hidden, weight]), torch.autograd.grad(theirs, [hidden, weight]), strict=True
    ):
        assert_close(a, b, atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        assert_close(smoothed_cross_entropy(hidden, weight, target, smoothing) / rows, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shift", [-500.0, 0.0, 500.0])
def test_the_loss_and_its_gradients_survive_scores_beyond_a_floats_exponentials(shift: float) -> None:
    hidden = torch.cat([torch.randn(30, WIDTH), torch.ones(30, 1)], 1).requires_grad_()
    weight = torch.cat([torch.randn(200, WIDTH), torch.full((200, 1), shift)], 1).requires_grad_()
    target = torch.randint(0, 200, (30,))
    ours = smoothed_cross_entropy(hidden, weight, target, 0.1)
    theirs = F.cross_entropy(hidden @ weight.T, target, reduction="sum", label_smoothing=0.1)
    assert_close(ours, theirs, atol=1e-2, rtol=1e-4)
    for a, b in zip(
        torch.autograd.grad(ours, [hidden, weight]), torch.autograd.grad(theirs, [hidden, weight]), strict=True
    ):
        assert_close(a, b, atol=1e-3, rtol=1e-3)


def test_the_loss_of_a_hopeless_word_is_exact() -> None:
    hidden, weight = torch.tensor([[1000.0]], requires_grad=True), torch.tensor([[1.0], [0.0]])
    loss = smoothed_cross_entropy(hidden, weight, torch.tensor([1]), 0.0)
    assert loss.item() == 1000.0


def test_a_confident_right_word_has_its_gradient_in_bfloat16_too() -> None:
    hidden = torch.tensor([[8.0]], requires_grad=True)
    weight = torch.cat([torch.ones(1, 1), torch.zeros(99, 1)]).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = smoothed_cross_entropy(hidden, weight, torch.tensor([0]), 0.0)
    (gradient,) = torch.autograd.grad(loss, [hidden])
    missed = 99 / (math.exp(8) + 99)
    assert gradient.item() == pytest.approx(-missed, rel=0.01)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_dropout_keeps_its_rate_its_mean_and_its_gradient(rate: float) -> None:
    x = torch.ones(300, 1001, requires_grad=True)
    dropped = Dropout(rate)(x)
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.005)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    assert dropped.unique().numel() == 2
    dropped.sum().backward()
    assert_close(x.grad, dropped.detach())


def test_dropout_added_to_a_residual_is_the_same_in_one_pass() -> None:
    dropout, x, residual = Dropout(0.3), torch.randn(7, 13), torch.randn(7, 13)
    torch.manual_seed(5)
    expected = residual + dropout(x)
    torch.manual_seed(5)
    assert_close(dropout.add(residual, x), expected)
    assert dropout.eval()(x) is x


def test_dropout_is_a_function_of_the_seed() -> None:
    torch.manual_seed(3)
    first = dropout_mask(torch.empty(1000), 0.5)
    torch.manual_seed(3)
    assert dropout_mask(torch.empty(1000), 0.5).equal(first)


def shape(norm: str, activation: str) -> BlockShape:
    return BlockShape(WIDTH, HEADS, INNER, 0.1, activation, norm_first=norm == "before")


def copy_attention(ours: MultiHead, theirs: nn.MultiheadAttention) -> None:
    xavier(ours)
    nn.init.normal_(ours.project.bias)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.project.weight)
        theirs.in_proj_bias.copy_(ours.project.bias)
        theirs.out_proj.load_state_dict(ours.join.state_dict())


def copy_feed_forward(ours: nn.Module, theirs: nn.Module) -> None:
    theirs.linear1.load_state_dict(ours.widen.state_dict())
    theirs.linear2.load_state_dict(ours.narrow.state_dict())


def copy_norms(pairs: list[tuple[nn.Module, nn.Module]]) -> None:
    for ours, theirs in pairs:
        nn.init.normal_(ours.norm.weight)
        theirs.load_state_dict(ours.norm.state_dict())
