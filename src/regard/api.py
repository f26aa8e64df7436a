"""The Python side of each command: `regard.train`, `regard.load`, `regard.score`, `regard.check`."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import torch

from regard import checkpoint, folder, run
from regard.allocator import keep_memory
from regard.config import Config, merge, model_name, parse_set, read_recipe
from regard.decode.author import Author
from regard.decode.rescored import Judge
from regard.decode.together import Together
from regard.decode.translator import Translator
from regard.device import pick_device, set_threads
from regard.errors import FolderError
from regard.evaluate import Report, evaluate
from regard.inspection import Report as DataReport
from regard.inspection import check as check_corpus
from regard.models.bert import Bert, Classifier
from regard.models.interface import LanguageModel, Model, Writer
from regard.reading.classify import Labeller
from regard.reading.fill import Filler
from regard.run import Outcome
from regard.see.trace import Facts
from regard.text.arguments import path_of, paths_of, threads_of
from regard.text.corpus import open_corpus
from regard.text.pair import Pair
from regard.training.distributed import joined
from regard.training.loop import Display
from regard.weights import Loaded, load_model, load_weights, weights_of

Data = str | Path | Sequence[str | Path]
T = TypeVar("T")


class Use(NamedTuple):
    """What comes out of training."""

    kind: type[Any]
    """The object that uses the model."""
    make: Callable[[Path, Loaded, torch.device, Facts], Any]
    learned: str
    """What to say to who asks it for something else."""


def _translator(path: Path, loaded: Loaded, device: torch.device, facts: Facts) -> Translator:
    keep_memory()  # a search asks for the same large tensors again and again
    model, tokenizer, config, _ = loaded
    return Translator(cast(Writer, model), tokenizer, config.decode, device, facts, path)


def _author(path: Path, loaded: Loaded, device: torch.device, facts: Facts) -> Author:
    model, tokenizer, config, _ = loaded
    window = config.text.longest
    return Author(cast(LanguageModel, model), tokenizer, config.decode, device, window=window, facts=facts)


def _filler(path: Path, loaded: Loaded, device: torch.device, facts: Facts) -> Filler:
    guesses = "words" in loaded.about.get("heads", ["words"])
    return Filler(cast(Bert, loaded.model), loaded.tokenizer, device, guesses=guesses, facts=facts)


def _labeller(path: Path, loaded: Loaded, device: torch.device, facts: Facts) -> Labeller:
    return Labeller(cast(Classifier, loaded.model), loaded.tokenizer, loaded.about["labels"], device, facts=facts)


# By the name of the job, which the model folder keeps.
USES = {
    "pairs": Use(Translator, _translator, 'to write one text for another. Use: regard translate {} "your text"'),
    "text": Use(Author, _author, 'to go on with a text. Use: regard write {} "your beginning"'),
    "masking": Use(Filler, _filler, 'to guess hidden words. Use: regard fill {} "Text with a <mask> in it."'),
    "labelling": Use(Labeller, _labeller, 'to label texts. Use: regard classify {} "your text"'),
}


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
    config = folder.settings_over(table, first, words)
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


def load(path: str | Path, *, device: str = "auto", threads: int = 0) -> Any:
    """The model in a folder, ready for what it learned.

    A Translator (pairs), an Author (running text), a Filler (hidden words) or a Labeller (labels).
    """
    set_threads(threads_of(threads))
    loaded = load_model(path_of(path, "path"))
    facts = _facts(Path(path), loaded.model, loaded.config)
    return use_of(Path(path), loaded.about).make(Path(path), loaded, pick_device(device), facts)


def load_step(path: str | Path, step: int, *, device: str = "auto", threads: int = 0) -> Any:
    """The same as it was after so many steps of training, if that checkpoint is kept."""
    checkpoints = Path(path) / folder.CHECKPOINTS
    kept = checkpoint.steps(checkpoints)
    if step not in kept:
        there = f"There are: {', '.join(map(str, kept))}." if kept else "There are none."
        raise FolderError(f"{path} has no checkpoint of step {step}. {there} See train.keep.")
    loaded = load(path, device=device, threads=threads)
    weights = checkpoint.folder_of(checkpoints, step) / checkpoint.WEIGHTS
    load_weights(loaded.model, checkpoint.load_tensors(weights), weights)
    loaded.facts = loaded.facts._replace(folder=f"{loaded.facts.folder}, step {step:,}")
    return loaded


def use_of(path: Path, about: dict[str, Any]) -> Use:
    """What the model in a folder is good for, from what is written about it."""
    job = about.get("job", "pairs")
    if job not in USES:
        raise FolderError(f"{path} learned {job!r}, which this version of Regard does not know. Use a newer one.")
    return USES[job]


def load_as(kind: type[T], path: str | Path, *, device: str = "auto", threads: int = 0) -> T:
    """The same, or an error if the model in the folder cannot do what is asked."""
    use = use_of(Path(path), folder.load_config(Path(path))[1])
    if not issubclass(use.kind, kind):
        raise FolderError(f"The model in {path} learned {use.learned.format(path)}")
    loaded = load(path, device=device, threads=threads)
    assert isinstance(loaded, kind)
    return loaded


def load_together(paths: Sequence[str | Path], *, device: str = "auto", threads: int = 0) -> Translator:
    """The models in several folders as one translator, which averages their probabilities at each word."""
    translators = [load_as(Translator, path, device=device, threads=threads) for path in paths]
    return translators[0] if len(paths) == 1 else Together(translators, [Path(path) for path in paths])


def load_judge(path: str | Path, *, device: str = "auto", threads: int = 0) -> Judge:
    """The model in a folder as a judge of translations: one that translates too, or a language model of the target."""
    judge = load(path, device=device, threads=threads)
    if isinstance(judge, Author):
        return lambda _, targets: judge.log_probabilities(targets)
    if isinstance(judge, Translator):
        return judge.log_probabilities
    raise FolderError(f"The model in {path} writes nothing, so it has no probability for a text. Name another one.")


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


def _facts(path: Path, model: Model, config: Config) -> Facts:
    """What pictures of the model say of it."""
    settings = dataclasses.asdict(config.model)
    shown = [
        f"{name.replace('_', ' ')} {settings[name]}"
        for name in ("depth", "decoder_depth", "heads", "width")
        if settings.get(name)
    ]
    parameters = sum(parameter.numel() for parameter in weights_of(model).values())
    return Facts(model_name(config.model), parameters, path.name, tuple(shown))
