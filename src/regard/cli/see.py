"""`regard see`."""

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.options import Subparsers, add_command
from regard.cli.output import check_target, open_output
from regard.cli.values import MOST_THREADS, whole
from regard.cli.values import path as path_of
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.interpret.trace import Trace

MOST_SHOWN = 64
"""Hypotheses of a search that anyone could still look at."""
EXAMPLES = """  regard see runs/demo "The animal didn't cross the street because it was too tired."
  regard see runs/demo "... too tired." "... too wide." --between animal street
  regard see runs/demo "I slept." --with runs/other       the same text, another model
  regard see runs/demo "I slept." --with 500              the same model after 500 steps, if that checkpoint is kept
  regard see runs/demo "I slept." --terminal              a heat map here, no page
  regard see runs/demo "I slept." --to it.svg --kind encoder --layer 1 --head 2 --word slept
  regard see runs/demo                                    how it learned: curves, samples, attention as it forms

The page is one file that needs no network: where every word looks, in every layer and head (the larger the weight,
the thicker the line); what becomes of the translation as each head is switched off; the beam search; the computation,
step by step. With --between, which head's attention moves from one word to the other between two texts.
By the ending of --to: .html the page, .svg a picture, .csv all weights, .txt the largest."""


def add_parser(commands: Subparsers) -> None:
    """`regard see DIR [TEXT ...]`."""
    parser = add_command(commands, "see", "show what the attention does, or how the model learned", EXAMPLES)
    parser.add_argument("folder", type=path_of, metavar="DIR", help="a model folder made by regard train")
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="texts to look at; none: how the model learned")
    parser.add_argument("--to", type=path_of, metavar="FILE", help="default DIR/attention.html or DIR/training.html")
    parser.add_argument("--no-open", action="store_true", help="write the page and do not open it in the browser")
    parser.add_argument("--target", metavar="TEXT", help="look at this translation, not at the model's own")
    parser.add_argument("--between", nargs=2, metavar="WORD", help="two words that heads may choose between")
    parser.add_argument("--with", dest="other", metavar="DIR|STEP", help="beside another model, or an earlier step")
    parser.add_argument(
        "--beam",
        type=whole(1, MOST_SHOWN),
        default=5,
        metavar="N",
        help="width of the search shown (default 5; 1 none)",
    )
    parser.add_argument("--no-knock-out", action="store_true", help="do not switch off each head in turn")
    parser.add_argument("--knock-out", metavar="WORD", help="the written word whose probability knock-outs tell")
    parser.add_argument("--terminal", action="store_true", help="print a heat map and write no page")
    parser.add_argument("--list", action="store_true", help="with --terminal: the largest weights, in words")
    chosen = parser.add_argument_group("what a heat map or picture shows (layers and heads count from 1)")
    chosen.add_argument(
        "--kind", metavar="KIND", help="encoder, decoder, cross, local or compressed (default the last)"
    )
    chosen.add_argument("--layer", type=whole(1), metavar="N", help="default: the last")
    chosen.add_argument(
        "--head", type=head, metavar="N", help="or max, or rollout through all layers (default: the mean of all heads)"
    )
    chosen.add_argument("--word", default="", metavar="WORD", help="only where this word looks")
    chosen.add_argument(
        "--pieces", action="store_true", help="pieces of words as the model reads them, not whole words"
    )
    parser.add_argument("--threads", type=whole(0, MOST_THREADS), default=0, metavar="N", help="CPU threads")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show."""
    if options.to is not None:
        check_target(options.to)  # before anything that takes long
    if not options.texts:
        return training(options)
    from regard.inference.torch_models import load

    model = load(options.folder, threads=options.threads)
    if options.terminal:
        if options.word:
            raise ConfigError("--word is for pictures; a terminal shows where all words look. Leave it out.")
        return terminal(options, model)
    if options.to is not None and options.to.suffix.lower() not in (".html"):
        return picture(options, model)
    models = [model] if options.other is None else [model, another(options)]
    from regard.interpret.exhibit import look

    found = look(
        models,
        options.texts,
        target=options.target,
        between=tuple(options.between) if options.between else None,
        word=options.knock_out,
        knock_out=not options.no_knock_out,
        beam=options.beam,
        note=note,
    )
    note("")
    if found.move:
        print(found.move.sentence())
    return deliver(found.html(), options.to or options.folder / "attention.html", options)


def head(text: str) -> int | str:
    """A number, or the name of a way to take heads together."""
    return int(text) if text.isdecimal() else text


def training(options: argparse.Namespace) -> int:
    """The page of a run, finished or not."""
    from regard.interpret.training_history import history_of

    return deliver(history_of(options.folder).html(), options.to or options.folder / "training.html", options)


def another(options: argparse.Namespace) -> Any:
    """The model of another folder, or of an earlier step."""
    from regard.inference.torch_models import load, load_step

    if options.other.isdecimal():
        return load_step(options.folder, int(options.other))
    return load(Path(options.other))


def terminal(options: argparse.Namespace, model: Any) -> int:
    """A heat map for each text, or the largest weights in words."""
    from regard.interpret.terminal import best_colours, compact, heat_map, is_dark
    from regard.interpret.views import show

    width, encoding = shutil.get_terminal_size((100, 24)).columns, sys.stdout.encoding or "ascii"
    colours, dark = best_colours(sys.stdout, os.environ), is_dark(os.environ)
    for text in options.texts:
        trace = looked_at(options, model, text)
        if not trace.maps:
            print(repr(trace))
            continue
        shown = show(trace, options.kind, options.layer, options.head, pieces=options.pieces)
        if options.list:
            print(compact(shown, encoding))
        else:
            print(heat_map(shown, colours=colours, width=width, dark=dark, encoding=encoding))
    return 0


def picture(options: argparse.Namespace, model: Any) -> int:
    """A file that is no page, by its ending."""
    if len(options.texts) > 1:
        raise ConfigError(f"{options.to} can show one text only, and {len(options.texts)} were given.")
    trace = looked_at(options, model, options.texts[0])
    chosen = {"kind": options.kind, "layer": options.layer, "head": options.head, "pieces": options.pieces}
    # Only a picture can show one word alone.
    trace.save(options.to, **chosen, **({"word": options.word} if options.word else {}))
    print(options.to)
    return 0


def looked_at(options: argparse.Namespace, model: Any, text: str) -> "Trace":
    """One text, as the model reads it and, if it translates, writes it."""
    from regard.decode.translator import Translator

    if isinstance(model, Translator):
        return model.attention(text, options.target)
    if options.target is not None:
        raise ConfigError("--target is for models that translate, and this one does not. Leave it out.")
    trace: Trace = model.attention(text)
    return trace


def deliver(page: str, path: Path, options: argparse.Namespace) -> int:
    """Write the page, say where it is, and open it if someone is there to see it."""
    with open_output(path) as out:
        out.put_bytes(page.encode("utf-8", "replace"))
    print(path)
    if not options.no_open and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
    return 0


def note(text: str) -> None:
    """What is being done, for someone who waits."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:100]}", end="\n" if not text else "", file=sys.stderr, flush=True)
