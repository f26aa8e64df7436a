"""What a model can be trained to do: one file for each job, and how the right one is found for a model and its text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.config import BertConfig, ClassifierConfig, Config, model_name
from regard.errors import DataError
from regard.models import MODELS
from regard.models.base import LanguageModel
from regard.models.bert import Bert
from regard.text.corpus import TABLES, open_corpus
from regard.text.plain_text import BUILTIN as BUILTIN_TEXTS
from regard.text.plain_text import open_documents
from regard.text.shards.prepare_pairs import Learn
from regard.training.tasks.base import Job
from regard.training.tasks.classification import Labelling
from regard.training.tasks.language_model import Text
from regard.training.tasks.masked_lm import Masking
from regard.training.tasks.translation import Pairs

__all__ = ["AnyJob", "open_job"]

AnyJob = Job[Any, Any]


def open_job(
    data: Sequence[str], valid: Sequence[str], config: Config, *, spool: Path | None = None, learn: Learn | None = None
) -> AnyJob:
    """The job that these names of files, as the user typed them, and the model make together."""
    if "-" in valid:
        raise DataError("--valid cannot be standard input. Save it to a file first.")
    if not valid and len(data) == 1 and data[0].startswith("builtin:") and "/" not in data[0]:
        valid = [data[0] + "/valid"]
    text = config.text
    if kind_of(data, config) == "pairs":
        job = Labelling if isinstance(config.model, ClassifierConfig) else Pairs
        pairs = open_corpus(data, columns=text.columns, spool=spool and spool / "stdin.tsv")
        return job(pairs, open_corpus(valid, columns=text.columns) if valid else None, config, learn)
    reading = Masking if isinstance(config.model, BertConfig) else Text
    documents = open_documents(data, unit=text.document, columns=text.columns, spool=spool and spool / "stdin.txt")
    others = open_documents(valid, unit=text.document, columns=text.columns) if valid else None
    return reading(documents, others, config, learn)


def kind_of(data: Sequence[str], config: Config) -> str:
    """Whether these names stand for "pairs" or running "text", for this model."""
    name, kind = model_name(config.model), config.text.kind
    family = MODELS[type(config.model)]
    if family is Bert:
        if kind == "pairs":
            raise DataError(
                f"{name} learns from running text. Set text.kind=text, or use --model classifier for labels."
            )
        return "text"
    if not issubclass(family, LanguageModel):
        if kind == "text" or any(part in BUILTIN_TEXTS for part in data):
            raise DataError(
                f"{name} learns from pairs, not from running text. Use --model lm, lstm, gru or rnn for that."
            )
        return "pairs"
    if kind != "auto":
        return kind
    if any(part in BUILTIN_TEXTS for part in data):
        return "text"
    built_in = any(part.startswith("builtin:") for part in data)
    return "pairs" if built_in or any(_is_table(part, config.text.columns) for part in data) else "text"


def _is_table(name: str, columns: str) -> bool:
    ending = Path(name.lower().removesuffix(".gz")).suffix
    # A file of JSON lines can be either; two names mean pairs, and one means text.
    return ending in TABLES and (ending != ".jsonl" or "," in columns)
