"""`regard fill`."""

import argparse
import json
from typing import TYPE_CHECKING

from regard.cli.encode_options import add_reading_options, opened, portions
from regard.cli.lines import Lines
from regard.cli.options import Subparsers, add_command
from regard.cli.output import add_output_option, open_output
from regard.cli.values import whole
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.encode.fill import Gap, Guess

EXAMPLES = """  regard fill runs/bert "The capital of France is <mask>."
  regard fill runs/bert "The <mask> sat on the <mask>." --top 3
  regard fill runs/bert --input gaps.txt --output guesses.tsv
  regard fill runs/bert "I <mask> you." --json

[MASK] means the same as <mask>. Each gap is filled by itself, as if the others stayed open.
For the lines of a file, each guess is a line: line number, number of the gap, probability, word, by tabs.
A word that would join the one before it without a space is shown as …word."""


def add_parser(commands: Subparsers) -> None:
    """`regard fill DIR [TEXT]`."""
    parser = add_command(commands, "fill", "guess hidden words, with a model that reads (BERT)", EXAMPLES)
    add_reading_options(parser, "the text, with <mask> where a word is to be guessed")
    add_output_option(parser)
    parser.add_argument("--top", type=whole(1), default=5, metavar="K", help="so many words for each gap (default 5)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each text")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Guess."""
    from regard.encode.fill import TextFiller

    lines, done = Lines(options), 0
    with open_output(options.output, source=options.input) as out:
        filler = opened(TextFiller, options)
        for texts in portions(lines):
            for number, gaps in enumerate(filler.fill(texts, top=options.top), done + 1):
                if lines.one and not gaps and len(texts) == 1:
                    raise DataError("The text has no <mask>. Write <mask> where a word is to be guessed.")
                out.put(*rendered(number, gaps, options))
            done += len(texts)
            out.flush()
    return 0


def rendered(number: int, gaps: "list[Gap]", options: argparse.Namespace) -> list[str]:
    """The output lines of one text."""
    if options.json:
        table = [[guess._asdict() for guess in gap] for gap in gaps]
        return [json.dumps({"line": number, "gaps": table}, ensure_ascii=False)]
    if options.text is None:
        return [
            f"{number}\t{place}\t{guess.probability:.6f}\t{shown(guess)}"
            for place, gap in enumerate(gaps, 1)
            for guess in gap
        ]
    lines = []
    for place, gap in enumerate(gaps, 1):
        lines += [f"gap {place}"] if len(gaps) > 1 else []
        lines += [f"{guess.probability:7.1%}  {shown(guess)}" for guess in gap]
    return lines


def shown(guess: "Guess") -> str:
    """The word, with a mark if it goes on with the one before it; punctuation does so by nature."""
    return f"…{guess.word}" if guess.joined and guess.word.isalnum() else guess.word
