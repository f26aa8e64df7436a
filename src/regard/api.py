"""The Python side of each command: `regard.train`, `regard.load`, `regard.score`, `regard.check`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.config import merge, parse_set, read_recipe
from regard.evaluation.translation import Report, evaluate
from regard.folder import layout
from regard.inference.torch_models import load_together
from regard.text.arguments import path_of, paths_of
from regard.text.checks import Report as DataReport
from regard.text.checks import check as check_corpus
from regard.text.corpus import open_corpus
from regard.text.pair import Pair
from regard.training import run
from regard.training.distributed import joined
from regard.training.loop import Display
from regard.training.run import Outcome

Data = str | Path | Sequence[str | Path]


def train(
    data: Data,
    to: str | Path,
    *,
    valid: Data = (),
    model: str | None = None,
    size: str | None = None,
    recipe: str | Path | None = None,
    start: str | Path | None = None,
    words_of: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    override: bool = False,
    shard: bool = False,
    display: Display | None = None,
) -> Outcome:
    """Learn from text into a model folder, or go on where an earlier call stopped.

    `data` and `valid` name files as `regard train` does. `settings` are those of `--set`, such as
    {"train.steps": 1000, "model.dropout": 0.1}; they win over the recipe. `start` is a model folder to begin from, and
    `words_of` one whose tokenizer to use. In a script that `torchrun` starts, all processes train together, and `shard`
    spreads the weights over them.
    """
    chosen = {"model": {key: value for key, value in (("name", model), ("size", size)) if value is not None}}
    tables = [read_recipe(path_of(recipe, "recipe"))] if recipe else []
    given = parse_set(f"{key}={value}" for key, value in (settings or {}).items())
    table = merge(*tables, chosen, given)
    first = path_of(start, "start") if start else None
    words = path_of(words_of, "words_of") if words_of else None
    config = layout.settings_over(table, first, words)
    texts = paths_of(data, "data"), paths_of(valid, "valid")
    with joined(shard=shard) as world:
        return run.train(
            texts[0],
            path_of(to, "to"),
            config,
            valid=texts[1],
            start=first,
            override=override,
            display=display,
            world=world,
            tokenizer=words,
        )


def score(
    path: str | Path | Sequence[str | Path], data: Data, *, columns: str = "", device: str = "auto", **settings: Any
) -> Report:
    """Translate a test set with the model in a folder, or in several together, and compare. `settings` as for `evaluate`."""
    translator = load_together(paths_of(path, "path"), device=device)
    return evaluate(translator, read_pairs(data, columns), **settings)


def check(data: Data, *, columns: str = "") -> DataReport:
    """What is in a corpus, and what is wrong with it."""
    return check_corpus(open_corpus(paths_of(data, "data"), columns=columns))


def read_pairs(data: Data, columns: str = "") -> list[Pair]:
    """All pairs of a corpus, in memory, in step with its lines: those with an empty side too."""
    return [pair for _, pair in open_corpus(paths_of(data, "data"), columns=columns).all_pairs()]
