"""What a model tells of itself, and how a score shows it."""

from typing import Any

import pytest
import torch

from conftest import small
from regard.decode.translator import Translator
from regard.evaluation.translation import evaluate
from regard.models import build
from regard.text.pair import Pair
from regard.text.tokenizers.tokenizer import Listed

WORDS = Listed("words", ["▁a", "▁b", "▁c", "▁d"])
PAIRS = [Pair("a b c", "c b a"), Pair("a", "a"), Pair("d d d d b", "b d"), Pair("c a", "a b c d a b c d")] * 20


def writer(name: str, **settings: Any) -> Translator:
    torch.manual_seed(8)
    return Translator(build(small(name, **settings).model, WORDS.size), WORDS)  # type: ignore[arg-type]


def thinker(**settings: Any) -> Translator:
    """Its words halt at different repetitions, as they do after training."""
    made = writer("universal", depth=5, threshold=0.8, **settings)
    torch.nn.init.normal_(made.model.source_embedding.table.weight)
    for part in (made.model.encoder, made.model.decoder):
        torch.nn.init.normal_(part.halting.unit.weight)
        torch.nn.init.zeros_(part.halting.unit.bias)
    return made


def told(translator: Translator, pairs: list[Pair] = PAIRS) -> dict[str, float]:
    return evaluate(translator, pairs, metrics=["bleu"], beam=1, max_length=3).told


def test_a_universal_transformer_tells_its_mean_repetitions_per_word() -> None:
    ours = thinker()
    found = told(ours)
    assert set(found) == {"encoder_steps_per_word", "decoder_steps_per_word"}
    # Weighed by words: a text's words by their count, END on one side and BEGIN on the other counted.
    alone = [told(ours, [pair]) for pair in PAIRS[:4]]
    for side, name in enumerate(("encoder_steps_per_word", "decoder_steps_per_word")):
        words = [len(pair[side].split()) + 1 for pair in PAIRS[:4]]
        mean = sum(one[name] * count for one, count in zip(alone, words, strict=True)) / sum(words)
        assert found[name] == pytest.approx(mean)
        assert len({one[name] for one in alone}) > 3


def test_what_is_told_is_the_same_in_the_midst_of_training() -> None:
    ours = thinker(dropout=0.5, offset=30)
    still = told(ours)
    ours.model.train()
    assert told(ours) == still and all(module.training for module in ours.model.modules())


def test_a_convolution_tells_how_many_words_it_sees() -> None:
    # Each layer of kernel 3 adds one word on either side; in the decoder, two before.
    found = told(writer("conv", depth=4, decoder_depth=2, kernel=3))
    assert found == {"source_words_in_view": 9, "target_words_in_view": 5}


@pytest.mark.parametrize(("name", "settings"), [("transformer", {}), ("universal", {"halting": False})])
def test_others_have_nothing_to_tell(name: str, settings: dict[str, Any]) -> None:
    assert told(writer(name, **settings)) == {}


def test_it_stands_in_the_table_and_among_the_lines() -> None:
    report = evaluate(writer("conv", depth=4), PAIRS, metrics=["bleu"], beam=1, max_length=3)
    assert report.as_table()["source_words_in_view"] == 9
    assert "source words in view: 9" in report.lines()
    halting = evaluate(writer("universal", depth=3), PAIRS, metrics=["bleu"], beam=1, max_length=3)
    assert "encoder steps per word: 3" in halting.lines()
