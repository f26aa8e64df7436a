"""Settings of a run that takes something from an earlier model: its weights and words, or its words alone."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from regard.config.models import MODEL_CONFIGS, BertConfig, ClassifierConfig
from regard.config.parsing import Config, merge, model_name, read
from regard.errors import ConfigError

KEPT = ("tokenizer", "vocabulary", "normalize", "lowercase", "byte_fallback")
"""Settings of a tokenizer: where it is taken from a model folder, these come along, and cannot change."""
# Settings of a model that its weights do not depend on.
FREE = {"name", "dropout", "hidden_words", "whole_words"}
# Weights that have learned already are to be changed gently.
GENTLY: dict[str, dict[str, Any]] = {"train": {"rate": 1e-4, "warm_up": 200}}


def read_from(base: Config, given: Mapping[str, Mapping[str, Any]]) -> Config:
    """The settings of a run that starts from a model with the settings `base`."""
    old, wanted = model_name(base.model), dict(given.get("model", {}))
    name = str(wanted.get("name", old))
    kind = MODEL_CONFIGS.get(name, type(base.model))
    if name not in MODEL_CONFIGS or not (
        kind is type(base.model) or (kind is ClassifierConfig and isinstance(base.model, BertConfig))
    ):
        raise ConfigError(f"--model {name} cannot start from a {old}. Leave --model away, or --from.")
    if fixed := sorted(set(wanted) - FREE):
        raise ConfigError(f"model.{fixed[0]} comes from the folder given by --from, and cannot be set. Leave it away.")
    text = _words(base, given, "--from")
    known = {field.name for field in dataclasses.fields(kind)}
    model = {key: value for key, value in dataclasses.asdict(base.model).items() if key in known} | {"name": name}
    return read(merge({"text": {**text, "longest": base.text.longest}, "model": model}, GENTLY, given))


def read_with_words(base: Config, given: Mapping[str, Mapping[str, Any]]) -> Config:
    """The settings of a run whose tokenizer is that of a model with the settings `base`, and all else as given."""
    return read(merge({"text": _words(base, given, "--words-of")}, given))


def _words(base: Config, given: Mapping[str, Mapping[str, Any]], option: str) -> dict[str, Any]:
    text = {key: getattr(base.text, key) for key in KEPT}
    for key, value in given.get("text", {}).items():
        if key in KEPT and str(value) != str(text[key]):
            raise ConfigError(f"text.{key} comes from the folder given by {option}, and cannot be set. Leave it away.")
    return text
