"""What `regard fill`, `classify` and `embed` share: the model, where texts come from, and in which portions."""

import argparse
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from regard.cli.lines import Lines
from regard.cli.options import add_engine_option
from regard.cli.values import MOST_THREADS, path, whole

if TYPE_CHECKING:
    from regard.encode.embed import TextReader

T = TypeVar("T", bound="TextReader")


def add_reading_options(parser: argparse.ArgumentParser, text: str) -> None:
    """The folder, the texts and the machine."""
    parser.add_argument("folder", type=path, metavar="DIR", help="a model folder")
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help=text + "; standard input if neither it nor --input is given"
    )
    parser.add_argument("--input", metavar="FILE", help="the lines of a file (also .gz; - is standard input)")
    machine = parser.add_argument_group("machine")
    machine.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:N or mps")
    machine.add_argument("--threads", type=whole(0, MOST_THREADS), default=0, metavar="N", help="CPU threads")
    machine.add_argument(
        "--precision", default="auto", metavar="NAME", help="auto = float32; int8 is faster, with ctranslate2 alone"
    )
    add_engine_option(parser)


def opened(kind: type[T], options: argparse.Namespace) -> T:
    """The model in the folder, with the engine asked for."""
    from regard.inference.load import load_reader

    return load_reader(
        kind,
        options.folder,
        engine=options.engine,
        device=options.device,
        threads=options.threads,
        precision=options.precision,
    )


def portions(lines: Lines) -> Iterator[list[str]]:
    """The texts to read, some at a time."""
    every = iter(lines)
    while portion := [line.rstrip("\r\n") for line in islice(every, lines.together)]:
        yield portion
