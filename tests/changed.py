"""Every setting of a training, changed to another value that could be."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from regard.config import Config, TextConfig, TrainConfig, as_table, read
from regard.errors import ConfigError


def changed(config: Config) -> Iterator[tuple[str, Config]]:
    """The name of each setting, and the configuration with another value of it; those that none would suit are left out."""
    for section, kind in (("text", TextConfig), ("model", type(config.model)), ("train", TrainConfig)):
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            old = getattr(getattr(config, section), field.name)
            for value in others(hints[field.name], old):
                table = as_table(config)
                table[section][field.name] = value
                try:
                    yield f"{section}.{field.name}", read(table)
                except ConfigError:
                    continue
                break


def others(hint: Any, old: Any) -> list[Any]:
    """Some values that a setting of this type could have."""
    if get_origin(hint) is Literal:
        return [value for value in get_args(hint) if value != old]
    if hint is bool:
        return [not old]
    if hint is int:
        return [old + 1, 2 * old, 3]
    if hint is float:
        return [old / 2 or 0.5, 0.25, old + 1]
    return ["cpu" if old == "auto" else "one"]
