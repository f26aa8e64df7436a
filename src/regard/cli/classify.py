"""`regard classify`."""

import argparse
import json
from typing import TYPE_CHECKING

from regard.cli.encode_options import add_reading_options, opened, portions
from regard.cli.lines import Lines
from regard.cli.options import Subparsers, add_command
from regard.cli.output import add_output_option, open_output

if TYPE_CHECKING:
    from regard.encode.classify import Labelled

EXAMPLES = """  regard classify runs/sentiment "A charming and often affecting journey."
  regard classify runs/sentiment --input reviews.txt --output labels.tsv
  regard classify runs/sentiment "A charming journey." --all
  regard classify runs/sentiment --json < reviews.txt

Each input line gives one output line, in order: label and probability, by a tab; with --all every label
and its probability, the likeliest first. An empty line gives an empty line."""


def add_parser(commands: Subparsers) -> None:
    """`regard classify DIR [TEXT]`."""
    parser = add_command(commands, "classify", "say which label a text has, with a trained classifier", EXAMPLES)
    add_reading_options(parser, "the text")
    add_output_option(parser)
    parser.add_argument("--all", action="store_true", help="the probability of every label")
    parser.add_argument("--json", action="store_true", help="one JSON object for each text, with all probabilities")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Classify."""
    from regard.encode.classify import TextLabeller

    lines, done = Lines(options), 0
    with open_output(options.output, source=options.input) as out:
        labeller = opened(TextLabeller, options)
        for texts in portions(lines):
            for number, found in enumerate(labeller.classify(texts), done + 1):
                out.put(rendered(number, found, options))
            done += len(texts)
            out.flush()
    return 0


def rendered(number: int, found: "Labelled", options: argparse.Namespace) -> str:
    """The output line of one text."""
    if options.json:
        table = {"line": number, "label": found.label or None, "probabilities": found.probabilities}
        return json.dumps(table, ensure_ascii=False)
    if not found.label:
        return ""
    chosen = found.probabilities if options.all else {found.label: found.probability}
    return "\t".join(f"{label}\t{chance:.4f}" for label, chance in chosen.items())
