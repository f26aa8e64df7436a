"""`regard check`."""

import argparse
import sys
from typing import TYPE_CHECKING

from regard.cli.gpu_plan import add_plan_options, as_table, lines, planned
from regard.cli.options import Subparsers, add_command, add_training_options, training_settings
from regard.cli.streams import print_json
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.config import Config
    from regard.text.checks import Report

EXAMPLES = """  regard check train.en train.fr
  regard check pairs.tsv --size small
  regard check pairs.csv --columns english,french --json
  regard check --gpus 8 --size big --set text.vocabulary=32000 --set train.batch_tokens=200000
  regard check --gpus 64 --memory 40 --model lm --set model.width=2048 --set model.heads=16 --set model.depth=18 \\
    --set model.inner=8192 --set text.vocabulary=32000 --set text.longest=1024 --set train.batch_tokens=1000000

The estimate is for the model and settings you name, measured by a few steps on this machine.
With --gpus the same is worked out on paper for many GPUs, with or without DATA: what each must hold if all keep the
whole model (DDP) or each a share of it (FSDP2), with activations kept or computed again (train.recompute), the largest
batch that fits, and how much of the time is left for computing at which speed of the network (docs/scale.md)."""


def add_parser(commands: Subparsers) -> None:
    """`regard check DATA`."""
    parser = add_command(
        commands, "check", "say what is in the data and wrong with it, and what training would take", EXAMPLES
    )
    parser.add_argument("data", nargs="*", metavar="DATA", help="the text, given as to regard train")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-estimate", action="store_true", help="do not try any steps on this machine")
    add_plan_options(parser)
    add_training_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look at the data, then try a few steps; then, if asked, think about many GPUs."""
    if not options.data and options.gpus is None:
        raise ConfigError("There is nothing to check. Give DATA, or --gpus N for what training on N GPUs would take.")
    config = training_settings(options)
    report = inspected(options, config) if options.data else None
    table, told = (report.as_table(), report.lines()) if report else ({}, [])
    if report and not options.no_estimate:
        from regard.training.estimate import estimate

        cost = estimate(config, report.pairs, *mean_characters(report))
        table, told = {**table, "estimate": cost.as_table()}, [*told, "", *cost.lines()]
    if options.gpus is not None:
        from regard.training.estimate import count, text_length

        length = max(text_length(config, mean) for mean in mean_characters(report)) if report else None
        plan = planned(options, config, count(config.model, config.text.vocabulary), length)
        table, told = {**table, "plan": as_table(plan, options)}, [*told, *([""] * bool(told)), *lines(plan, options)]
    if options.json:
        print_json(table)
    else:
        print("\n".join(told))
    return 0


def inspected(options: argparse.Namespace, config: "Config") -> "Report":
    """What is in the data."""
    from regard.text.checks import check
    from regard.text.corpus import open_corpus

    return check(open_corpus(options.data, columns=config.text.columns), show if sys.stderr.isatty() else None)


def mean_characters(report: "Report") -> list[float]:
    """Of a source, and of a target."""
    return [side.characters / report.pairs for side in (report.source, report.target)]


def show(done: int) -> None:
    """Progress on stderr."""
    print(f"\r{done:,} pairs", end="", file=sys.stderr, flush=True)
