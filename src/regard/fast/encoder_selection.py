"""A model that reads, opened with the engine of one's choice."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from regard.config import BertConfig, ClassifierConfig, Config
from regard.encode.classify import TextLabeller
from regard.encode.embed import TextReader
from regard.encode.fill import TextFiller
from regard.errors import ConfigError
from regard.fast.selection import chosen
from regard.folder.layout import load_config, weights_file
from regard.text.tokenizers.tokenizer import load_tokenizer

PRECISIONS = ("auto", "float32", "int8")
# By the name of the job, which the model folder keeps.
USES: dict[str, type[TextReader]] = {"masking": TextFiller, "labelling": TextLabeller}
T = TypeVar("T", bound=TextReader)


def open_reader(
    kind: type[T],
    path: Path,
    otherwise: Callable[[], T],
    *,
    engine: str = "auto",
    device: str = "auto",
    threads: int = 0,
    precision: str = "auto",
) -> T:
    """The model in a folder, ready to do what this kind of reader does; `otherwise` opens it with torch.

    With `auto`, CTranslate2 if there is no GPU. Precision `auto` is float32, in which both say the same.
    """
    if precision not in PRECISIONS:
        raise ConfigError(f"There is no precision {precision!r} for reading. Use one of: {', '.join(PRECISIONS)}.")
    config, about = load_config(path)
    # A folder that can do something else is for torch to refuse, in words that say what it can do.
    able = issubclass(USES.get(about.get("job", ""), object), kind)
    if able and chosen(engine, device, None):
        reader = _opened(path, config, about, threads, "float32" if precision == "auto" else precision)
        assert isinstance(reader, kind), "the use of this job"
        return reader
    if precision == "int8":
        raise ConfigError("Torch reads in float32 alone. Leave out --precision, or use --engine ctranslate2.")
    return otherwise()


def _opened(path: Path, config: Config, about: dict[str, Any], threads: int, precision: str) -> TextReader:
    from regard.fast.converted_cache import ConvertedModel
    from regard.fast.encoder import FastFiller, FastLabeller
    from regard.fast.heads import LabelHead, WordHead

    model, tokenizer, weights = config.model, load_tokenizer(path, config.text), weights_file(path)
    labels = about.get("labels", [])
    assert isinstance(model, BertConfig | ClassifierConfig), "the only models of these jobs"
    converted = ConvertedModel(path, partial(_converted, weights, model, tokenizer.size, len(labels)))
    machine = {"width": model.width, "longest": model.longest, "threads": threads, "precision": precision}
    if isinstance(model, ClassifierConfig):
        return FastLabeller(converted, tokenizer, head=partial(LabelHead, weights), labels=labels, **machine)
    guesses = "words" in about.get("heads", ["words"])
    head = partial(WordHead, weights, model.activation, model.epsilon)
    return FastFiller(converted, tokenizer, head=head, guesses=guesses, **machine)


def _converted(
    weights: Path, model: BertConfig | ClassifierConfig, vocabulary: int, labels: int, precision: str
) -> dict[str, bytes]:
    from regard.fast.convert_bert import converted_reader

    return converted_reader(weights, model, vocabulary, labels, precision)
