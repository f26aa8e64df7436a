"""`regard`: the commands there are, each parsed in a file of its own. Torch is imported only once a command runs."""

import argparse
import re
import sys
from collections.abc import Sequence

import regard
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
from regard.cli.argument_order import AnyOrder, Parser
from regard.cli.streams import Terminated, abandon_stdout, prepare, terminable
from regard.errors import RegardError, StorageError
from regard.training.torchrun import is_one_of_several, leave

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
    top = Parser(
        prog="regard",
        description="Sequence models you can train, see and serve.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"regard {regard.__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True, title="commands", parser_class=AnyOrder)
    for command in COMMANDS:
        command.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    prepare()
    try:
        with terminable():
            options = parser().parse_args(arguments)
            code: int = options.run(options)
            sys.stdout.flush()
            return code
    except RegardError as error:
        return _told(str(error), error, error.code)
    except BrokenPipeError as error:
        # Pipes to our own processes break when they are ended by Ctrl-C.
        if isinstance(error.__context__, KeyboardInterrupt):
            return _told("interrupted", error.__context__, 130)
        abandon_stdout()  # whoever read our output has seen enough; that is no fault
        return 0
    except OSError as error:
        abandon_stdout()
        name = f"{error.filename}: " if error.filename else "Cannot read or write: "
        return _told(f"{name}{error.strerror or error}.", error, StorageError.code)
    except KeyboardInterrupt as error:
        return _told("interrupted", error, 130)
    except Terminated as error:
        return _told(f"ended by {error}", error, 128 + error.number)
    except MemoryError as error:
        advice = "Use a smaller batch (train.batch_tokens, --batch-tokens) or a smaller --size."
        return _told(f"not enough memory. {advice}", error, 71)


def _told(what: str, error: BaseException, code: int) -> int:
    """One line, with what was noted on the way out."""
    notes = getattr(error, "__notes__", ())
    what = re.sub(r"\S{300,}", lambda long: f"{long[0][:100]}…", what)  # a value that nobody wants to read to its end
    ended = [part if part.endswith((".", "?", "!")) else f"{part}." for part in (what, *notes)] if notes else [what]
    print(f"regard: {' '.join(' '.join(ended).split())}", file=sys.stderr)
    return code


def run() -> None:
    """The console script."""
    try:
        sys.exit(main())
    except SystemExit as end:
        if is_one_of_several() and isinstance(end.code, int):
            leave(end.code)
        raise
