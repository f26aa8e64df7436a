"""The Universal Transformer: one block repeated, and words that halt by themselves."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regard.config import UniversalConfig
from regard.layers.masks import real
from regard.layers.positions import sinusoids
from regard.models.base import Source
from regard.models.universal import PADDING, Universal, begin, halt
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD
from regard.training.losses.label_smoothing import smoothed_cross_entropy

VOCABULARY = 20
SMALL: dict[str, Any] = {"width": 16, "heads": 2, "depth": 4, "inner": 24, "dropout": 0.0}
close = {"atol": 1e-5, "rtol": 1e-4}
VARIANTS = [
    {},
    {"norm": "before"},
    {"depth": 1},
    {"depth": 7, "threshold": 0.7},
    {"threshold": 0.3, "norm": "before"},
    {"tie": "none", "activation": "gelu"},
    {"halting": False},
    {"halting": False, "norm": "before", "depth": 2},
]


@pytest.fixture(params=VARIANTS, ids=str)
def model(request: pytest.FixtureRequest) -> Universal:
    return small(**request.param)


def small(**settings: Any) -> Universal:
    """A model whose words halt at different repetitions, as they do after training: words outweigh coordinates."""
    model = Universal(UniversalConfig(**{**SMALL, **settings}), VOCABULARY).eval()
    for embedding in (model.source_embedding, model.target_embedding):
        nn.init.normal_(embedding.table.weight)
    for part in (model.encoder, model.decoder):
        if part.halting is not None:
            nn.init.normal_(part.halting.unit.weight)
            nn.init.normal_(part.halting.unit.bias, mean=-0.5)
    return model


def source(lengths: list[int], size: int | None = None) -> Source:
    size = size or max(lengths)
    ids = torch.randint(4, VOCABULARY, (len(lengths), size), generator=torch.Generator().manual_seed(1))
    lengths_B = torch.tensor(lengths)
    return Source(ids.masked_fill(torch.arange(size) >= lengths_B[:, None], PAD), lengths_B)


def target(rows: int = 3, length: int = 6) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("norm", ["after", "before"])
def test_one_repetition_of_the_encoder_equals_torchs_layer_with_coordinates_added(norm: str) -> None:
    encoder = small(norm=norm, depth=1, halting=False).encoder
    ours, first = encoder.block, norm == "before"
    theirs = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, norm_first=first).eval()
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(ours.attention.project.weight)
    theirs.self_attn.out_proj.load_state_dict(ours.attention.join.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.widen.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.narrow.state_dict())
    x, real_BS = torch.randn(2, 6, 16), real(torch.tensor([6, 3]), 6)
    waves = sinusoids(6, 16)
    expected = encoder.norm(theirs(x + waves + waves[1], src_key_padding_mask=~real_BS))
    assert_close(encoder(x, real_BS, None).result_BTW[real_BS], expected[real_BS], **close)


def test_each_repetition_is_told_its_position_and_its_number() -> None:
    encoder, x, waves = small().encoder, torch.randn(2, 3, 16), sinusoids(20, 16)
    for repetition in (0, 3):
        assert_close(encoder.place(x, repetition, first=9) - x, (waves[9:12] + waves[repetition + 1]).expand(2, 3, 16))


def test_halting_is_graves_equations_word_by_word() -> None:
    depth, threshold = 5, 0.9
    probability, state, x = torch.rand(depth, 2, 7) * 0.5, torch.randn(depth, 2, 7, 4), torch.randn(2, 7, 4)
    thought = begin(x, None)
    for n in range(depth):
        thought = halt(thought, state[n], probability[n], threshold, last=n + 1 == depth)
    for b, t in torch.cartesian_prod(torch.arange(2), torch.arange(7)).tolist():
        h = probability[:, b, t].tolist()
        steps = next((n for n in range(1, depth) if sum(h[:n]) >= threshold), depth)
        remainder = 1 - sum(h[: steps - 1])
        weights = [*h[: steps - 1], remainder]
        assert sum(weights) == pytest.approx(1)
        assert thought.steps_BT[b, t] == steps
        assert thought.remainder_BT[b, t].item() == pytest.approx(remainder, abs=1e-6)
        assert_close(thought.result_BTW[b, t], sum(w * state[n, b, t] for n, w in enumerate(weights)))
        assert thought.state_BTW[b, t].equal(state[steps - 1, b, t])
    assert len(thought.steps_BT.unique()) > 2
    assert (probability.sum(0) < threshold).any(), "some word must reach the last repetition"
    assert_close(thought.ponder(), thought.steps_BT.sum() + thought.remainder_BT.sum())
    assert not thought.running_BT.any()


def test_a_word_that_has_halted_is_changed_no_more_not_by_a_bit() -> None:
    thought = halt(begin(torch.randn(2, 3, 4), None), torch.randn(2, 3, 4), torch.ones(2, 3), 0.99, last=False)
    later = halt(thought, torch.randn(2, 3, 4), torch.rand(2, 3), 0.99, last=True)
    assert all(before.equal(after) for before, after in zip(thought, later, strict=True))


def test_without_halting_the_result_is_the_last_state() -> None:
    encoder, x = small(halting=False, depth=3).encoder, torch.randn(2, 5, 16)
    state = x
    for repetition in range(3):
        state, _ = encoder.block(encoder.place(state, repetition), None, weights=False)
    assert_close(encoder(x, None, None).result_BTW, state)


def test_words_take_from_one_repetition_to_all_and_padding_takes_none(model: Universal) -> None:
    read, written = source([5, 3, 4]), target()
    written[1, 4:] = PADDING
    depth, kinds = model.decoder.depth, set()
    for ids_BT, steps_BT in zip((read.ids_BS, written), model.steps(read, written), strict=True):
        assert steps_BT[ids_BT == PADDING].eq(0).all()
        kinds |= set(steps_BT[ids_BT != PADDING].tolist())
    assert kinds <= set(range(1, depth + 1))
    assert kinds == {depth} if model.decoder.halting is None else len(kinds) >= min(depth, 3)


def test_at_first_every_word_takes_all_repetitions() -> None:
    model = Universal(UniversalConfig(**SMALL), VOCABULARY)
    assert all(steps.eq(SMALL["depth"]).all() for steps in model.steps(source([4, 4]), target(2)))


def test_padding_is_the_tokenizers() -> None:
    assert PADDING == PAD


def test_stepping_equals_reading_whole(model: Universal) -> None:
    read, written = source([5, 3, 4]), target(length=9)
    whole = model.words(model(read, written).hidden_BTW)
    state = model.start(read)
    for t in range(written.shape[1]):
        logits, state = model.step(written[:, t], state)
        assert_close(logits, whole[:, t], **close)


def test_a_word_may_look_at_words_that_halted_long_before_it() -> None:
    model = small(depth=6)
    read, written = source([4] * 40), target(40)
    _, steps_BT = model.steps(read, written)
    rows = (steps_BT[:, 0] + 2 <= steps_BT[:, 1]).nonzero()[:5, 0]
    assert len(rows)
    for row in rows.tolist():  # Each alone, so that nobody else keeps the repetitions going.
        read_row, row_BT = Source(read.ids_BS[row, None], read.lengths_B[row, None]), written[row, None]
        whole, state = model(read_row, row_BT).hidden_BTW, model.start(read_row)
        for t in range(row_BT.shape[1]):
            logits, state = model.step(row_BT[:, t], state)
            assert_close(logits, model.words(whole[:, t]), **close)


def test_padding_changes_nothing(model: Universal) -> None:
    short, written = source([4, 4]), target(2)
    ids_BS = torch.cat([short.ids_BS, torch.full((2, 5), PAD)], 1)
    longer = torch.cat([written, torch.full((2, 3), PAD)], 1)
    plain, padded = model(short, written), model(Source(ids_BS, short.lengths_B), longer)
    assert_close(plain.hidden_BTW, padded.hidden_BTW[:, :6], **close)


def test_padding_costs_nothing() -> None:
    model, short, written = small().train(), source([4, 4]), target(2)
    ids_BS = torch.cat([short.ids_BS, torch.full((2, 5), PAD)], 1)
    longer = torch.cat([written, torch.full((2, 3), PAD)], 1)
    cost = model(short, written).extra_loss
    assert_close(cost, model(Source(ids_BS, short.lengths_B), longer).extra_loss, **close)
    assert cost is not None
    assert cost >= 0.01 * sum(steps.sum() for steps in model.steps(short, written))


def test_only_training_pays_for_thinking() -> None:
    assert small()(source([4]), target(1)).extra_loss is None
    assert small(halting=False).train()(source([4]), target(1)).extra_loss is None


def test_batch_mates_that_think_longer_change_nothing() -> None:
    model, lengths = small(depth=6), [5, 3, 4, 5, 2, 4]
    read, written = source(lengths), target(6, 3)
    together, (read_steps, written_steps) = model(read, written).hidden_BTW, model.steps(read, written)
    alone_for = []
    for row, length in enumerate(lengths):
        alone = Source(read.ids_BS[row, None, :length], read.lengths_B[row, None])
        assert_close(model(alone, written[row, None]).hidden_BTW[0], together[row], **close)
        steps = model.steps(alone, written[row, None])
        assert steps[0][0].equal(read_steps[row, :length])
        assert steps[1][0].equal(written_steps[row])
        alone_for.append(int(steps[1].max()))
    assert min(alone_for) < max(alone_for)


def test_a_later_word_never_changes_an_earlier_prediction(model: Universal) -> None:
    read, written = source([5, 3, 4]), target()
    other = written.clone()
    other[:, 4:] = 5
    assert_close(model(read, written).hidden_BTW[:, :4], model(read, other).hidden_BTW[:, :4], **close)
    assert model.steps(read, written)[1][:, :4].equal(model.steps(read, other)[1][:, :4])


def test_reordered_rows_go_on_as_the_rows_they_were(model: Universal) -> None:
    read, written = source([5, 3, 4]), target()
    _, state = model.step(written[:, 0], model.start(read, attention=True))
    plain, after = model.step(written[:, 1], state)
    order = torch.tensor([2, 2, 0])
    reordered, after_reordered = model.step(written[order, 1], state.reorder(order))
    assert_close(reordered, plain[order], **close)
    assert_close(after_reordered.attention_BS, after.reorder(order).attention_BS, **close)


def test_attention_rows_sum_to_one_and_seeing_them_changes_nothing(model: Universal) -> None:
    read, written = source([5, 3, 4]), target()
    fused, plain = model(read, written), model(read, written, attention=True)
    assert not fused.attention
    assert_close(fused.hidden_BTW, plain.hidden_BTW, **close)
    read_steps, written_steps = (int(steps.max()) for steps in model.steps(read, written))
    assert set(plain.attention) == {f"encoder.{n}.self" for n in range(read_steps)} | {
        f"decoder.{n}.{where}" for n in range(written_steps) for where in ("self", "source")
    }
    for weights in plain.attention.values():
        assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_a_step_says_where_its_last_repetition_looked(model: Universal) -> None:
    read, written = source([5, 3, 4]), target()
    seen, (_, steps_BT) = model(read, written, attention=True).attention, model.steps(read, written)
    state = model.start(read, attention=True)
    for t in range(written.shape[1]):
        _, state = model.step(written[:, t], state)
        for row in range(3):
            weights_BHTS = seen[f"decoder.{int(steps_BT[row, t]) - 1}.source"]
            assert_close(state.attention_BS[row], weights_BHTS[row, :, t].mean(0), **close)


def test_depth_costs_no_parameters() -> None:
    counts = {sum(p.numel() for p in small(depth=depth).parameters()) for depth in (1, 6, 50)}
    assert len(counts) == 1


def test_embeddings_are_shared_as_asked() -> None:
    table = VOCABULARY * SMALL["width"]
    counts = [sum(p.numel() for p in small(tie=tie).parameters()) for tie in ("all", "target", "none")]
    assert [count - counts[0] for count in counts] == [0, table, 2 * table]


def learn(model: Universal, steps: int, rate: float, batch: Any) -> None:
    optimizer = torch.optim.Adam(model.train().parameters(), lr=rate)
    for _ in range(steps):
        read, written = batch()
        output, label_BT = model(read, written[:, :-1]), written[:, 1:]
        word_BT = label_BT != PAD
        loss = smoothed_cross_entropy(output.hidden_BTW[word_BT], model.words.weight, label_BT[word_BT], 0.0)
        loss = loss if output.extra_loss is None else loss + output.extra_loss
        optimizer.zero_grad()
        (loss / word_BT.sum()).backward()
        assert all(p.grad is not None for p in model.parameters())
        optimizer.step()
    model.eval()


@pytest.mark.parametrize("settings", [{}, {"halting": False, "depth": 2}, {"norm": "before"}], ids=str)
def test_one_batch_can_be_memorised(settings: dict[str, Any]) -> None:
    model = Universal(UniversalConfig(**{**SMALL, **settings}), VOCABULARY)
    read, written = source([5, 3, 4]), target()
    learn(model, 200, 0.02, lambda: (read, written))
    assert model.words(model(read, written[:, :-1]).hidden_BTW).argmax(-1).equal(written[:, 1:])


def test_dear_thinking_is_soon_given_up() -> None:
    model = Universal(UniversalConfig(**SMALL, ponder=2.0), VOCABULARY)
    read, written = source([5, 3, 4]), target()
    costs = []
    for _ in range(3):
        costs.append(model.train()(read, written).extra_loss.item())
        learn(model, 30, 0.01, lambda: (read, written))
    assert costs[0] > costs[1] > costs[2]
    assert max(int(steps.max()) for steps in model.steps(read, written)) < SMALL["depth"]


def strings(rows: int) -> tuple[Source, Tensor]:
    """Strings of three to five letters, to be copied."""
    lengths_B = torch.randint(3, 6, (rows,))
    ids = torch.randint(4, 12, (rows, 5)).masked_fill(torch.arange(5) >= lengths_B[:, None], PAD)
    written = torch.cat([torch.full((rows, 1), BEGIN), ids, torch.full((rows, 1), PAD)], 1)
    written[torch.arange(rows), lengths_B + 1] = END
    return Source(ids, lengths_B), written


def test_it_learns_to_copy_and_thinks_less_as_it_does() -> None:
    model = Universal(UniversalConfig(width=32, heads=4, depth=4, inner=64, dropout=0.0, ponder=0.05), 12)
    learn(model, 500, 0.003, lambda: strings(32))
    read, written = strings(200)
    last_B, state, copied = written[:, 0], model.start(read), []
    for _ in range(6):
        logits, state = model.step(last_B, state)
        last_B = logits.argmax(-1)
        copied.append(last_B)
    label_BT = written[:, 1:]
    assert torch.stack(copied, 1).where(label_BT != PAD, PAD).equal(label_BT)
    assert all(steps[steps > 0].float().mean() < 3 for steps in model.steps(read, written[:, :-1]))


@pytest.mark.parametrize("settings", [{}, {"norm": "before"}, {"halting": False}], ids=str)
def test_a_training_step_in_bfloat16_gives_finite_gradients(settings: dict[str, Any]) -> None:
    model = small(**settings, dropout=0.1).train()
    read, written = source([5, 3, 4]), target()
    with torch.autocast("cpu", torch.bfloat16):
        output = model(read, written[:, :-1])
        loss = smoothed_cross_entropy(
            output.hidden_BTW.flatten(0, 1), model.words.weight, written[:, 1:].flatten(), 0.1
        )
    total = loss if output.extra_loss is None else loss + output.extra_loss
    total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_halting_is_decided_in_float32_whatever_the_precision() -> None:
    halting, x = small().decoder.halting, torch.randn(2, 3, 16)
    with torch.autocast("cpu", torch.bfloat16):
        found = halting(x)
    assert found.equal(halting(x))


def test_writing_in_bfloat16_works_too() -> None:
    model = small()
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        state = model.start(source([5, 3, 4]), attention=True)
        for last_B in target().unbind(1):
            logits, state = model.step(last_B, state)
            assert logits.isfinite().all()
            assert_close(state.attention_BS.float().sum(-1), torch.ones(3), atol=0.02, rtol=0)
