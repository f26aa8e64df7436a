"""`regard average`."""

import argparse

from regard.cli.options import Subparsers, add_command
from regard.cli.values import path

EXAMPLES = """  regard train my.en my.fr --to runs/begun
  regard train my.en my.fr --from runs/begun --to runs/one --seed 1
  regard train my.en my.fr --from runs/begun --to runs/two --seed 2
  regard average runs/one runs/two --to runs/both
  regard score runs/both valid.en valid.fr

The folders must have begun from one model, by --from, and gone different ways: another seed, other text, other teachers. Their
mean is often better than each, and no slower; whether it is, `regard score` tells. Models with beginnings of their own cannot be
averaged, but they can write together: --with."""


def add_parser(commands: Subparsers) -> None:
    """`regard average DIR DIR ... --to DIR`."""
    parser = add_command(commands, "average", "make one model of several that began from one: their mean", EXAMPLES)
    parser.add_argument("folders", nargs="+", type=path, metavar="DIR", help="the model folders, two or more")
    parser.add_argument("--to", required=True, type=path, metavar="DIR", help="the model folder to make")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Average."""
    from regard.experiments.average import average

    average(options.folders, options.to)
    print(
        f"The mean of {len(options.folders)} models is in {options.to}. Is it better?\n  regard score {options.to} VALID"
    )
    return 0
