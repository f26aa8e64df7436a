"""A given beginning, read at once."""

import pytest
import torch

from conftest import VARIANTS, VOCABULARY, WRITERS, small
from regard.config import MODEL_CONFIGS, DecodeConfig
from regard.decode.beam_search import beam_search
from regard.decode.prefill import opening
from regard.decode.sampling import greedy, sample
from regard.models import MODELS, build
from regard.models.base import LanguageModel, Source
from toys import same

CASES = [
    (name, variant)
    for name in WRITERS
    if issubclass(MODELS[MODEL_CONFIGS[name]], LanguageModel)
    for variant in VARIANTS[name]
]
GIVEN = [5, 9, 7, 5, 11, 6]
SETTINGS = {"min_length": 2, "max_length": 14, "no_repeat": 2}


def nothing(rows: int) -> Source:
    return Source(torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows, dtype=torch.long))


@pytest.fixture(params=CASES, ids=str)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    name, variant = request.param
    built = build(small(name, **variant).model, VOCABULARY).eval()
    assert isinstance(built, LanguageModel)
    return built


@torch.inference_mode()
def test_it_is_read_at_once(model: LanguageModel) -> None:
    found = opening(model, nothing(1), [GIVEN])
    assert found.written_BT[0, 1:].tolist() == GIVEN and found.total_B < 0


@pytest.mark.parametrize("search", [greedy, beam_search, sample], ids=lambda search: search.__name__)
def test_read_at_once_or_written_word_by_word_it_goes_on_the_same(model: LanguageModel, search) -> None:  # type: ignore[no-untyped-def]
    config = DecodeConfig(**SETTINGS, n_best=3)
    # Beginnings of different lengths are written word by word.
    word_by_word = search(model, nothing(2), config, [GIVEN, GIVEN[:2]])[0]
    assert same(search(model, nothing(1), config, [GIVEN])[0], word_by_word)
