"""`regard check`."""

import argparse
import json
import sys

from regard.cli.settings import Subparsers, add_command, add_training_options, training_settings

EXAMPLES = """  regard check train.en train.fr
  regard check pairs.tsv --size small
  regard check pairs.csv --columns english,french --json

The estimate is for the model and settings you name, measured by a few steps on this machine."""


def add_parser(commands: Subparsers) -> None:
    """`regard check DATA`."""
    parser = add_command(
        commands, "check", "say what is in the data and wrong with it, and what training would take", EXAMPLES
    )
    parser.add_argument("data", nargs="+", metavar="DATA", help="the text, given as to regard train")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-estimate", action="store_true", help="look at the data only")
    add_training_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look at the data, then try a few steps."""
    config = training_settings(options)
    from regard.inspection import check
    from regard.text.corpus import open_corpus

    report = check(open_corpus(options.data, columns=config.text.columns), show if sys.stderr.isatty() else None)
    table, lines = report.as_table(), report.lines()
    if not options.no_estimate:
        from regard.estimate import estimate

        mean = [side.characters / report.pairs for side in (report.source, report.target)]
        cost = estimate(config, report.pairs, *mean)
        table, lines = {**table, "estimate": cost.as_table()}, [*lines, "", *cost.lines()]
    print(json.dumps(table, ensure_ascii=False) if options.json else "\n".join(lines))
    return 0


def show(done: int) -> None:
    """Progress on stderr."""
    print(f"\r{done:,} pairs", end="", file=sys.stderr, flush=True)
