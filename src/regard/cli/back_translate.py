"""`regard back-translate`."""

import argparse
import shlex
import sys

from regard.cli.options import (
    Subparsers,
    add_command,
    add_decode_options,
    add_engine_options,
    add_processes_option,
    add_with_option,
    decode_settings,
)
from regard.cli.train import stop_signals
from regard.cli.values import path

EXAMPLES = """  regard train my.fr my.en --to runs/fr-en
  regard back-translate runs/fr-en more.fr --to synthetic.tsv --sample
  paste my.en my.fr | cat - synthetic.tsv > all.tsv
  regard train all.tsv --valid valid.en valid.fr --to runs/en-fr

The model translates text of the target language, one sentence on each line, back into the source language: REVERSE reads
what the new model is to write. FILE then holds pairs, a source that was made up and a target that is real, tab-separated.
With --sample the sources vary more, and often teach more, where the model is good enough to draw from.
Stop it whenever you like (Ctrl-C saves); the same command goes on where it stopped."""


def add_parser(commands: Subparsers) -> None:
    """`regard back-translate REVERSE TEXT --to FILE`."""
    parser = add_command(commands, "back-translate", "make pairs of text that has no source, with a model", EXAMPLES)
    parser.add_argument("folder", type=path, metavar="REVERSE", help="a model folder that translates target to source")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="files of lines in the target language (also .gz)")
    parser.add_argument("--to", required=True, type=path, metavar="FILE", help="the .tsv file to make")
    add_with_option(parser)
    add_decode_options(parser)
    add_engine_options(parser)
    add_processes_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Translate back, or go on with it."""
    from regard.experiments.synthetic import Models, back_translate

    models = Models(
        folders=[options.folder, *options.others],
        settings=decode_settings(options),
        engine=options.engine,
        device=options.device,
        threads=options.threads,
        processes=options.processes,
    )
    with stop_signals() as stopped:
        done = back_translate(models, options.text, options.to, progress=show, stop=lambda: bool(stopped))
    if not done:
        print(f"Saved. To go on:\n  {shlex.join(['regard', *sys.argv[1:]])}", file=sys.stderr)
        return 128 + stopped[0]
    return 0


def show(done: int, total: int) -> None:
    """Progress on stderr: one line that changes, or many where nobody watches."""
    end = "" if sys.stderr.isatty() and done < total else "\n"
    print(f"\r{done:,} of {total:,} lines translated", end=end, file=sys.stderr, flush=True)
