"""Laws of every model that reads source and target in one row."""

import pytest
import torch
from torch.testing import assert_close

from conftest import SMALL, VARIANTS, small
from one_row import VOCABULARY, logits, nothing, step_by_step, text
from regard.models import MODELS, build
from regard.models.base import LanguageModel, Source

CASES = [
    (name, variant)
    for name in SMALL
    if issubclass(MODELS[type(small(name).model)], LanguageModel)
    for variant in VARIANTS[name]
]
close = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(params=CASES, ids=str)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    name, variant = request.param
    return build(small(name, **variant).model, VOCABULARY).eval()  # type: ignore[return-value]


def test_a_source_is_the_beginning_of_the_text(model: LanguageModel) -> None:
    row = text(3, 9)
    whole = logits(model, nothing(3), row)
    for split in (1, 4, 8):
        source = Source(row[:, :split], torch.full((3,), split))
        assert_close(logits(model, source, row[:, split:]), whole[:, split:], **close)
        assert_close(step_by_step(model, source, row[:, split:]), whole[:, split:], **close)


def test_with_nothing_to_read_it_writes_from_the_first_word(model: LanguageModel) -> None:
    row = text(3, 6)
    assert_close(step_by_step(model, nothing(3), row), logits(model, nothing(3), row), **close)


def test_rows_of_all_lengths_are_read_as_if_alone(model: LanguageModel) -> None:
    lengths, target = [5, 0, 3, 1], text(4, 6)
    read = Source(text(4, 7), torch.tensor(lengths))  # what stands after a row's length is no word of it
    whole, stepped = logits(model, read, target), step_by_step(model, read, target)
    for row, length in enumerate(lengths):
        alone = logits(model, nothing(1), torch.cat([read.ids_BS[row, :length], target[row]])[None])[0, length:]
        assert_close(whole[row], alone, **close)
        assert_close(stepped[row], alone, **close)
