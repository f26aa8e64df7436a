"""Which engine is used: CTranslate2 where it does the same as torch, else torch."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config import Config, LmConfig, TransformerConfig, read
from regard.decode.translation import TextTranslator
from regard.errors import ConfigError
from regard.fast.supported import model_obstacle, setting_obstacle
from regard.folder.layout import load_config, weights_file
from regard.text.tokenizers.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from regard.fast.translator import FastTranslator

ENGINES = ("auto", "torch", "ctranslate2")
LONGEST_SOURCE = 1000  # tokens, as for every model that writes (models/base.py)


def open_translator(
    path: Path,
    otherwise: Callable[[], TextTranslator],
    *,
    engine: str = "auto",
    device: str = "auto",
    threads: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> TextTranslator:
    """The model in a folder, ready to translate; `otherwise` opens it with torch, and can be sent to another process.

    With `auto`, CTranslate2 if it can do what the model and these settings ask for, and there is no GPU; what a later call
    asks for and it cannot do is left to torch as well. With `ctranslate2`, whatever it cannot do is an error.
    """
    config, about = load_config(path)
    if not chosen(engine, device, _obstacle(config, about, settings or {})):
        return otherwise()
    return _opened(path, config, threads, otherwise if engine == "auto" else None)


def chosen(engine: str, device: str, obstacle: str | None) -> bool:
    """Whether CTranslate2 is to be used, which cannot do what the `obstacle` names; an error if it must and cannot."""
    if engine not in ENGINES:
        raise ConfigError(f"There is no engine {engine!r}. Use one of: {', '.join(ENGINES)}.")
    if engine == "torch":
        return False
    if device not in ("auto", "cpu"):
        obstacle = obstacle or f"device {device}"
    if engine == "ctranslate2" and obstacle:
        raise ConfigError(f"The engine ctranslate2 cannot do {obstacle} as torch does it. Use --engine auto or torch.")
    return obstacle is None and not (engine == "auto" and device == "auto" and _has_gpu())


def _has_gpu() -> bool:
    import ctranslate2

    return bool(ctranslate2.get_cuda_device_count())


def _obstacle(config: Config, about: dict[str, Any], settings: Mapping[str, Any]) -> str | None:
    if about.get("job", "pairs") != "pairs":
        return "anything but translate"
    decode = read({"decode": {**dataclasses.asdict(config.decode), **settings}}).decode
    return model_obstacle(config.model) or setting_obstacle(decode)


def _opened(path: Path, config: Config, threads: int, otherwise: Callable[[], TextTranslator] | None) -> TextTranslator:
    from regard.fast.converted_cache import ConvertedModel

    model, tokenizer, weights = config.model, load_tokenizer(path, config.text), weights_file(path)
    assert isinstance(model, TransformerConfig | LmConfig), "no other model is without an obstacle"
    places = model.longest - 1 if model.positions == "learned" else None
    begin = isinstance(model, LmConfig)  # there it stands in the same row as the source
    return _kind(model)(
        ConvertedModel(path, partial(_converted, weights, model, tokenizer.size)),
        tokenizer,
        config.decode,
        longest_source=LONGEST_SOURCE if places is None else min(LONGEST_SOURCE, places - begin),
        places=places,
        threads=threads,
        otherwise=otherwise,
        folder=path,
    )


def _converted(weights: Path, model: TransformerConfig | LmConfig, vocabulary: int, precision: str) -> dict[str, bytes]:
    # Needed once in the life of a model; numpy and safetensors would cost every start.
    if isinstance(model, LmConfig):
        from regard.fast.convert_lm import converted_lm

        return converted_lm(weights, model, vocabulary, precision)
    from regard.fast.convert_transformer import converted

    return converted(weights, model, vocabulary, precision)


def _kind(model: TransformerConfig | LmConfig) -> "type[FastTranslator]":
    from regard.fast.lm_translator import FastContinuer
    from regard.fast.translator import FastTranslator

    return FastContinuer if isinstance(model, LmConfig) else FastTranslator
