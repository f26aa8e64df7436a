"""What many tests start from: a small configuration of every model, a tiny corpus, and a model trained on it once."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config import MODEL_CONFIGS, Config, read
from regard.models import MODELS
from regard.models.base import Writer

# A shell's background job ignores Ctrl-C, and so do all that it starts; commands under test are to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SMALL: dict[str, dict[str, Any]] = {
    "rnn": {"width": 16, "depth": 2, "dropout": 0.0},
    "lstm": {"width": 16, "depth": 2, "dropout": 0.0},
    "gru": {"width": 16, "depth": 2, "dropout": 0.0},
    "seq2seq": {"width": 16, "depth": 2, "dropout": 0.0},
    "bahdanau": {"width": 16, "depth": 2, "dropout": 0.0},
    "luong": {"width": 16, "depth": 2, "dropout": 0.0},
    "conv": {"width": 16, "depth": 1, "kernel": 3, "longest": 32, "dropout": 0.0},
    "transformer": {"width": 16, "heads": 2, "depth": 2, "inner": 24, "dropout": 0.0, "norm": "after"},
    "universal": {"width": 16, "heads": 2, "depth": 3, "inner": 24, "dropout": 0.0, "norm": "after"},
    "lm": {"width": 16, "heads": 2, "depth": 2, "inner": 24, "longest": 64, "dropout": 0.0},
    "memory": {"width": 16, "heads": 2, "depth": 3, "inner": 24, "dropout": 0.0, "block": 4},
    "bert": {"width": 16, "heads": 2, "depth": 2, "inner": 24, "longest": 32, "dropout": 0.0},
    "classifier": {"width": 16, "heads": 2, "depth": 2, "inner": 24, "longest": 32, "dropout": 0.0},
}

RECURRENT: list[dict[str, Any]] = [
    {},
    {"cell": "gru"},
    {"bidirectional": False},
    {"tie": "target"},
    {"tie": "none"},
]

# Every choice that a model's settings offer, each tried at least once.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "rnn": [{}, {"tie": False}],
    "lstm": [{}, {"tie": False}],
    "gru": [{}, {"tie": False}],
    "seq2seq": RECURRENT,
    "bahdanau": RECURRENT,
    "luong": [*RECURRENT, {"score": "dot"}, {"score": "concat"}, {"input_feeding": False}],
    "conv": [
        {},
        {"kernel": 5, "depth": 2},
        {"positions": "none", "scaled": False},
        {"decoder_depth": 2},
        {"tie": "target"},
        {"tie": "none"},
    ],
    "transformer": [
        {},
        {"norm": "before"},
        {"positions": "learned", "longest": 32},
        {"positions": "relative", "span": 3},
        {"activation": "elu"},
        {"activation": "gelu"},
        {"tie": "target"},
        {"tie": "none"},
        {"decoder_depth": 1},
    ],
    "universal": [
        {},
        {"halting": False},
        {"norm": "before"},
        {"positions": "relative", "span": 3},
        {"activation": "elu"},
        {"activation": "gelu"},
        {"tie": "target"},
        {"tie": "none"},
    ],
    "lm": [
        {},
        {"norm": "after"},
        {"positions": "sinusoidal"},
        {"positions": "relative", "span": 3},
        {"activation": "relu"},
        {"activation": "elu"},
        {"activation": "gelu"},
        {"tie": False},
    ],
    "memory": [
        {},
        {"full": True},
        {"norm": "after"},
        {"activation": "elu"},
        {"activation": "gelu"},
        {"tie": False},
        {"kernel": 2, "block": 3},
        {"kernel": 1, "block": 1},
    ],
    "bert": [
        {},
        {"activation": "relu"},
        {"activation": "gelu_tanh"},
        {"next_sentence": False},
        {"whole_words": True},
    ],
    "classifier": [{}, {"activation": "relu"}, {"activation": "gelu_tanh"}],
}
WRITERS = [name for name, kind in MODEL_CONFIGS.items() if issubclass(MODELS[kind], Writer)]
READERS = [name for name in MODEL_CONFIGS if name not in WRITERS]
VOCABULARY = 20
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tests are small: more threads only get in each other's way. Randomness begins anew in each."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield


def small(name: str, **settings: Any) -> Config:
    return read({"model": {"name": name, **SMALL[name], **settings}})


def write_digits(folder: Path, count: int = 200, name: str = "train") -> list[str]:
    """A parallel corpus anyone can check: numbers, digit by digit, in words."""
    numbers = [str(7919 * i % 10 ** (1 + i % 4)) for i in range(1, count + 1)]
    source, target = folder / f"{name}.num", folder / f"{name}.en"
    source.write_text("".join(" ".join(n) + "\n" for n in numbers))
    target.write_text("".join(" ".join(DIGITS[int(d)] for d in n) + "\n" for n in numbers))
    return [str(source), str(target)]


QUICK = {
    "text.tokenizer": "words",
    "model.width": 32,
    "model.heads": 2,
    "model.depth": 1,
    "model.inner": 64,
    "model.dropout": 0.1,
    "train.batch_tokens": 256,
    "train.steps": 40,
    "train.rate": 0.01,
    "train.warm_up": 20,
    "train.log_steps": 5,
    "train.validate_steps": 20,
    "train.validate_sentences": 10,
    "train.checkpoint_steps": 10,
    "train.keep": 3,
    "train.average": 2,
    "train.threads": 1,
    "train.precision": "float32",
}


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that translates digits into words, trained once for all tests. Read it, do not change it."""
    folder = tmp_path_factory.mktemp("digits")
    torch.set_num_threads(1)
    regard.train(write_digits(folder, 400), folder / "model", settings={**QUICK, "train.steps": 800})
    return folder / "model"


@pytest.fixture(autouse=True, scope="session")
def environment() -> None:
    """What the commands that tests start inherit: one thread each, and scores that do not vary."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("SACREBLEU_SEED", "12345")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window: REGARD_CHROMIUM names it, else it is the system's or playwright's own.

    Where there is none, the tests that need it are skipped; with REGARD_BROWSER=required, they fail.
    """
    no_browser = pytest.fail if os.environ.get("REGARD_BROWSER") == "required" else pytest.skip
    try:
        from playwright import sync_api as playwright
    except ImportError:
        no_browser("playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    system = os.environ.get("REGARD_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with playwright.sync_playwright() as started:
        try:
            found = started.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except playwright.Error as error:
            no_browser(f"no chromium can be started: {str(error).splitlines()[0]}")
        yield found
        found.close()
