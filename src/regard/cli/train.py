"""`regard train`."""

import argparse
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.cli.settings import ShowSettings, Subparsers, add_command, add_training_options, training_settings

EXAMPLES = """  regard train train.en train.fr --valid valid.en valid.fr --to runs/mine
  regard train pairs.tsv --to runs/mine --size small --max-minutes 60
  regard train pairs.csv --columns english,french --to runs/mine
  regard train builtin:en-fr --to runs/builtin --set text.tokenizer=words --steps 2000
  zcat pairs.tsv.gz | regard train - --to runs/mine
  regard train book.txt --model lm --to runs/book --set text.tokenizer=characters
  regard train reviews.tsv --columns text,label --model classifier --from runs/bert --to runs/reviews

DATA is two parallel files, one TSV, CSV (with a header) or JSONL file, each also as .gz,
- for tab-separated pairs on standard input, or a built-in corpus, which needs no file: builtin:en-fr,
or the tasks builtin:copy, reverse, sort, addition, numbers and dates.
A language model (rnn, lstm, gru, lm) and bert also learn from running text: .txt files, JSON lines with a
key text, or builtin:python, Python's manual. A classifier learns from pairs of text and label.
Stop it whenever you like (Ctrl-C saves); the same command goes on where it stopped.
`regard train --settings` lists everything that --set and a recipe can change."""


def add_parser(commands: Subparsers) -> None:
    """`regard train DATA --to DIR`."""
    parser = add_command(commands, "train", "learn a model from your own text, into one folder", EXAMPLES)
    parser.add_argument("data", nargs="+", metavar="DATA", help="the text to learn from; see below")
    parser.add_argument("--to", required=True, type=Path, metavar="DIR", help="the model folder to make or go on with")
    parser.add_argument(
        "--valid", nargs="+", default=[], metavar="DATA", help="text to validate on; else some is held out"
    )
    parser.add_argument(
        "--from",
        dest="start",
        type=Path,
        metavar="DIR",
        help="begin with the weights and tokenizer of this model folder",
    )
    parser.add_argument("--override", action="store_true", help="accept settings that differ from the run's first ones")
    parser.add_argument("--settings", action=ShowSettings, nargs=0, help="list every setting, and leave")
    add_training_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, or go on training."""
    config = training_settings(options, options.start)  # first, so that a wrong setting is told at once
    from regard.cli.display import open_display
    from regard.run import train

    with stop_signals() as stopped, open_display(config.train) as display:
        outcome = train(
            options.data,
            options.to,
            config,
            valid=options.valid,
            start=options.start,
            override=options.override,
            display=display,
            stop=lambda: bool(stopped),
        )
    if outcome.reason is None:
        print(f"Saved at step {outcome.step:,}. To go on:\n  {shlex.join(['regard', *sys.argv[1:]])}", file=sys.stderr)
        return 128 + stopped[0]
    if outcome.validation is not None:
        print(f"Done at step {outcome.step:,}: {outcome.reason}. Try it:", file=sys.stderr)
        print(f"  {outcome.example.replace('DIR', str(options.to))}", file=sys.stderr)
    return 0


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """The list of stop signals received, empty at first. The first one is only noted; a second ends the program."""
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        if received:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        received.append(number)
        print("\nFinishing this step and saving; once more to leave at once.", file=sys.stderr)

    old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
