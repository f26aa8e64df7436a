"""One setting: a default, its meaning, and the limits it is checked against."""

from dataclasses import field
from typing import TypeVar

from regard.errors import ConfigError

T = TypeVar("T")


def setting(default: T, meaning: str) -> T:
    """A field with its default and the sentence that `regard train --help` shows for it."""
    return field(default=default, metadata={"meaning": meaning})


def at_least(config: object, section: str, **limits: float) -> None:
    """Refuse a section in which a setting is below its limit."""
    for name, limit in limits.items():
        if getattr(config, name) < limit:
            raise ConfigError(f"{section}.{name} {getattr(config, name)} is too small; it must be at least {limit}.")


def between(config: object, section: str, low: float, high: float, *names: str) -> None:
    """Refuse a section in which one of these settings is out of range."""
    for name in names:
        if not low <= getattr(config, name) <= high:
            raise ConfigError(f"{section}.{name} {getattr(config, name)} must lie between {low:g} and {high:g}.")
