"""The reference of commands, settings and Python functions, generated from the code as Markdown."""

import argparse
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import regard
from regard.cli.main import parser
from regard.config import MODEL_CONFIGS, SIZES, DecodeConfig, TextConfig, TrainConfig

INTRODUCTIONS = {
    "commands": "Every command works on raw text and on a model folder. `regard COMMAND --help` prints what stands here.",
    "settings": (
        "Every setting has a default. `--set SECTION.NAME=VALUE` changes one, a recipe (`--recipe FILE`, TOML) several, "
        "and `regard train --settings` prints them all."
    ),
    "python": "What `import regard` offers. Every command is one of these functions.",
}


def pages() -> dict[str, str]:
    """The three pages by name."""
    parts = {"commands": commands(), "settings": settings(), "python": python()}
    titles = {"commands": "Commands", "settings": "Settings", "python": "Python"}
    return {name: "\n".join([f"# {titles[name]}", "", INTRODUCTIONS[name], "", *parts[name]]) for name in parts}


def commands() -> Iterator[str]:
    """Each command with its options and examples."""
    top = parser()
    (choices,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    for action in choices._choices_actions:
        command = choices.choices[action.dest]
        yield from [f"## {action.dest}", "", f"{_sentence(action.help)}", "", "```text"]
        yield from [command.format_usage().removeprefix("usage: ").rstrip(), "```", ""]
        for group in command._action_groups:
            shown = [one for one in group._group_actions if one.help != argparse.SUPPRESS and one.dest != "help"]
            if shown:
                yield from [f"| {group.title} | |", "|---|---|", *(_option(one) for one in shown), ""]
        if command.epilog:
            yield from ["```text", command.epilog.strip("\n"), "```", ""]


def _option(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    named = ", ".join(f"`{option}{value}`" for option in action.option_strings) or f"`{value.strip()}`"
    said = (
        (action.help or "") % {**vars(action), "prog": "regard"} if "%(" in (action.help or "") else action.help or ""
    )
    return f"| {_cell(named)} | {_cell(said)} |"


def settings() -> Iterator[str]:
    """Each section as a table, then those of each model."""
    for name, section in (("text", TextConfig), ("train", TrainConfig), ("decode", DecodeConfig)):
        yield from [f"## {name}", "", *_table(section, name), ""]
    for name, model in MODEL_CONFIGS.items():
        sizes = ", ".join(f"`{size}`" for size in SIZES.get(model, {}))
        yield from [f"## model: {name}", "", f"Sizes: {sizes}." if sizes else "", "", *_table(model, "model"), ""]


def _table(section: type, name: str) -> Iterator[str]:
    hints = get_type_hints(section)
    yield from ["| setting | default | meaning |", "|---|---|---|"]
    for field in fields(section):
        default = "" if field.default is MISSING else f"`{field.default!r}`"
        kind = hints[field.name]
        choices = "; one of " + ", ".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
        yield f"| `{name}.{field.name}` | {_cell(default)} | {_cell(field.metadata.get('meaning', '') + choices)} |"


def python() -> Iterator[str]:
    """Each public name: functions first, then classes with their methods."""
    public = [(name, getattr(regard, name)) for name in regard.__all__]
    for name, function in public:
        if inspect.isroutine(function):
            yield from [
                f"## regard.{name}",
                "",
                "```python",
                _signature(name, function),
                "```",
                "",
                _documented(function),
                "",
            ]
    for name, kind in public:
        if inspect.isclass(kind):
            yield from [f"## regard.{name}", "", _documented(kind), ""]
            for method, function in inspect.getmembers(kind, inspect.isroutine):
                if not method.startswith("_") and getattr(function, "__module__", "").startswith("regard"):
                    yield from [f"### {name}.{method}", "", "```python", _signature(method, function), "```", ""]
                    yield from [_documented(function), ""]


def _signature(name: str, function: Any) -> str:
    told = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", str(inspect.signature(function)))  # names without their modules
    if len(told) > 90:
        told = told.replace(", ", ",\n    ").replace("(", "(\n    ", 1)
    return name + told


def _documented(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _sentence(text: str | None) -> str:
    return f"{(text or ' ')[0].upper()}{(text or ' ')[1:].rstrip('.')}."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
