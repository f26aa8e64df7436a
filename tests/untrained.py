"""Model folders that nobody trained, for tests of what can be done with any model."""

from pathlib import Path

from conftest import SMALL
from regard import folder
from regard.config import read
from regard.models import build
from regard.text.tokenizer import Listed
from regard.weights import save_weights, weights_of

JOBS = {"bert": "masking", "classifier": "labelling"}
NO_ATTENTION = {"rnn", "lstm", "gru", "seq2seq"}


def made(name: str, to: Path, job: str = "", settings: dict[str, object] | None = None) -> Path:
    """A small model with random weights, and words of one letter."""
    config = read({"model": {"name": name, **SMALL[name], **(settings or {})}, "text": {"tokenizer": "words"}})
    words = Listed("words", ["<mask>", *(f"\u2581{letter}" for letter in "abcdefghijklmno")])
    labels = ["good", "bad"] if name == "classifier" else []
    to.mkdir(parents=True)
    folder.save_config(to, config, {"job": job or JOBS.get(name, "pairs"), "labels": labels})
    (to / words.file_name).write_bytes(words.as_bytes())
    save_weights(to, weights_of(build(config.model, words.size, len(labels))))
    return to
