"""`regard demo`."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.options import Subparsers, add_command
from regard.cli.values import MOST_THREADS, path, whole

if TYPE_CHECKING:
    from regard.interpret.exhibit import Exhibit

EXAMPLES = """  regard demo
  regard demo --to runs/other --seed 2

Trains English -> French on a built-in grammar in about four minutes on one core, then translates the
lecture's sentences: what "it" means, and which "bank", is decided by the end of the sentence. Ends with a page
that shows which head of the model decides it.
Needs no data and no network. Run again, it goes on where it stopped."""


def add_parser(commands: Subparsers) -> None:
    """`regard demo`."""
    parser = add_command(commands, "demo", "train and try a small translator, no data needed", EXAMPLES)
    parser.add_argument(
        "--to", type=path, default=Path("runs/demo"), metavar="DIR", help="model folder (default runs/demo)"
    )
    parser.add_argument("--seed", type=whole(), default=3, metavar="N", help="another seed, another model")
    parser.add_argument(
        "--threads",
        type=whole(0, MOST_THREADS),
        default=1,
        metavar="N",
        help="more is faster, and another model (default 1)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, translate the lecture's sentences, score the ambiguous ones."""
    from regard.cli.display import open_display
    from regard.cli.train import stop_signals
    from regard.experiments import demo

    config = demo.config(options.seed, options.threads)
    with stop_signals() as stopped, open_display(config.train) as display:
        result = demo.demo(options.to, config, display=display, stop=lambda: bool(stopped))
    if result is None:
        print("Saved. Run regard demo again to go on.")
        return 128 + stopped[0]
    print()
    for pair, written in result.lecture:
        print(f"  {pair.source}\n  {written}   {'✓' if written == pair.target else '✗ expected: ' + pair.target}\n")
    print(
        f"{result.exact_match:.1f}% of {result.sentences:,} held-out ambiguous sentences are translated exactly right "
        f'(guessing what decides: 50%).\n\nWhat does "it" mean?'
    )
    for line in decided(result.exhibit):
        print(f"  {line}")
    print(
        f"  Look at it in a browser: {result.page}\n"
        f"  How it came to look there, step by step: regard see {options.to}\n\nYour turn:\n"
        f'  regard translate {options.to} "The elephant didn\'t cross the bridge because it was too narrow."\n'
        f'  regard see {options.to} "The elephant didn\'t cross the bridge because it was too narrow."'
    )
    return 0


def decided(exhibit: "Exhibit") -> Iterator[str]:
    """Where this model settles it, and what becomes of its words without the head that does."""
    assert exhibit.move is not None, "the demo has two words to choose between"
    yield exhibit.move.sentence().replace("*", "")
    for off, one in zip(exhibit.knockouts, exhibit.without(exhibit.move), strict=True):
        if off and one:
            instead = f", and it writes {one.instead}" if one.instead != off.word else ""
            chances = f"from {off.probability:.2f} to {one.probability:.2f}"
            yield f"Without this head, the probability of {off.word} goes {chances}{instead}."
