"""CTranslate2 writes what torch writes, starts without it, and leaves to it what it cannot do."""

from pathlib import Path

import pytest
import safetensors.numpy

import regard
from regard import folder
from regard.decode.translator import Translator
from regard.engine.translator import FastTranslator
from regard.text.tokenizer import BEGIN, END, PAD, UNKNOWN
from untrained import made

TEXTS = ["a b c", "d", "", "o n m l k j i h", "c c a b a", "  ", "b", "e f g h i j k l m n o a b c d e f", "a b c"]
CAN = [{}, {"norm": "before"}, {"positions": "learned", "longest": 32}, {"activation": "gelu"}, {"tie": "target"}]
CAN += [
    {"tie": "none"},
    {"decoder_depth": 1},
    {"width": 18, "heads": 3, "inner": 13},
    {"tie": "none", "norm": "before"},
]
CAN += [{"tie": "target", "positions": "learned", "longest": 40}]
CANNOT = [("transformer", {"activation": "elu"}), ("transformer", {"positions": "relative"}), ("gru", {}), ("lm", {})]


def leaning(path: Path, end: float = 1.5, **settings: object) -> Path:
    """A model nobody trained, but that is as good as never tempted by what is forbidden, and likes to end."""
    made("transformer", path, settings=settings)
    weights = safetensors.numpy.load_file(path / folder.MODEL)
    config = folder.load_config(path)[0].model
    last = f"decoder.layers.{(config.decoder_depth or config.depth) - 1}.around_feed_forward.norm"  # type: ignore[union-attr]
    norm = "decoder.norm" if f"{'decoder.norm'}.weight" in weights else last
    # The first number of the last layer becomes 1, whatever is read; so the first column of the words is a bias.
    weights[f"{norm}.weight"][0], weights[f"{norm}.bias"][0] = 0, 1
    weights["words.weight"] *= 2
    weights["words.weight"][[PAD, UNKNOWN, BEGIN], 0] = -40
    weights["words.weight"][END, 0] = end
    safetensors.numpy.save_file(weights, path / folder.MODEL)
    return path


def both(path: Path) -> tuple[FastTranslator, Translator]:
    return regard.load(path, engine="ctranslate2"), regard.load(path, device="cpu")


@pytest.mark.parametrize("variant", CAN, ids=str)
@pytest.mark.parametrize(
    "settings", [{"beam": 1}, {"beam": 5}, {"beam": 4, "n_best": 3, "length_penalty": 0.0}], ids=str
)
def test_both_engines_write_the_same(tmp_path: Path, variant: dict[str, object], settings: dict[str, object]) -> None:
    fast, slow = both(leaning(tmp_path / "m", **variant))
    found, expected = (one.n_best(TEXTS, precision="float32", **settings) for one in (fast, slow))
    assert [[text for text, _ in some] for some in found] == [[text for text, _ in some] for some in expected]
    scores = [[score for some in part for _, score in some] for part in (found, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert len({some[0].text for some in found}) > 3, "texts that are all alike would prove nothing"
