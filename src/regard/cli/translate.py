"""`regard translate`."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from regard.cli.settings import (
    Subparsers,
    add_better_options,
    add_command,
    add_decode_options,
    add_engine_options,
    add_processes_option,
    decode_settings,
    translator_of,
)
from regard.errors import ConfigError

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
    parser.add_argument("folder", type=Path, metavar="DIR", help="a model folder made by regard train")
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="the text; standard input if neither it nor --input is given"
    )
    parser.add_argument("--input", metavar="FILE", help="translate the lines of a file (also .gz; - is standard input)")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to a file, which appears when it is complete"
    )
    parser.add_argument("--n-best", type=int, metavar="N", help="so many translations of each line, best first")
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
    if options.text is not None and options.input is not None:
        raise ConfigError("Both a TEXT and --input were given. Give one of them.")
    settings = decode_settings(options)
    if settings.get("n_best", 1) > 1 and not settings.get("sample") and not settings.get("mbr"):
        settings.setdefault("beam", max(4, settings["n_best"]))
    lines = options.text.split("\n") if options.text is not None else lines_of(options.input or "-")
    # Someone typing wants each answer at once; a file is faster in chunks.
    typing = options.text is None and options.input is None and sys.stdin.isatty()
    # One text, or one at a time, is not to be shared.
    processes = 1 if options.text is not None or typing else None
    with (
        translator_of(options, settings, processes=processes) as translator,
        open_output(options.output) as out,
    ):
        found = translator.stream(counted(lines), chunk=1 if typing else 1000, prefix=options.prefix, **settings)
        for number, translations in enumerate(found, start=1):
            for line in rendered(number, translations, options):
                out.write(line + "\n")
            if typing:
                out.flush()
    return 0


def lines_of(name: str) -> Iterator[str]:
    """The lines of a file or of standard input."""
    from regard.text.corpus import read_lines

    return read_lines(name)


def rendered(number: int, translations: "list[Translation]", options: argparse.Namespace) -> list[str]:
    """The output lines of one input line."""
    if options.json:
        table = [{"text": text, "score": round(score, 6)} for text, score in translations]
        return [json.dumps({"line": number, "translations": table}, ensure_ascii=False)]
    if options.scores or (options.n_best or 1) > 1:
        return [f"{number}\t{score:.4f}\t{text}" for text, score in translations]
    return [translations[0].text]


def counted(lines: Iterable[str]) -> Iterator[str]:
    """The same lines, with a count on stderr if someone is watching it and not the output."""
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    for number, line in enumerate(lines, start=1):
        yield line
        if watched and number % 1000 == 0:
            print(f"\r{number:,} lines", end="", file=sys.stderr, flush=True)
    if watched:
        print(file=sys.stderr)


@contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that takes its name only once everything has been written."""
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        yield sys.stdout
        return
    from regard.storage import explained

    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path):
        out = open(temporary, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed below)
    try:
        with out:
            yield out
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
