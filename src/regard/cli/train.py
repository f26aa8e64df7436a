"""`regard train`."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.options import (
    ShowSettings,
    Subparsers,
    add_command,
    add_start_options,
    add_training_options,
    training_settings,
)
from regard.cli.values import MOST_PROCESSES, path, whole
from regard.config import Config
from regard.errors import ConfigError
from regard.training.torchrun import is_one_of_several

if TYPE_CHECKING:
    from regard.training.distributed import World
    from regard.training.run import Outcome

MOST_RESTARTS = 10_000
EXAMPLES = """  regard train train.en train.fr --valid valid.en valid.fr --to runs/mine
  regard train pairs.tsv --to runs/mine --size small --max-minutes 60
  regard train pairs.csv --columns english,french --to runs/mine
  regard train builtin:en-fr --to runs/builtin --set text.tokenizer=words --steps 2000
  zcat pairs.tsv.gz | regard train - --to runs/mine
  regard train book.txt --model lm --to runs/book --set text.tokenizer=characters
  regard train more.tsv --words-of runs/mine --to runs/second
  regard train train.en train.fr --to runs/large --size big --processes 8
  regard train reviews.tsv --columns text,label --model classifier --from runs/bert --to runs/reviews

DATA is two parallel files, one TSV, CSV (with a header) or JSONL file, each also as .gz,
- for tab-separated pairs on standard input, or a built-in corpus, which needs no file: builtin:en-fr,
or the tasks builtin:copy, reverse, sort, addition, numbers and dates.
A language model (rnn, lstm, gru, lm) and bert also learn from running text: .txt files, JSON lines with a
key text, or builtin:python, Python's manual. A classifier learns from pairs of text and label.
Stop it whenever you like (Ctrl-C saves); the same command goes on where it stopped.
`regard train --settings` lists everything that --set and a recipe can change."""

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Ctrl-C, the polite end, and what clusters are often asked to send some time before it."""


def add_parser(commands: Subparsers) -> None:
    """`regard train DATA --to DIR`."""
    parser = add_command(commands, "train", "learn a model from your own text, into one folder", EXAMPLES)
    parser.add_argument("data", nargs="+", metavar="DATA", help="the text to learn from; see below")
    parser.add_argument("--to", required=True, type=path, metavar="DIR", help="the model folder to make or go on with")
    parser.add_argument(
        "--valid", nargs="+", default=[], metavar="DATA", help="text to validate on; else some is held out"
    )
    add_start_options(parser)
    parser.add_argument(
        "--words-of",
        type=path,
        metavar="DIR",
        help="use the tokenizer of this model folder, so that both can write or learn together (--with, train.soft)",
    )
    add_several_options(parser)
    parser.add_argument("--settings", action=ShowSettings, nargs=0, help="list every setting, and leave")
    add_training_options(parser)
    parser.set_defaults(run=run)


def add_several_options(parser: argparse.ArgumentParser) -> None:
    """How many processes train."""
    group = parser.add_argument_group(
        "several processes", f"see docs/scale.md; torchrun -m {parser.prog} ... does the same"
    )
    group.add_argument(
        "--processes",
        type=whole(1, MOST_PROCESSES),
        default=1,
        metavar="N",
        help="train with N processes of this machine, e.g. one a GPU",
    )
    group.add_argument(
        "--max-restarts",
        type=whole(0, MOST_RESTARTS),
        default=0,
        metavar="N",
        help="start them again if one is killed, N times",
    )
    group.add_argument(
        "--shard", action="store_true", help="spread weights and optimiser over them (FSDP2), to save memory"
    )


def run(options: argparse.Namespace) -> int:
    """Train, or go on training."""
    config = training_settings(
        options, options.start, options.words_of
    )  # first, so that a wrong setting is told at once
    return alone_or_together(options, partial(_train, options, config))


def alone_or_together(options: argparse.Namespace, work: Callable[["World", list[int]], int]) -> int:
    """Do the work here, which asks who else does and what stop signals came; or start as many processes as are to do it."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # DDP warns of a choice that is meant
    from regard.training.distributed import joined

    if options.processes < 1:
        raise ConfigError(f"--processes {options.processes} leaves nobody to train. Use 1 or more.")
    several = is_one_of_several()
    if options.processes > 1 and not several:
        from regard.training.launch import launch

        return launch(options.processes, sys.argv[1:], restarts=options.max_restarts)
    if options.shard and not several:
        raise ConfigError(
            "--shard spreads the weights over several processes. Add --processes N, or start with torchrun."
        )
    with stop_signals(once_more=not several) as stopped, joined(shard=options.shard) as world:
        return work(world, stopped)


def _train(options: argparse.Namespace, config: Config, world: "World", stopped: list[int]) -> int:
    from regard.cli.display import open_display
    from regard.training.run import train

    with open_display(config.train) if world.leads else nullcontext() as display:
        outcome = train(
            options.data,
            options.to,
            config,
            valid=options.valid,
            start=options.start,
            override=options.override,
            display=display,
            stop=lambda: bool(stopped),
            world=world,
            tokenizer=options.words_of,
        )
    return tell(outcome, options.to, stopped, world) if world.leads else 0


def tell(outcome: "Outcome", to: Path, stopped: Sequence[int], world: "World | None" = None) -> int:
    """How training ended, and what to do next; the exit code."""
    if outcome.reason is None:
        print(f"Saved at step {outcome.step:,}. To go on:\n  {shlex.join(['regard', *sys.argv[1:]])}", file=sys.stderr)
        # A process among others may have been stopped by them; were this a failure, torchrun would start all again.
        return 0 if world and world.size > 1 else 128 + stopped[0]
    if outcome.validation is not None:
        print(f"Done at step {outcome.step:,}: {outcome.reason}. Try it:", file=sys.stderr)
        print(f"  {outcome.example.replace('DIR', str(to))}", file=sys.stderr)
    return 0


@contextmanager
def stop_signals(*, once_more: bool = True) -> Iterator[list[int]]:
    """The list of stop signals received, empty at first. The first is only noted; a second ends the program, if it may.

    Among several processes it may not: torchrun passes on to them the signal that the terminal has sent them already.
    """
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        if received and once_more:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        received.append(number)
        if once_more:
            print("\nFinishing this step and saving; once more to leave at once.", file=sys.stderr)

    old = {number: signal.signal(number, note) for number in STOPS}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
