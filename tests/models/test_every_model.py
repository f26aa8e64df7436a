"""The laws of the contract, for every entry of MODELS: of those that write, then of those that read."""

from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import safetensors.torch
import torch
from torch.testing import assert_close

from conftest import READERS, SMALL, VARIANTS, VOCABULARY, WRITERS, small
from regard.config import MODEL_CONFIGS, ModelConfig
from regard.folder.weights import load_weights
from regard.models import MODELS, build
from regard.models.base import LanguageModel, Reader, Source, Writer
from regard.training.losses.label_smoothing import smoothed_cross_entropy

CASES = [(name, variant) for name in WRITERS for variant in VARIANTS[name]]
READING = [(name, variant) for name in READERS for variant in VARIANTS[name]]


@pytest.fixture(params=CASES, ids=str)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    name, variant = request.param
    return small(name, **variant).model


@pytest.fixture
def model(config: ModelConfig) -> Writer:
    return build(config, VOCABULARY).eval()


def source(lengths: list[int], size: int | None = None) -> Source:
    size = size or max(lengths)
    ids = torch.randint(4, VOCABULARY, (len(lengths), size), generator=torch.Generator().manual_seed(1))
    lengths_B = torch.tensor(lengths)
    return Source(ids.masked_fill(torch.arange(size) >= lengths_B[:, None], 0), lengths_B)


def target(rows: int = 3, length: int = 6) -> torch.Tensor:
    return torch.randint(4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(2))


def test_every_model_has_a_class_and_a_small_configuration() -> None:
    assert set(MODELS) == set(MODEL_CONFIGS.values())
    assert set(SMALL) == set(VARIANTS) == set(MODEL_CONFIGS)


def test_every_choice_of_every_setting_is_tried() -> None:
    for name, kind in MODEL_CONFIGS.items():
        tried = [small(name, **variant).model for variant in VARIANTS[name]]
        for setting, hint in get_type_hints(kind).items():
            choices = {True, False} if hint is bool else set(get_args(hint))
            assert choices <= {getattr(config, setting) for config in tried}, f"{name}: {setting}"


def test_stepping_equals_reading_whole(model: Writer) -> None:
    read, written = source([5, 3, 4]), target()
    whole = model.words(model(read, written).hidden_BTW)
    state = model.start(read)
    for t in range(written.shape[1]):
        logits, state = model.step(written[:, t], state)
        assert_close(logits, whole[:, t], atol=1e-5, rtol=1e-4)


def test_padding_changes_nothing(model: Writer) -> None:
    written = target(2)
    short, padded = source([4, 4]), source([4, 4], size=9)
    padded.ids_BS[:, :4] = short.ids_BS
    assert_close(model(short, written).hidden_BTW, model(padded, written).hidden_BTW, atol=1e-5, rtol=1e-4)


def test_a_later_word_never_changes_an_earlier_prediction(model: Writer) -> None:
    read, written = source([5, 3, 4]), target()
    other = written.clone()
    other[:, 4:] = 5
    assert_close(model(read, written).hidden_BTW[:, :4], model(read, other).hidden_BTW[:, :4])


def test_reordered_rows_go_on_as_the_rows_they_were(model: Writer) -> None:
    read, written = source([5, 3, 4]), target()
    _, state = model.step(written[:, 0], model.start(read))
    plain, _ = model.step(written[:, 1], state)
    order = torch.tensor([2, 2, 0])
    reordered, _ = model.step(written[order, 1], state.reorder(order))
    assert_close(reordered, plain[order], atol=1e-6, rtol=1e-5)


def test_rows_that_share_a_sentence_go_on_as_each_would_alone(model: Writer) -> None:
    read, written = source([5, 3, 4]), target()
    _, state = model.step(written[:, 0], model.start(read))
    # Beams of one sentence, then exchanged among them; a sentence leaves; rows of one sentence more than of another.
    for rows in ([0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 4], [1, 0, 5, 4], [0, 2, 3], [2, 0, 0]):
        order = torch.tensor(rows)
        words_R = order + 4
        shared, after = model.step(words_R, state.reorder(order))
        alone = [model.step(words_R[r : r + 1], state.reorder(order[r : r + 1]))[0] for r in range(len(rows))]
        assert_close(shared, torch.cat(alone), atol=1e-5, rtol=1e-4)
        state = after


def test_a_step_leaves_the_state_it_was_given_alone(model: Writer) -> None:
    read, written = source([5, 3, 4]), target()
    state = model.start(read)
    first, _ = model.step(written[:, 0], state)
    again, _ = model.step(written[:, 0], state)
    assert_close(first, again)


