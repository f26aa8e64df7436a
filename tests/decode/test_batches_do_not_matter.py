"""A sentence's translation is the same whatever batch it stands in: with a real, trained model."""

import random
from pathlib import Path

import pytest

import regard

SENTENCES = [" ".join(str(31 * i % 10**length)) for i in range(1, 13) for length in (1, 3, 5, 7)]


@pytest.mark.parametrize(
    "settings",
    [{"beam": 1}, {"beam": 4}, {"beam": 4, "coverage_penalty": 0.2}, {"sample": True, "temperature": 2.0}],
    ids=str,
)
def test_alone_and_in_company_the_same(trained: Path, settings: dict[str, float]) -> None:
    model = regard.load(trained, device="cpu")
    alone = {sentence: model.translate(sentence, **settings) for sentence in SENTENCES}
    shuffled = random.Random(1).sample(SENTENCES, len(SENTENCES))
    for tokens in (16, 100, 100_000):
        together = model.translate(shuffled, batch_tokens=tokens, **settings)
        assert together == [alone[sentence] for sentence in shuffled]


def test_a_stream_in_chunks_is_the_same_as_all_at_once(trained: Path) -> None:
    model = regard.load(trained, device="cpu")
    streamed = [best[0].text for best in model.stream(SENTENCES, chunk=5)]
    assert streamed == model.translate(SENTENCES)
