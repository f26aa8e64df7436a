"""Memory-compressed attention against its equations, and what is true of long rows."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from regard.config import MemoryConfig
from regard.layers.kv_cache import Past
from regard.models.base import Source
from regard.models.memory import Compressed, Full, Local, MemoryCompressed
from regard.training.losses.label_smoothing import smoothed_cross_entropy

VOCABULARY = 20
WIDTH, HEADS = 8, 2
close = {"atol": 1e-5, "rtol": 1e-4}


def memory(**settings: Any) -> MemoryCompressed:
    """A model whose biases are not zero and whose attention is far from uniform, so that nothing cancels."""
    small = {"width": WIDTH, "heads": HEADS, "depth": 5, "inner": 12, "dropout": 0.0, "block": 4, **settings}
    return shaken(MemoryCompressed(MemoryConfig(**small), VOCABULARY)).eval()


def shaken(module: Any) -> Any:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return module


def source(lengths: list[int]) -> Source:
    ids, lengths_B = torch.randint(4, VOCABULARY, (len(lengths), max(lengths))), torch.tensor(lengths)
    return Source(ids.masked_fill(torch.arange(max(lengths)) >= lengths_B[:, None], 0), lengths_B)


def target(rows: int, length: int) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, length))


def numbers(x: Tensor) -> Any:
    return x.detach().numpy()


def words_seen(attention: Full, length: int) -> tuple[Tensor, Past, Any, Any, Any]:
    """Queries, keys and values of random words for the layer; and again for NumPy: head, word, number."""
    query, key, value = attention.project_all(torch.randn(1, length, WIDTH))
    return query, Past(key, value), numbers(query)[0], numbers(key)[0], numbers(value)[0]


def mix(query: Any, keys: list[Any], values: list[Any]) -> tuple[Any, Any]:
    """Equation 1 of Vaswani et al. for one query and one head."""
    weights = np.exp([query @ key / np.sqrt(len(query)) for key in keys])
    weights = weights / weights.sum()
    return sum(w * v for w, v in zip(weights, values, strict=True)), weights


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_compression_is_torchs_strided_convolution(kernel: int) -> None:
    layer = shaken(Compressed(WIDTH, HEADS, kernel))
    own = Past(torch.randn(2, HEADS, 11, WIDTH // HEADS), torch.randn(2, HEADS, 11, WIDTH // HEADS))
    for linear, x, joined in zip((layer.join_keys, layer.join_values), own, layer.compress(own), strict=True):
        weight = linear.weight.view(WIDTH, kernel, WIDTH).transpose(1, 2)
        by_torch = F.conv1d(x.transpose(2, 3).flatten(1, 2), weight, linear.bias, stride=kernel)
        assert_close(joined.transpose(2, 3).flatten(1, 2), by_torch, **close)


@pytest.mark.parametrize(("length", "kernel"), [(1, 3), (2, 3), (3, 3), (4, 3), (12, 3), (10, 3), (7, 2), (6, 1)])
def test_compressed_attention_is_its_equations_word_by_word(length: int, kernel: int) -> None:
    layer = shaken(Compressed(WIDTH, HEADS, kernel))
    query, own, queries, keys, values = words_seen(layer, length)
    context, seen = layer.look(query, own, weights=True)
    for i in range(length):
        joined = []
        for head in range(HEADS):
            mine = slice(head * 4, head * 4 + 4)
            slots = [(keys[head, 0], values[head, 0])]  # the first word by itself
            for last in range(kernel - 1, i + 1, kernel):
                window = slice(last - kernel + 1, last + 1)
                k = numbers(layer.join_keys.weight) @ keys[:, window].transpose(1, 0, 2).reshape(-1)
                v = numbers(layer.join_values.weight) @ values[:, window].transpose(1, 0, 2).reshape(-1)
                k, v = k + numbers(layer.join_keys.bias), v + numbers(layer.join_values.bias)
                slots.append((k[mine], v[mine]))
            mixed, weights = mix(queries[head, i], *zip(*slots, strict=True))
            joined.append(mixed)
            assert np.allclose(numbers(seen)[0, head, i, : len(weights)], weights, atol=1e-5)
            assert not seen[0, head, i, len(weights) :].any()
        expected = numbers(layer.join.weight) @ np.concatenate(joined) + numbers(layer.join.bias)
        assert np.allclose(numbers(context)[0, i], expected, atol=1e-5)


@pytest.mark.parametrize(("length", "block"), [(1, 4), (4, 4), (5, 4), (11, 4), (12, 4), (3, 1), (7, 256)])
def test_local_attention_is_its_equations_word_by_word(length: int, block: int) -> None:
    layer = shaken(Local(WIDTH, HEADS, block))
    query, own, queries, keys, values = words_seen(layer, length)
    context, seen = layer.look(query, own, weights=True)
    assert seen.shape == (1, HEADS, length, length)
    for i in range(length):
        near = [j for j in range(i + 1) if j // block == i // block]
        joined = []
        for head in range(HEADS):
            mixed, weights = mix(queries[head, i], keys[head, near], values[head, near])
            joined.append(mixed)
            expected = np.zeros(length)
            expected[near] = weights
            assert np.allclose(numbers(seen)[0, head, i], expected, atol=1e-5)
        expected = numbers(layer.join.weight) @ np.concatenate(joined) + numbers(layer.join.bias)
        assert np.allclose(numbers(context)[0, i], expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["before", "after"])
def test_with_full_attention_it_is_the_plain_causal_transformer(norm: str) -> None:
    model, text = memory(full=True, norm=norm, depth=2), target(2, 9)
    x = model.embedding(text)

    def normed(layer: Any, x: Tensor) -> Tensor:
        return F.layer_norm(x, (WIDTH,), layer.norm.weight, layer.norm.bias)

    for layer in model.layers:
        attention, forward = layer.around_attention, layer.around_feed_forward
        inside = normed(attention, x) if norm == "before" else x
        projected = F.linear(inside, layer.attention.project.weight, layer.attention.project.bias).chunk(3, -1)
        heads = [part.view(2, 9, HEADS, -1).transpose(1, 2) for part in projected]
        context = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(2, 9, WIDTH)
        x = x + layer.attention.join(context)
        x = x if norm == "before" else normed(attention, x)
        inside = normed(forward, x) if norm == "before" else x
        x = x + layer.feed_forward.narrow(layer.feed_forward.widen(inside).relu())
        x = x if norm == "before" else normed(forward, x)
    if norm == "before":
        x = F.layer_norm(x, (WIDTH,), model.norm.weight, model.norm.bias)
    split = Source(text[:, :4], torch.tensor([4, 4]))
    assert_close(model(split, text[:, 4:]).hidden_BTW, x[:, 4:], **close)


def test_local_and_compressed_layers_take_turns() -> None:
    kinds = [type(layer.attention) for layer in memory().layers]
    assert kinds == [Local, Compressed, Local, Compressed, Local]
    assert {type(layer.attention) for layer in memory(full=True).layers} == {Full}


SHAPES: list[dict[str, Any]] = [
    {"block": 4, "kernel": 3},
    {"block": 5, "kernel": 2},
    {"block": 1, "kernel": 1},
    {"block": 3, "kernel": 7},
    {"block": 256, "kernel": 3},
    {"full": True},
]
# Rows at different places of blocks and slots: before the first word, at both sides of borders, and far beyond.
LENGTHS = [0, 1, 3, 4, 5, 11, 12, 13, 24]


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_stepping_equals_reading_whole_over_many_blocks(settings: dict[str, Any]) -> None:
    model, read, written = memory(**settings), source(LENGTHS), target(len(LENGTHS), 27)
    whole, state = model.words(model(read, written).hidden_BTW), model.start(read)
    for t in range(written.shape[1]):
        logits, state = model.step(written[:, t], state)
        assert_close(logits, whole[:, t], **close)


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_without_a_source_stepping_equals_reading_whole(settings: dict[str, Any]) -> None:
    model, written = memory(**settings), target(2, 27)
    nothing = Source(written[:, :0], torch.zeros(2, dtype=torch.long))
    whole, state = model.words(model(nothing, written).hidden_BTW), model.start(nothing)
    for t in range(written.shape[1]):
        logits, state = model.step(written[:, t], state)
        assert_close(logits, whole[:, t], **close)


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_a_row_alone_and_in_company_is_the_same(settings: dict[str, Any]) -> None:
    model, read, written = memory(**settings), source(LENGTHS), target(len(LENGTHS), 6)
    together = model(read, written).hidden_BTW
    for row, length in enumerate(LENGTHS):
        alone = Source(read.ids_BS[row : row + 1, :length], read.lengths_B[row : row + 1])
        assert_close(model(alone, written[row : row + 1]).hidden_BTW, together[row : row + 1], **close)


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_where_the_source_ends_does_not_matter(settings: dict[str, Any]) -> None:
    model, text = memory(**settings), target(1, 30)
    nothing = Source(text[:, :0], torch.tensor([0]))
    whole = model(nothing, text).hidden_BTW
    for cut in (1, 11, 12, 29):
        assert_close(
            model(Source(text[:, :cut], torch.tensor([cut])), text[:, cut:]).hidden_BTW, whole[:, cut:], **close
        )


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_no_later_word_changes_an_earlier_prediction_wherever_it_stands(settings: dict[str, Any]) -> None:
    model, text = memory(**settings), target(1, 26)
    nothing = Source(text[:, :0], torch.tensor([0]))
    before = model(nothing, text).hidden_BTW
    for changed in range(1, 26):
        other = text.clone()
        other[0, changed] = 4 + (text[0, changed] - 3) % (VOCABULARY - 4)
        after = model(nothing, other).hidden_BTW
        assert_close(after[:, :changed], before[:, :changed], atol=1e-6, rtol=1e-5)
        assert (after[:, changed] - before[:, changed]).abs().max() > 1e-3


def test_the_last_word_knows_of_every_word_though_its_block_is_small() -> None:
    model, text = memory(block=2, depth=2), target(1, 21)
    nothing = Source(text[:, :0], torch.tensor([0]))
    before = model(nothing, text).hidden_BTW[:, -1]
    for changed in range(21):
        other = text.clone()
        other[0, changed] = 4 + (text[0, changed] - 3) % (VOCABULARY - 4)
        assert (model(nothing, other).hidden_BTW[:, -1] - before).abs().max() > 1e-5, changed


@pytest.mark.parametrize("lengths", [[40, 33], [0, 0]])
def test_writing_keeps_one_block_and_a_slot_for_every_few_words(lengths: list[int]) -> None:
    model = memory(block=4, kernel=3)
    state = model.start(Source(target(2, max(lengths)), torch.tensor(lengths)))
    for _ in range(10):
        _, state = model.step(torch.tensor([5, 6]), state)
    words = max(lengths) + 10
    for number, pasts in enumerate(state.pasts):
        kept = [past.key.shape[2] for past in pasts]
        assert kept == ([4] if number % 2 == 0 else [1 + -(-words // 3), 3])


def kept_for_the_gradient(model: MemoryCompressed, length: int, *, attention: bool) -> int:
    """Numbers that one training step holds between forward and backward."""
    storages: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes() // 4
        return tensor

    text = target(1, length)
    nothing = Source(text[:, :0], torch.tensor([0]))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = model(nothing, text, attention=attention)  # held, so that no address is used twice
        smoothed_cross_entropy(output.hidden_BTW[0], model.words.weight, text[0], 0.1)
    return sum(storages.values()) - sum(parameter.numel() for parameter in model.parameters())


def test_what_a_training_step_holds_grows_with_the_length_and_not_with_its_square() -> None:
    model = memory(block=64)
    # Long enough that no layer's attention is a short text's, which is computed with all weights at once.
    short, long = (kept_for_the_gradient(model, length, attention=False) for length in (1200, 4800))
    assert long == pytest.approx(4 * short, rel=0.02)
    # The same measure finds the square where there is one.
    model = memory(full=True)
    short, long = (kept_for_the_gradient(model, length, attention=True) for length in (300, 1200))
    assert long > 12 * short


def test_in_bfloat16_stepping_is_reading_whole_but_for_rounding() -> None:
    model, read, written = memory(), source([5, 0, 13]), target(3, 9)
    with torch.autocast("cpu", torch.bfloat16):
        whole, state = model.words(model(read, written).hidden_BTW), model.start(read)
        for t in range(written.shape[1]):
            logits, state = model.step(written[:, t], state)
            assert_close(logits, whole[:, t], atol=0.2, rtol=0.1)


def test_words_read_and_words_written_share_their_vectors_if_tied() -> None:
    tied, apart = memory(), memory(tie=False)
    assert tied.words.weight is tied.embedding.table.weight
    assert apart.words.weight is not apart.embedding.table.weight
