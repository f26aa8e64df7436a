"""One setting: a default, its meaning, and the limits it is checked against."""

from dataclasses import Field, field, fields
from typing import Any, TypeVar

from regard.errors import ConfigError

T = TypeVar("T")


LARGEST_SEED = 2**63 - 1


def setting(default: T, meaning: str, *, most: float | None = None) -> T:
    """A field with its default and the sentence that `regard train --help` shows for it.

    `most` is the largest value of a number: what no real model or run comes near, but a made-up folder may ask for.
    """
    return field(default=default, metadata={"meaning": meaning, "most": most})


def at_most(config: Any, section: str) -> None:
    """Refuse a section in which a setting is above its limit."""
    for one in fields(config):
        value, most = getattr(config, one.name), most_of(one)
        if most is not None and not value <= most:
            raise ConfigError(f"{section}.{one.name} {value} is too large; it must be at most {most:,}.")


def most_of(one: Field[Any]) -> float | None:
    """The largest value of a setting, if it has one."""
    most: float | None = one.metadata.get("most")
    return most


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
