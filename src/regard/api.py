"""The Python side of each command: `regard.train`, `regard.load`, `regard.score`, `regard.check`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from regard import folder, run
from regard.config import merge, parse_set, read, read_from, read_recipe
from regard.decode.author import Author
from regard.decode.translator import Translator
from regard.device import pick_device, set_threads
from regard.errors import FolderError
from regard.evaluate import Report, evaluate
from regard.inspection import Report as DataReport
from regard.inspection import check as check_corpus
from regard.models.bert import Bert, Classifier
from regard.models.interface import LanguageModel, Writer
from regard.reading.classify import Labeller
from regard.reading.fill import Filler
from regard.run import Outcome
from regard.text.corpus import open_corpus
from regard.text.pair import Pair
from regard.training.loop import Display

Data = str | Path | Sequence[str | Path]
T = TypeVar("T")

# What comes out of training, by job: the object that uses it, and what to say to who asks it for something else.
USES: dict[str, tuple[type[Any], str]] = {
    "pairs": (Translator, 'to write one text for another. Use: regard translate {} "your text"'),
    "text": (Author, 'to go on with a text. Use: regard write {} "your beginning"'),
    "masking": (Filler, 'to guess hidden words. Use: regard fill {} "Text with a <mask> in it."'),
    "labelling": (Labeller, 'to label texts. Use: regard classify {} "your text"'),
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
    settings: Mapping[str, Any] | None = None,
    override: bool = False,
    display: Display | None = None,
) -> Outcome:
    """Learn from text into a model folder, or go on where an earlier call stopped.

    `data` and `valid` name files as `regard train` does. `settings` are those of `--set`, such as
    {"train.steps": 1000, "model.dropout": 0.1}; they win over the recipe. `start` is a model folder to begin from.
    """
    chosen = {"model": {key: value for key, value in (("name", model), ("size", size)) if value is not None}}
    tables = [read_recipe(Path(recipe))] if recipe else []
    given = parse_set(f"{key}={value}" for key, value in (settings or {}).items())
    table = merge(*tables, chosen, given)
    config = read_from(folder.load_config(Path(start))[0], table) if start else read(table)
    first = Path(start) if start else None
    return run.train(
        _names(data), Path(to), config, valid=_names(valid), start=first, override=override, display=display
    )


def load(path: str | Path, *, device: str = "auto", threads: int = 0) -> Any:
    """The model in a folder, ready for what it learned.

    A Translator (pairs), an Author (running text), a Filler (hidden words) or a Labeller (labels).
    """
    set_threads(threads)
    model, tokenizer, config, about = folder.load_model(Path(path))
    chosen = pick_device(device)
    job = about.get("job", "pairs")
    if job == "text":
        return Author(cast(LanguageModel, model), tokenizer, config.decode, chosen, window=config.text.longest)
    if job == "labelling":
        return Labeller(cast(Classifier, model), tokenizer, about["labels"], chosen)
    if job == "masking":
        return Filler(cast(Bert, model), tokenizer, chosen, guesses="words" in about.get("heads", ["words"]))
    return Translator(cast(Writer, model), tokenizer, config.decode, chosen)


def load_as(kind: type[T], path: str | Path, *, device: str = "auto", threads: int = 0) -> T:
    """The same, or an error if the model in the folder cannot do what is asked."""
    about = folder.load_config(Path(path))[1]
    learned = about.get("job", "pairs")
    if not issubclass(USES[learned][0], kind):
        raise FolderError(f"The model in {path} learned {USES[learned][1].format(path)}")
    loaded = load(path, device=device, threads=threads)
    assert isinstance(loaded, kind)
    return loaded


def score(path: str | Path, data: Data, *, columns: str = "", device: str = "auto", **settings: Any) -> Report:
    """Translate a test set with the model in a folder, and compare. `settings` as for `evaluate`."""
    translator = load_as(Translator, path, device=device)
    return evaluate(translator, read_pairs(data, columns), **settings)


def check(data: Data, *, columns: str = "") -> DataReport:
    """What is in a corpus, and what is wrong with it."""
    return check_corpus(open_corpus(_names(data), columns=columns))


def read_pairs(data: Data, columns: str = "") -> list[Pair]:
    """All pairs of a corpus, in memory."""
    return [pair for _, pair in open_corpus(_names(data), columns=columns).pairs()]


def _names(data: Data) -> list[str]:
    return [str(data)] if isinstance(data, str | Path) else [str(name) for name in data]
