"""`regard`: the commands there are, each parsed in a file of its own. Torch is imported only once a command runs."""

import argparse
import os
import sys
from collections.abc import Sequence

from regard.cli import (
    average,
    back_translate,
    check,
    classify,
    compare,
    demo,
    distill,
    embed,
    explain,
    fill,
    import_,
    models,
    score,
    see,
    train,
    translate,
    tune,
    write,
)
from regard.cli.any_order import AnyOrder
from regard.errors import RegardError
from regard.training.beside import is_one_of_several, leave

COMMANDS = (
    demo, train, translate, write, fill, classify, embed, see, explain, score, compare, tune, distill, back_translate,
    average, check, models, import_,
)  # fmt: skip

EPILOG = """examples:
  regard demo                                        train and translate in four minutes, no data needed
  regard train my.en my.fr --to runs/mine            learn to translate your own sentence pairs
  regard translate runs/mine "A sentence."           translate one sentence
  regard see runs/mine "A sentence."                 where every word looks: a page for your browser
  regard score runs/mine test.en test.fr             BLEU, chrF and TER with confidence intervals
  regard train book.txt --model lm --to runs/book    learn to write like a book
  regard write runs/book "It was"                    go on with a text
  regard compare my.en my.fr --to runs/compared      every model on the same text: one table, one page

`regard COMMAND --help` explains each command."""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="regard",
        description="Sequence models you can train, see and serve.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True, title="commands", parser_class=AnyOrder)
    for command in COMMANDS:
        command.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    try:
        options = parser().parse_args(arguments)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except RegardError as error:
        print(f"regard: {' '.join(str(error).split())}", file=sys.stderr)
        return error.code
    except BrokenPipeError as error:
        # Pipes to our own processes break when they are ended by Ctrl-C.
        if isinstance(error.__context__, KeyboardInterrupt):
            return _interrupted()
        # Whoever read our output has closed it; that is no fault, but Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _interrupted()
    except MemoryError:
        advice = "Use a smaller batch (train.batch_tokens, --batch-tokens) or a smaller --size."
        print(f"regard: not enough memory. {advice}", file=sys.stderr)
        return 71


def _interrupted() -> int:
    print("regard: interrupted", file=sys.stderr)
    return 130


def run() -> None:
    """The console script."""
    try:
        sys.exit(main())
    except SystemExit as end:
        if is_one_of_several() and isinstance(end.code, int):
            leave(end.code)
        raise
