"""Settings in and out: recipes (TOML), `--set` and a model folder's config.json all come in through `read`.

It refuses what it does not know and names the near miss.
"""

import dataclasses
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from reprlib import Repr
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from regard.config.models import (
    DEFAULT_MODEL,
    DEFAULT_SIZE,
    MODEL_CONFIGS,
    PREFERENCES,
    SIZES,
    ModelConfig,
    TransformerConfig,
)
from regard.config.sections import DecodeConfig, TextConfig, TrainConfig
from regard.errors import ConfigError

T = TypeVar("T")
_LARGEST = 2**63 - 1  # what a seed or a size can be in torch
_DIGITS = len(str(_LARGEST))
_shown = Repr()
_shown.maxstring = _shown.maxother = _shown.maxlong = 80  # characters of a value that a message tells


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of one run, by section."""

    text: TextConfig = field(default_factory=TextConfig)
    model: ModelConfig = field(default_factory=TransformerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)


def model_name(config: ModelConfig) -> str:
    """The name under which `--model` knows this kind of model."""
    return next(name for name, kind in MODEL_CONFIGS.items() if kind is type(config))


def read(table: Mapping[str, Any]) -> Config:
    """Turn nested tables (from TOML, JSON or `--set`) into a Config; `model.name` and `model.size` choose the kind."""
    sections = dict(table)
    _refuse_unknown(sections, ["text", "model", "train", "decode"], prefix="")
    for name, section in sections.items():
        if not isinstance(section, Mapping):
            raise ConfigError(f"[{name}] must be a table of settings, not {section!r}.")
    model = dict(sections.get("model", {}))
    kind = _choose(MODEL_CONFIGS, str(model.pop("name", DEFAULT_MODEL)), "model")
    sizes = SIZES[kind]
    size = _choose(sizes, str(model.pop("size", DEFAULT_SIZE)), "size")
    sections = merge(PREFERENCES.get(kind, {}), sections)
    return Config(
        text=_section(TextConfig, "text", sections.get("text", {})),
        model=_section(kind, "model", {**size, **model}),
        train=_section(TrainConfig, "train", sections.get("train", {})),
        decode=_section(DecodeConfig, "decode", sections.get("decode", {})),
    )


def as_table(config: Config) -> dict[str, dict[str, Any]]:
    """The inverse of `read`: plain tables, ready for JSON."""
    table = dataclasses.asdict(config)
    table["model"] = {"name": model_name(config.model), **table["model"]}
    return table


def read_recipe(path: Path) -> dict[str, Any]:
    """A recipe's tables, unchecked; `read` checks them."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        repr(table)  # of which a message may tell: not so of numbers of thousands of digits
        return table
    except OSError as error:
        raise ConfigError(f"Cannot read the recipe {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The recipe {path} is not valid TOML: {error}.") from None


def merge(*tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Later tables win, setting by setting."""
    result: dict[str, dict[str, Any]] = {}
    for table in tables:
        for section, settings in table.items():
            if not isinstance(settings, Mapping):
                raise ConfigError(
                    f"{section} = {settings!r} stands outside a section. Write it under [train] or another."
                )
            result.setdefault(section, {}).update(settings)
    return result


def parse_set(assignments: Iterable[str]) -> dict[str, dict[str, str]]:
    """`["train.rate=0.003"]` -> `{"train": {"rate": "0.003"}}`; the values stay text until `read` knows their types."""
    table: dict[str, dict[str, str]] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and section and name):
            raise ConfigError(f"--set {assignment!r} is not of the form section.key=value, such as train.rate=0.003.")
        table.setdefault(section, {})[name] = value.strip()
    return table


def differences(old: Config, new: Config) -> list[tuple[str, Any, Any]]:
    """`[(setting, old value, new value)]`, for every setting that differs."""
    before, after = _flat(old), _flat(new)
    return [
        (key, before.get(key), after.get(key)) for key in sorted(before | after) if before.get(key) != after.get(key)
    ]


def describe(kind: type) -> list[tuple[str, Any, str]]:
    """`[(name, default, meaning)]` of a section, for help and documentation."""
    return [(f.name, f.default, f.metadata["meaning"]) for f in fields(kind)]


def _flat(config: Config) -> dict[str, Any]:
    return {f"{section}.{key}": value for section, table in as_table(config).items() for key, value in table.items()}


def _section(kind: type[T], name: str, table: Mapping[str, Any]) -> T:
    hints = get_type_hints(kind)
    _refuse_unknown(table, hints, prefix=f"{name}.")
    return kind(**{key: _typed(hints[key], value, f"{name}.{key}") for key, value in table.items()})


def _typed(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type the field declares; text (from `--set`) is parsed."""
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        if value not in choices:
            raise ConfigError(
                f"{where} cannot be {value!r}. It is one of: {', '.join(choices)}.{_near(value, choices)}"
            )
        return value
    try:
        if hint is bool:
            return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
        if hint is int and not isinstance(value, bool):
            return _whole(str(value).replace("_", ""))
        if hint is float and not isinstance(value, bool) and abs(float(value)) < float("inf"):
            return float(value)
        if hint is str and isinstance(value, str):
            return value
    except (KeyError, TypeError, ValueError, ArithmeticError):
        pass
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    raise ConfigError(f"{where} must be {kinds[hint]}, not {_shown.repr(value)}.")


def _whole(text: str) -> int:
    """A whole number, exactly, also when written as 1e4; floats would lose the last digits of a long one."""
    number = Decimal(text)
    # By the exponent first, for 1e999999999 has more digits than there is memory.
    if number.adjusted() < _DIGITS and number == number.to_integral_value() and -_LARGEST <= number <= _LARGEST:
        return int(number)
    raise ValueError(text)


def _refuse_unknown(given: Iterable[str], known: Iterable[str], prefix: str) -> None:
    known = sorted(known)
    for key in given:
        if key not in known:
            raise ConfigError(
                f"There is no setting {prefix}{key}.{_near(key, known, prefix)} Known: {', '.join(known)}."
            )


def _choose(choices: Mapping[str, T], name: str, what: str) -> T:
    if name not in choices:
        raise ConfigError(f"There is no {what} {name!r}.{_near(name, choices)} Known: {', '.join(choices)}.")
    return choices[name]


def _near(word: object, known: Iterable[str], prefix: str = "") -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f" Did you mean {prefix}{close[0]}?" if close else ""