def test_attention_rows_sum_to_one_and_seeing_them_changes_nothing(model: Writer) -> None:
    read, written = source([5, 3, 4]), target()
    fused, plain = model(read, written), model(read, written, attention=True)
    assert not fused.attention
    assert_close(fused.hidden_BTW, plain.hidden_BTW, atol=1e-5, rtol=1e-4)
    for weights in plain.attention.values():
        assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_a_step_says_where_it_looked_when_asked(model: Writer) -> None:
    read, written = source([5, 3, 4]), target()
    _, state = model.step(written[:, 0], model.start(read, attention=True))
    seen = state.attention_BS
    if seen is not None:  # models without attention say so
        assert_close(seen.sum(-1), torch.ones(3))
        assert seen[1, 3:].abs().max() == 0, "a padded word was looked at"


def test_saving_and_loading_changes_nothing(model: Writer, config: ModelConfig) -> None:
    stored = safetensors.torch.load(safetensors.torch.save({k: p.detach() for k, p in model.named_parameters()}))
    other = build(config, VOCABULARY).eval()
    load_weights(other, stored, Path("weights"))
    assert_close(other(source([5, 3]), target(2)).hidden_BTW, model(source([5, 3]), target(2)).hidden_BTW)


@pytest.mark.parametrize("name", WRITERS)
def test_one_batch_can_be_memorised(name: str) -> None:
    model = build(small(name).model, VOCABULARY)
    read, written = source([5, 3, 4]), target()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(120):
        hidden = model(read, written[:, :-1]).hidden_BTW.flatten(0, 1)
        loss = smoothed_cross_entropy(hidden, model.words.weight, written[:, 1:].flatten(), 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert model.words(model(read, written[:, :-1]).hidden_BTW).argmax(-1).equal(written[:, 1:])


def test_a_language_model_needs_no_source(model: Writer) -> None:
    if not isinstance(model, LanguageModel):
        return
    written = target()
    nothing = Source(written[:, :0], torch.zeros(3, dtype=torch.long))
    whole = model.words(model(nothing, written).hidden_BTW)
    state = model.start(nothing)
    for t in range(written.shape[1]):
        logits, state = model.step(written[:, t], state)
        assert_close(logits, whole[:, t], atol=1e-5, rtol=1e-4)


def test_a_source_is_the_beginning_of_a_language_models_text(model: Writer) -> None:
    if not isinstance(model, LanguageModel):
        return
    read, written = source([5, 5, 5]), target()
    nothing = Source(written[:, :0], torch.zeros(3, dtype=torch.long))
    joined = model(nothing, torch.cat([read.ids_BS, written], 1)).hidden_BTW[:, 5:]
    assert_close(model(read, written).hidden_BTW, joined, atol=1e-5, rtol=1e-4)


# Models that read.


@pytest.fixture(params=READING, ids=str)
def reading(request: pytest.FixtureRequest) -> ModelConfig:
    name, variant = request.param
    return small(name, **variant).model


@pytest.fixture
def reader(reading: ModelConfig) -> Reader:
    return build(reading, VOCABULARY).eval()  # type: ignore[return-value]


def test_padding_changes_nothing_for_a_reader(reader: Reader) -> None:
    short, padded = source([4, 4]), source([4, 4], size=9)
    padded.ids_BS[:, :4] = short.ids_BS
    assert_close(reader(*short).hidden_BTW, reader(*padded).hidden_BTW[:, :4], atol=1e-5, rtol=1e-4)


def test_a_reader_sees_both_sides(reader: Reader) -> None:
    for weight in reader.parameters():
        weight.data.mul_(5 if weight.dim() > 1 else 1)  # new ones are so small that little shows
    read = source([6, 6])
    other = read.ids_BS.clone()
    other[:, -1] = 23 - other[:, -1]
    changed = (reader(*read).hidden_BTW - reader(other, read.lengths_B).hidden_BTW).abs().amax(-1)
    assert (changed > 1e-6).all()


def test_a_readers_attention_rows_sum_to_one_and_seeing_them_changes_nothing(reader: Reader) -> None:
    read = source([5, 3, 4])
    fused, plain = reader(*read), reader(*read, attention=True)
    assert not fused.attention
    real = torch.arange(5) < read.lengths_B[:, None]
    assert_close(fused.hidden_BTW[real], plain.hidden_BTW[real], atol=1e-5, rtol=1e-4)
    assert plain.attention
    for weights in plain.attention.values():
        assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_saving_and_loading_a_reader_changes_nothing(reader: Reader, reading: ModelConfig) -> None:
    stored = safetensors.torch.load(safetensors.torch.save({k: p.detach() for k, p in reader.named_parameters()}))
    other = build(reading, VOCABULARY).eval()
    load_weights(other, stored, Path("weights"))
    assert_close(other(*source([5, 3])).hidden_BTW, reader(*source([5, 3])).hidden_BTW)
