"""The model folder: everything that is needed to translate raw text, and nothing that can execute.

config.json · model.safetensors · tokenizer.model (or .json) · README.md · log.jsonl · probe.jsonl · checkpoints/ ·
cache/ · shortlist.safetensors, if one was asked for
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.config import (
    BertConfig,
    ClassifierConfig,
    Config,
    LmConfig,
    MemoryConfig,
    ReaderConfig,
    RecurrentConfig,
    as_table,
    model_name,
    read,
    read_from,
    read_with_words,
)
from regard.errors import ConfigError, FolderError
from regard.system import files, storage

CONFIG, MODEL, LOG, CARD, CHECKPOINTS, CACHE, LOCK = (
    "config.json", "model.safetensors", "log.jsonl", "README.md", "checkpoints", "cache", ".lock",
)  # fmt: skip
WEIGHT_TYPES = ("float32", "float16", "bfloat16")
TOKENS = "tokens"
"""The tokenised text, in the cache."""
# What a folder may say about itself, and what is used of it; all else may be anything.
_ABOUT: dict[str, type | tuple[type, ...]] = {
    "job": str, "labels": list, "heads": list, "data": str, "valid": str, "finished": str, "imported": str, "from": str,
    "parameters": int, "step": int, "text": dict,
}  # fmt: skip
_LARGEST_CONFIG = 16 << 20
_MOST_OF_A_FOLDER = {"beam": 1000, "n_best": 1000, "min_length": 5000, "max_length": 5000}


@contextmanager
def held(to: Path, mark: str = CONFIG) -> Iterator[None]:
    """Make the folder, for this process alone to write in, or take up one that is ours: it holds a file of the name
    `mark`, or nothing. If the work fails before anything is written, the new folder is not left behind.
    """
    if to.exists() and not to.is_dir():
        raise FolderError(f"--to {to} is a file. Name a folder.")
    new = not to.exists()
    with storage.explained(to):
        storage.make_folder(to)
    ours = {to / LOCK, to / CACHE, *storage.leftovers(to)}
    strangers = sorted(path.name for path in to.iterdir() if path not in ours)
    if strangers and not (to / mark).exists():
        raise FolderError(
            f"--to {to} holds other files ({strangers[0]}), which stay untouched. Name a new or empty folder."
        )
    refuse_leading_out(to)
    with storage.locked(to / LOCK):
        for place in (to, to / CACHE):
            storage.sweep(place)
        try:
            yield
        finally:
            if new and not any(path.is_file() for path in to.rglob("*") if path.name != LOCK):
                storage.remove_folder(to)


def refuse_leading_out(to: Path) -> None:
    """Refuse a folder in which a link leads what is to be written to some other place, or a pipe would take it."""
    with storage.explained(to):
        deep = [path for name in (CACHE, CHECKPOINTS) for path in (to / name).rglob("*")]
        for path in [*to.iterdir(), *deep]:
            # Reading what a link leads to does no harm, and the files that are written whole replace it.
            whole = path.parent == to and path.name in (CONFIG, MODEL, CARD)
            if not whole and files.leads_out(path, to):
                raise FolderError(f"{path} is a link that leads out of {to}, where nothing is written. Remove it.")
            if path.exists() and not path.is_file() and not path.is_dir():
                raise FolderError(f"{path} is no file, but a pipe or a device. Remove it.")


def refuse_used(to: Path) -> None:
    """Refuse a folder that is to be new, and holds something."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise FolderError(f"--to {to} is there already, and stays untouched. Name a new or empty folder.")


def save_config(folder: Path, config: Config, about: dict[str, Any]) -> None:
    """Write all settings, and `about`: what else a reader may want to know, such as the data's name."""
    _refuse_endless(config)
    table = {"format": 1, **as_table(config), "about": about}
    written = json.dumps(table, indent=2, ensure_ascii=False)
    # Half a character, as in a file's name that is not UTF-8, can only be written as an escape.
    escaped = any("\ud800" <= letter <= "\udfff" for letter in written)
    storage.write_file(folder / CONFIG, (json.dumps(table, indent=2) if escaped else written).encode())


def load_config(folder: Path) -> tuple[Config, dict[str, Any]]:
    """Settings and `about` of a model folder."""
    path = folder / CONFIG
    if not folder.is_dir():
        raise FolderError(f"There is no model folder {folder}. Train one with: regard train DATA --to {folder}")
    try:
        table = files.table(path, _LARGEST_CONFIG)
        about = table.pop("about", {})
        if table.pop("format", None) != 1:
            raise ValueError("written by another version of Regard")
        config = read(table)
        _refuse_endless(config)
        _check_about(about, config)
        return config, about
    except FileNotFoundError:
        raise FolderError(
            f"{folder} is not a model folder: it has no {CONFIG}. Name the folder given to --to."
        ) from None
    except (OSError, ValueError, ConfigError) as error:
        raise FolderError(f"{path} cannot be used: {error} Restore it from a copy.") from None


def _refuse_endless(config: Config) -> None:
    """A folder's own defaults hold for every text, unlike what is asked for once."""
    for name, most in _MOST_OF_A_FOLDER.items():
        if (value := getattr(config.decode, name)) > most:
            raise ConfigError(
                f"decode.{name} {value} is too large for a model's default, at most {most}. Ask for it when writing."
            )


def _check_about(about: Any, config: Config) -> None:
    """Refuse what could not have been written of such a model."""
    if not isinstance(about, dict):
        raise ValueError("about is not a table.")
    for name, kind in _ABOUT.items():
        if name in about and not isinstance(about[name], kind):
            raise ValueError(f"about.{name} cannot be {about[name]!r:.100}.")
    for name in ("labels", "heads"):
        if not all(isinstance(one, str) for one in about.get(name, [])):
            raise ValueError(f"about.{name} holds what is no name.")
    job, model = about.get("job", "pairs"), type(config.model)
    reads, goes_on = issubclass(model, ReaderConfig), issubclass(model, (RecurrentConfig, LmConfig, MemoryConfig))
    fits = {"pairs": not reads, "text": goes_on, "masking": model is BertConfig, "labelling": model is ClassifierConfig}
    if not fits.get(job, True):  # what is not known is refused by whoever is to use it
        raise ValueError(f"about.job {job!r} is not what a {model_name(config.model)} learns.")


def settings_over(
    given: Mapping[str, Mapping[str, Any]], start: Path | None = None, words_of: Path | None = None
) -> Config:
    """The settings of a run that begins with the weights and the tokenizer of one folder, or the tokenizer of another."""
    if start and words_of:
        raise ConfigError(f"The model begins with --from {start}, which brings its own words. Leave --words-of away.")
    if start:
        return read_from(load_config(start)[0], given)
    return read_with_words(load_config(words_of)[0], given) if words_of else read(given)


def weights_file(folder: Path) -> Path:
    """The weights that translation uses; an error if there are none yet."""
    path = folder / MODEL
    if not path.exists():
        raise FolderError(
            f"{folder} has no {MODEL} yet: training has not validated once. Let it run on, or look at {LOG}."
        )
    try:
        return files.tensors(path)
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read as weights ({error}). Copy the folder again.") from None


def check_type(path: Path, name: str, found: str) -> None:
    """Refuse a weight of a type no model has: what it would be worth in another is anyone's guess."""
    if found not in WEIGHT_TYPES:
        raise FolderError(
            f"{path} holds {name!r} as {found}; weights are {', '.join(WEIGHT_TYPES)}. "
            "Store it as float32, or copy the folder again."
        )
