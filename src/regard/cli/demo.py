"""`regard demo`."""

import argparse
from pathlib import Path

from regard.cli.settings import Subparsers, add_command

EXAMPLES = """  regard demo
  regard demo --to runs/other --seed 2

Trains English -> French on a built-in grammar in about three minutes on two cores, then translates the
lecture's sentences: what "it" means, and which "bank", is decided by the end of the sentence.
Needs no data and no network. Run again, it goes on where it stopped."""


def add_parser(commands: Subparsers) -> None:
    """`regard demo`."""
    parser = add_command(commands, "demo", "train and try a small translator, no data needed", EXAMPLES)
    parser.add_argument(
        "--to", type=Path, default=Path("runs/demo"), metavar="DIR", help="model folder (default runs/demo)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed, another model")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="processor threads")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train, translate the lecture's sentences, score the ambiguous ones."""
    from regard import demo
    from regard.cli.display import open_display
    from regard.cli.train import stop_signals

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
        f"(guessing what decides: 50%).\n\nYour turn:\n"
        f'  regard translate {options.to} "The elephant didn\'t cross the bridge because it was too narrow."'
    )
    return 0
