"""`regard translate`."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from regard.cli.lines import Lines
from regard.cli.options import (
    Subparsers,
    add_better_options,
    add_command,
    add_decode_options,
    add_engine_options,
    add_processes_option,
    decode_settings,
    translator_of,
)
from regard.cli.output import add_output_option, open_output
from regard.cli.values import path, whole
from regard.folder.layout import load_config

if TYPE_CHECKING:
    from regard.decode.translation import Translation

EXAMPLES = """  regard translate runs/mine "A sentence."
  regard translate runs/mine --input book.en --output book.fr
  cat book.en | regard translate runs/mine --beam 1 > book.fr
  regard translate runs/mine "A sentence." --beam 8 --n-best 3 --scores
  regard translate runs/mine "A sentence." --sample --temperature 0.8 --n-best 5
  regard translate runs/mine "A sentence." --prefix "Une phrase"
  regard translate runs/mine --input book.en --engine ctranslate2 --precision float32
  regard translate runs/mine --input book.en --output book.fr --shortlist
  regard translate runs/mine "A sentence." --mbr 32 --top-p 0.9
  regard translate runs/mine "A sentence." --beam 8 --rescore runs/larger
  regard translate runs/one "A sentence." --with runs/two --with runs/three
  regard translate runs/mine --input book.en --output book.fr --processes 8

Each input line gives one output line, in order; an empty line gives an empty line.
With --n-best or --scores the lines are: input line number, score, text, separated by tabs."""


def add_parser(commands: Subparsers) -> None:
    """`regard translate DIR [TEXT]`."""
    parser = add_command(commands, "translate", "translate text with a model folder", EXAMPLES)
    parser.add_argument("folder", type=path, metavar="DIR", help="a model folder made by regard train")
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="the text; standard input if neither it nor --input is given"
    )
    parser.add_argument("--input", metavar="FILE", help="translate the lines of a file (also .gz; - is standard input)")
    add_output_option(parser)
    parser.add_argument(
        "--n-best", type=whole(1, 1000), metavar="N", help="so many translations of each line, best first"
    )
    parser.add_argument("--scores", action="store_true", help="show line numbers and scores")
    parser.add_argument("--json", action="store_true", help="one JSON object for each line")
    parser.add_argument("--prefix", default="", metavar="TEXT", help="every translation begins like this")
    add_decode_options(parser)
    add_engine_options(parser)
    add_better_options(parser)
    add_processes_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Translate."""
    lines, settings = Lines(options), decode_settings(options)
    with open_output(options.output, source=options.input) as out:
        widen(options, settings)
        # One text, or one at a time, is not to be shared.
        processes = 1 if lines.one or lines.typed else None
        with translator_of(options, settings, processes=processes) as translator:
            found = translator.stream(lines, chunk=lines.together, prefix=options.prefix, **settings)
            for number, translations in enumerate(found, start=1):
                out.put(*rendered(number, translations, options))
                if lines.typed:
                    out.flush()
    return 0


def widen(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """The folder's own beam finds the n best, so that the best is what it always is; only if it is too narrow is it wider."""
    wanted = settings.get("n_best", 1)
    if wanted == 1 or settings.get("beam") or settings.get("sample") or settings.get("mbr"):
        return
    own = load_config(options.folder)[0].decode
    if own.sample or own.mbr or wanted <= own.beam:
        return
    settings["beam"] = wanted
    print(
        f"regard: --n-best {wanted} needs a beam as wide. The model's own is {own.beam}, so the best may be "
        f"another than without --n-best. To choose the beam yourself: --beam {wanted}",
        file=sys.stderr,
    )


def rendered(number: int, translations: "list[Translation]", options: argparse.Namespace) -> list[str]:
    """The output lines of one input line."""
    if options.json:
        table = [{"text": text, "score": round(score, 6)} for text, score in translations]
        return [json.dumps({"line": number, "translations": table}, ensure_ascii=False)]
    if options.scores or (options.n_best or 1) > 1:
        return [f"{number}\t{score:.4f}\t{text}" for text, score in translations]
    return [translations[0].text]
