"""Model folders that nobody trained, for tests of what can be done with any model."""

from pathlib import Path

import safetensors.numpy

from conftest import SMALL
from regard.config import read
from regard.folder import layout
from regard.folder.weights import save_weights, weights_of
from regard.models import build
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, UNKNOWN, Listed, Tokenizer, learn_tokenizer

JOBS = {"bert": "masking", "classifier": "labelling"}
SENTENCES = ["the cat sat on the mat", "a café, the naïve cat 😀", "it was too tired\nto cross the street"] * 3
NO_ATTENTION = {"rnn", "lstm", "gru", "seq2seq"}


def made(name: str, to: Path, job: str = "", settings: dict[str, object] | None = None, subwords: str = "") -> Path:
    """A small model with random weights, and words of one letter, or subwords learned by SentencePiece."""
    text = {"tokenizer": subwords or "words", "vocabulary": 60}
    config = read({"model": {"name": name, **SMALL[name], **(settings or {})}, "text": text})
    words: Tokenizer = Listed("words", ["<mask>", *(f"\u2581{letter}" for letter in "abcdefghijklmno")])
    words = learn_tokenizer(SENTENCES, config.text, mask=True) if subwords else words
    labels = ["good", "bad"] if name == "classifier" else []
    to.mkdir(parents=True)
    layout.save_config(to, config, {"job": job or JOBS.get(name, "pairs"), "labels": labels})
    (to / words.file_name).write_bytes(words.as_bytes())
    save_weights(to, weights_of(build(config.model, words.size, len(labels))))
    return to


def leaning(
    path: Path, end: float = 0.5, forbidden: float = -40.0, name: str = "transformer", **settings: object
) -> Path:
    """A model nobody trained, but that leans towards ending, and away from what is forbidden."""
    made(name, path, settings=settings)
    weights = safetensors.numpy.load_file(path / layout.MODEL)
    part = "" if name == "lm" else "decoder."
    last = max(key for key in weights if key.startswith(f"{part}layers") and key.endswith("forward.norm.weight"))
    norm = f"{part}norm" if f"{part}norm.weight" in weights else last.removesuffix(".weight")
    # The first number of the last layer becomes 1, whatever is read; so the first column of the words is a bias.
    weights[f"{norm}.weight"][0], weights[f"{norm}.bias"][0] = 0, 1
    weights["words.weight"] *= 2
    weights["words.weight"][[PAD, UNKNOWN, BEGIN], 0] = forbidden
    weights["words.weight"][END, 0] = end
    safetensors.numpy.save_file(weights, path / layout.MODEL)
    return path
