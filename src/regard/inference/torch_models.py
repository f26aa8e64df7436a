"""A model folder opened with torch."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import torch

from regard.config import Config, model_name
from regard.decode.ensemble_translator import Together
from regard.decode.generator import Author
from regard.decode.reranking import Judge
from regard.decode.translator import Translator
from regard.encode.torch_classify import Labeller
from regard.encode.torch_fill import Filler
from regard.errors import FolderError
from regard.folder import checkpoints as checkpoint
from regard.folder import layout
from regard.folder.weights import Loaded, load_model, load_weights, weights_of
from regard.interpret.trace import Facts
from regard.models.base import LanguageModel, Model, Writer
from regard.models.bert import Bert, Classifier
from regard.system.allocator import keep_memory
from regard.system.device import pick_device, set_threads
from regard.text.arguments import path_of, threads_of

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
    checkpoints = Path(path) / layout.CHECKPOINTS
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
    use = use_of(Path(path), layout.load_config(Path(path))[1])
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
