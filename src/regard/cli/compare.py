"""`regard compare`."""

import argparse
import shlex
import sys

from regard.cli.options import Subparsers, add_command
from regard.cli.train import stop_signals
from regard.cli.values import number, path, whole

EXAMPLES = """  regard compare builtin:en-fr --to runs/compared
  regard compare train.en train.fr --valid valid.en valid.fr --test test.en test.fr --to runs/compared --minutes 30
  regard compare pairs.tsv --models seq2seq,bahdanau,transformer --steps 2000 --to runs/compared
  regard compare pairs.tsv --to runs/compared --set train.batch_tokens=2048 --set conv:train.rate=0.008
  regard compare builtin:en-fr --to runs/compared --path

Each model learns from the same text with the same tokenizer, the same batches and the same budget, at a width that gives it
about as many parameters as the others. DIR/compare.html, table.csv and table.json then hold what was measured, and
DIR/NAME is an ordinary model folder. A learning rate that suits each kind of model is chosen, and the Transformer has its
norm before each sub-layer, unless --set or --recipe says otherwise; --set NAME:KEY=VALUE is for one model alone.
Without --test, a built-in corpus is tried on its own test set, and other text on its validation pairs.
Stop it whenever you like (Ctrl-C saves); the same command goes on where it stopped, and measures nothing twice.
--path trains nothing: it measures how far gradients reach in each model, before and (if it is there) after training."""


def add_parser(commands: Subparsers) -> None:
    """`regard compare DATA --to DIR`."""
    parser = add_command(commands, "compare", "train several models alike: one table, one page", EXAMPLES)
    parser.add_argument("data", nargs="+", metavar="DATA", help="the text to learn from, given as to regard train")
    parser.add_argument("--to", required=True, type=path, metavar="DIR", help="the folder to make or go on with")
    parser.add_argument("--models", default="all", metavar="A,B", help="which models, or all that write (default all)")
    parser.add_argument(
        "--valid", nargs="+", default=[], metavar="DATA", help="text to validate on; else some is held out"
    )
    parser.add_argument("--test", nargs="+", default=[], metavar="DATA", help="text to compare on")
    parser.add_argument("--path", action="store_true", help="train nothing; measure how far gradients reach")
    group = parser.add_argument_group("settings")
    group.add_argument("--minutes", type=number(0), metavar="M", help="minutes of training for each model (default 5)")
    group.add_argument("--steps", type=whole(), metavar="N", help="updates for each model, instead of minutes")
    group.add_argument(
        "--match", choices=["parameters", "none"], default="parameters", help="choose widths for equal sizes, or not"
    )
    group.add_argument("--size", metavar="SIZE", help="of the Transformer, which the others match (default tiny)")
    group.add_argument("--recipe", metavar="FILE", type=path, help="settings from a TOML file, for all models")
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="one setting; NAME:KEY=VALUE for one model"
    )
    group.add_argument("--metric", choices=["bleu", "chrf"], default="bleu", help="the score to sort by (default bleu)")
    group.add_argument(
        "--tokenize", default="13a", metavar="NAME", help="sacrebleu's tokenizer for BLEU (none if tokenised)"
    )
    for option, key, what in (
        ("--seed", "train.seed", "same seed, same models"),
        ("--threads", "train.threads", "CPU threads"),
        ("--device", "train.device", "auto, cpu, cuda, cuda:N or mps"),
        ("--columns", "text.columns", "columns or keys of source and target"),
    ):
        group.add_argument(option, metavar="VALUE", help=f"{what} ({key})")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, or trace gradients."""
    from rich.console import Console

    from regard.experiments.compare.comparison import PAGE, compare, trace
    from regard.experiments.compare.plan import Request
    from regard.experiments.compare.table import for_terminal

    command = shlex.join(["regard", *sys.argv[1:]])
    named = {"train.seed": options.seed, "train.threads": options.threads, "train.device": options.device}
    named |= {"text.columns": options.columns}
    request = Request(
        data=options.data,
        to=options.to,
        models=options.models,
        valid=options.valid,
        test=options.test,
        minutes=options.minutes,
        steps=options.steps,
        match=options.match,
        size=options.size,
        recipe=options.recipe,
        settings=[*options.set, *(f"{key}={value}" for key, value in named.items() if value is not None)],
        metric=options.metric,
        tokenize=options.tokenize,
        command=command,
    )
    with stop_signals() as stopped:
        result = (trace if options.path else compare)(request, note=tell, stop=lambda: bool(stopped))
    if result.stopped:
        print(f"Saved. To go on:\n  {command}", file=sys.stderr)
        return 128 + stopped[0]
    if not options.path:
        # Where nobody watches, a table is not to be squeezed into the width of a terminal that is not there.
        console = Console(width=None if sys.stdout.isatty() else 150)
        console.print(for_terminal(result.table))
        for sentence in result.table["said"]:
            console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    print(f"The page: {options.to / PAGE}")
    return 1 if result.failed and not options.path else 0


def tell(text: str) -> None:
    """Progress on stderr."""
    print(text, file=sys.stderr, flush=True)
