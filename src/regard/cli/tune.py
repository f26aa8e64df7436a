"""`regard tune`."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from regard.cli.options import Subparsers, add_command, add_training_options, training_tables
from regard.cli.train import stop_signals
from regard.cli.values import number, path, whole
from regard.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = """  regard tune train.en train.fr --to runs/tuned --minutes 120
  regard tune train.en train.fr --valid valid.en valid.fr --to runs/tuned --minutes 240 --candidates 16
  regard tune pairs.tsv --to runs/tuned --minutes 60 --size small --set text.vocabulary=8000
  regard train train.en train.fr --recipe runs/tuned/tuned.toml --to runs/mine

Settings that matter most for little text are searched: model.dropout, model.depth, train.rate and text.vocabulary; those
that --set names stay as they are. The first candidate has the settings as given, others are drawn at random by the seed. All are
trained for a short while, then the better half goes on, again and again, until one is left; by chrF on the validation
pairs (train.metric). DIR/tuned.toml is the winner's recipe, and DIR/runs/NN are ordinary model folders.
--minutes is for the whole search, text preparation aside; --steps is a budget that gives the same result on any machine.
Stop it whenever you like (Ctrl-C saves); the same command goes on where it stopped."""


def add_parser(commands: Subparsers) -> None:
    """`regard tune DATA --to DIR --minutes M`."""
    parser = add_command(commands, "tune", "find settings that suit a text, within a budget", EXAMPLES)
    parser.add_argument("data", nargs="+", metavar="DATA", help="the text to learn from, given as to regard train")
    parser.add_argument("--to", required=True, type=path, metavar="DIR", help="the folder to make or go on with")
    parser.add_argument(
        "--valid", nargs="+", default=[], metavar="DATA", help="text to validate on; else some is held out"
    )
    parser.add_argument("--minutes", type=number(0), default=0.0, metavar="M", help="minutes of training in all")
    parser.add_argument(
        "--candidates", type=whole(), default=8, metavar="N", help="settings tried at first (default 8)"
    )
    add_training_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search, or go on with it."""
    if options.max_minutes is not None:
        raise ConfigError("--max-minutes is of one training. Give the budget of the whole search by --minutes.")
    from regard.config import merge, read
    from regard.experiments.tune import DEFAULTS, RECIPE, RUNS, Search, tune

    steps, options.steps = options.steps or 0, None
    given = training_tables(options)
    config = read(given)
    defaults = {**DEFAULTS["train"]}
    if config.train.metric != "loss":  # chosen, or what this kind of model prefers
        defaults.pop("metric")
    search = Search(
        data=options.data,
        to=options.to,
        config=read(merge({"train": defaults}, given)),
        valid=options.valid,
        fixed=frozenset(setting.partition("=")[0].strip() for setting in options.set),
        candidates=options.candidates,
        minutes=options.minutes,
        steps=steps,
    )
    with stop_signals() as stopped:
        result = tune(search, note=tell, stop=lambda: bool(stopped))
    if result.stopped:
        print(f"Saved. To go on:\n  {shlex.join(['regard', *sys.argv[1:]])}", file=sys.stderr)
        return 128 + stopped[0]
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 120).print(drawn(result.rows, search.config.train.metric))
    print(
        f"The best settings: {options.to / RECIPE}. The best model so far: {options.to / RUNS / result.rows[0]['name']}"
    )
    return 0


def drawn(rows: list[dict[str, Any]], metric: str) -> "Table":
    """The table as rich draws it."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    searched = [name for name in rows[0] if "." in name]
    for head in ("run", *(name.partition(".")[2] for name in searched), metric, "rounds", "steps", "minutes"):
        table.add_column(head, justify="right")
    for row in rows:
        values = [f"{row[name]:g}" for name in searched]
        if "failed" in row:
            table.add_row(row["name"], *values, "failed", str(row["rounds"]), style="dim")
            continue
        measured = (f"{row['score']:.2f}", str(row["rounds"]), f"{row['step']:,}", f"{row['minutes']:.1f}")
        table.add_row(row["name"], *values, *measured, style="bold" if row is rows[0] else "")
    return table


def tell(text: str) -> None:
    """Progress on stderr."""
    print(text, file=sys.stderr, flush=True)
