"""The Python side of each command: `regard.train`, `regard.load`, `regard.score`, `regard.check`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard import folder, run
from regard.config import merge, parse_set, read, read_recipe
from regard.decode.translator import Translator
from regard.device import pick_device, set_threads
from regard.evaluate import Report, evaluate
from regard.inspection import Report as DataReport
from regard.inspection import check as check_corpus
from regard.run import Outcome
from regard.text.corpus import open_corpus
from regard.text.pair import Pair
from regard.training.loop import Display

Data = str | Path | Sequence[str | Path]


def train(
    data: Data,
    to: str | Path,
    *,
    valid: Data = (),
    model: str | None = None,
    size: str | None = None,
    recipe: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    override: bool = False,
    display: Display | None = None,
) -> Outcome:
    """Learn from text into a model folder, or go on where an earlier call stopped.

    `data` and `valid` name files as `regard train` does. `settings` are those of `--set`, such as
    {"train.steps": 1000, "model.dropout": 0.1}; they win over the recipe.
    """
    chosen = {"model": {key: value for key, value in (("name", model), ("size", size)) if value is not None}}
    tables = [read_recipe(Path(recipe))] if recipe else []
    given = parse_set(f"{key}={value}" for key, value in (settings or {}).items())
    config = read(merge(*tables, chosen, given))
    return run.train(_names(data), Path(to), config, valid=_names(valid), override=override, display=display)


def load(path: str | Path, *, device: str = "auto", threads: int = 0) -> Translator:
    """The model in a folder, ready to translate."""
    set_threads(threads)
    model, tokenizer, config = folder.load_model(Path(path))
    return Translator(model, tokenizer, config.decode, pick_device(device))


def score(path: str | Path, data: Data, *, columns: str = "", device: str = "auto", **settings: Any) -> Report:
    """Translate a test set with the model in a folder, and compare. `settings` as for `evaluate`."""
    translator = load(path, device=device)
    return evaluate(translator, read_pairs(data, columns), **settings)


def check(data: Data, *, columns: str = "") -> DataReport:
    """What is in a corpus, and what is wrong with it."""
    return check_corpus(open_corpus(_names(data), columns=columns))


def read_pairs(data: Data, columns: str = "") -> list[Pair]:
    """All pairs of a corpus, in memory."""
    return [pair for _, pair in open_corpus(_names(data), columns=columns).pairs()]


def _names(data: Data) -> list[str]:
    return [str(data)] if isinstance(data, str | Path) else [str(name) for name in data]
