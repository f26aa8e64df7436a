"""Every option of every command, as the parsers tell them, with values nobody should give."""

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import untrained
from conftest import write_digits
from regard.cli.main import parser

VALUES = ["0", "-1", str(10**9), str(10**30), "9" * 5000, "1e308", "-1e308", "nan", "inf", "-inf", "", "é", "\udce9"]
PLACES = ["folder", "/dev/null", "nowhere"]
"""Seen from the folder that `base` made."""
LETTERS = "a b c\nd e\nf\n"


def base(at: Path) -> dict[str, list[str]]:
    """For each command arguments that are right and quick to follow, with what they name below a folder."""
    (at / "folder").mkdir()
    untrained.leaning(at / "transformer")
    untrained.made("bert", at / "bert")
    untrained.made("classifier", at / "classifier")
    untrained.made("lm", at / "lm", job="text")
    write_digits(at, 40)
    for name in ("letters", "letters.copy"):
        (at / name).write_text(LETTERS)
    pairs, short = ["train.num", "train.en"], ["--max-length=3"]
    return {
        "translate": ["transformer", "a b", *short],
        "write": ["lm", "a b", *short],
        "fill": ["bert", "a <mask>"],
        "classify": ["classifier", "a b"],
        "embed": ["bert", "a b"],
        "see": ["transformer", "a b", "--terminal"],
        "explain": ["transformer", "a b", "--no-pager"],
        "score": ["transformer", "letters", "letters.copy", *short, "--metrics=chrf"],
        "average": ["transformer", "transformer", "--to=averaged"],
        "check": [*pairs, "--no-estimate"],
        "models": [],
        "import": ["folder", "--to=imported"],
        "back-translate": ["transformer", "letters", "--to=back.tsv", *short],
        "demo": [],
        "train": [*pairs, "--to=trained"],
        "compare": [*pairs, "--to=compared", "--models=rnn"],
        "tune": [*pairs, "--to=tuned", "--minutes=1"],
        "distill": ["transformer", *pairs, "--to=distilled"],
    }


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each."""
    (choices,) = (action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(choices)


def cases(name: str, right: list[str]) -> Iterator[list[str]]:
    """Every option with every value, and every value in the place of what the command is about."""
    for value in [*VALUES, *PLACES]:
        for action in commands()[name]._actions:
            if action.option_strings and action.nargs != 0:
                yield [name, *right, *given(action, value)]
        for place, argument in enumerate(right):
            if not argument.startswith("--"):
                yield [name, *right[:place], value, *right[place + 1 :]]


def given(action: argparse.Action, value: str) -> list[str]:
    """The option with this value, as often as it wants one."""
    flag = action.option_strings[-1]
    if flag == "--set":
        return [f"--set={value}", f"--set=train.steps={value}"][len(value) % 2 :]
    return [flag, *[value] * action.nargs] if isinstance(action.nargs, int) else [f"{flag}={value}"]
