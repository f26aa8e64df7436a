"""`regard distill`."""

import argparse
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from regard.cli.options import (
    Subparsers,
    add_command,
    add_engine_options,
    add_start_options,
    add_training_options,
    add_with_option,
    decode_settings,
    training_settings,
)
from regard.cli.train import add_several_options, alone_or_together, tell
from regard.cli.values import path, whole
from regard.config import Config

if TYPE_CHECKING:
    from regard.training.distributed import World

EXAMPLES = """  regard distill runs/large train.en train.fr --to runs/small
  regard distill runs/one --with runs/two --with runs/three pairs.tsv --to runs/small --size tiny
  regard distill runs/large train.en train.fr --valid valid.en valid.fr --to runs/small --beam 8 --max-minutes 60
  regard distill runs/one --with runs/two train.en train.fr --from runs/one --to runs/three --beam 5 --nearest 5 --true-too
  regard distill runs/large train.en train.fr --to runs/small --size tiny --set train.soft=0.5
  regard distill runs/large train.en train.fr --also more.en --to runs/small
  regard distill runs/large train.en train.fr --true-only --set train.soft=0.5 --to runs/small
  regard distill runs/en-fr train.en train.fr --back runs/fr-en --true-too --from runs/en-fr --to runs/better
  regard distill runs/large train.en train.fr --to runs/small --processes 8

The teacher translates the sources of DATA once, into DIR/cache/distilled.tsv; then a model learns from that as it would
with regard train, whose settings all hold (--set, --recipe and so on). A teacher's text is simpler than the true one, so
that a small model can learn it better; with train.soft it learns the teacher's probabilities of every word as well.
Text that nobody has translated teaches as well: --also gives it to the teacher. Where there is little text, --back says
the same in other words: a model of the other direction makes further sources of the true targets.
Validation is on true pairs: --valid, or some that are held out of DATA.
Stop it whenever you like (Ctrl-C saves); the same command goes on where it stopped."""


def add_parser(commands: Subparsers) -> None:
    """`regard distill TEACHER DATA --to DIR`."""
    parser = add_command(commands, "distill", "train a model on what a larger one, or several, write", EXAMPLES)
    parser.add_argument("teacher", type=path, metavar="TEACHER", help="the model folder that translates")
    parser.add_argument("data", nargs="+", metavar="DATA", help="the pairs whose sources it translates")
    parser.add_argument("--to", required=True, type=path, metavar="DIR", help="the model folder to make or go on with")
    parser.add_argument(
        "--valid", nargs="+", default=[], metavar="DATA", help="pairs to validate on; else some are held out"
    )
    add_start_options(parser)
    teacher = parser.add_argument_group("teacher")
    add_with_option(teacher)
    teacher.add_argument(
        "--beam", type=whole(1), metavar="N", help="hypotheses it keeps at each step (default: its own)"
    )
    teacher.add_argument(
        "--nearest",
        type=whole(1),
        metavar="N",
        help="of its N best translations learn the one most like the true one (default: learn its best)",
    )
    teacher.add_argument(
        "--also",
        nargs="+",
        default=[],
        metavar="FILE",
        help="files of lines without a translation, for it to translate",
    )
    teacher.add_argument(
        "--back",
        type=path,
        metavar="DIR",
        help="a model folder that translates back: learn the true targets with the sources it makes of them as well",
    )
    true = teacher.add_mutually_exclusive_group()
    true.add_argument(
        "--true-too",
        action="store_const",
        dest="true_pairs",
        const="too",
        default="none",
        help="learn from the true pairs as well",
    )
    true.add_argument(
        "--true-only",
        action="store_const",
        dest="true_pairs",
        const="only",
        help="learn from the true pairs, and from the teacher its probabilities (train.soft) or what it makes of --also",
    )
    add_several_options(parser)
    add_engine_options(parser)
    add_training_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Translate, then train; or go on with either."""
    config = training_settings(options, options.start)  # first, so that a wrong setting is told at once
    return alone_or_together(options, partial(_distill, options, config))


def _distill(options: argparse.Namespace, config: Config, world: "World", stopped: list[int]) -> int:
    from regard.cli.display import open_display
    from regard.experiments.synthetic import Models, distill

    settings = {name: value for name, value in decode_settings(options).items() if name in ("beam", "shortlist")}
    if options.nearest is not None:
        settings["n_best"] = options.nearest
    on = partial(
        Models,
        engine=options.engine,
        device=options.device or "auto",
        threads=options.threads or 0,
        processes=options.processes,
    )
    with open_display(config.train) if world.leads else nullcontext() as display:

        def progress(done: int, total: int) -> None:
            if display:
                display.counting("translating", done, total)

        outcome = distill(
            on(folders=[options.teacher, *options.others], settings=settings),
            options.data,
            options.to,
            config,
            valid=options.valid,
            start=options.start,
            override=options.override,
            also=options.also,
            true_pairs=options.true_pairs,
            back=on(folders=[options.back]) if options.back else None,
            display=display,
            progress=progress,
            stop=lambda: bool(stopped),
            world=world,
        )
    return tell(outcome, options.to, stopped, world) if world.leads else 0
