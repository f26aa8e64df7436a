"""What `regard fill`, `classify` and `embed` share: the model, where texts come from, and in which portions."""

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from regard.cli.settings import add_engine_option
from regard.cli.translate import counted
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.reading.texts import TextReader

T = TypeVar("T", bound="TextReader")
CHUNK = 1000  # lines read together


def add_reading_options(parser: argparse.ArgumentParser, text: str) -> None:
    """The folder, the texts and the machine."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="a model folder")
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help=text + "; standard input if neither it nor --input is given"
    )
    parser.add_argument("--input", metavar="FILE", help="the lines of a file (also .gz; - is standard input)")
    machine = parser.add_argument_group("machine")
    machine.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:N or mps")
    machine.add_argument("--threads", type=int, default=0, metavar="N", help="processor threads")
    machine.add_argument(
        "--precision", default="auto", metavar="NAME", help="auto = float32; int8 is faster, with ctranslate2 alone"
    )
    add_engine_option(parser)


def opened(kind: type[T], options: argparse.Namespace) -> T:
    """The model in the folder, with the engine asked for."""
    from regard.loading import load_reader

    return load_reader(
        kind,
        options.folder,
        engine=options.engine,
        device=options.device,
        threads=options.threads,
        precision=options.precision,
    )


def portions(options: argparse.Namespace) -> Iterator[list[str]]:
    """The texts to read, some at a time: one by one for someone typing, who wants each answer at once."""
    from regard.text.corpus import read_lines

    if options.text is not None and options.input is not None:
        raise ConfigError("Both a TEXT and --input were given. Give one of them.")
    typing = options.text is None and options.input is None and sys.stdin.isatty()
    lines = counted(options.text.split("\n") if options.text is not None else read_lines(options.input or "-"))
    while portion := [line.rstrip("\r\n") for line in islice(lines, 1 if typing else CHUNK)]:
        yield portion
