"""`regard embed`."""

import argparse
import json

from regard.cli.encode_options import add_reading_options, opened, portions
from regard.cli.lines import Lines
from regard.cli.options import Subparsers, add_command
from regard.cli.output import add_output_option, open_output

EXAMPLES = """  regard embed runs/minilm "A sentence."
  regard embed runs/minilm --input sentences.txt --normalize --output vectors.npy
  regard embed runs/minilm --pool first < sentences.txt > vectors.jsonl

Each input line gives one output line, in order: its vector, as a JSON list. An empty line gives zeros.
With --output FILE.npy all vectors are saved as one matrix, for numpy.load."""


def add_parser(commands: Subparsers) -> None:
    """`regard embed DIR [TEXT]`."""
    parser = add_command(commands, "embed", "turn texts into vectors, with a model that reads", EXAMPLES)
    add_reading_options(parser, "the text")
    add_output_option(parser, "write to a file; .npy for numpy")
    parser.add_argument(
        "--pool", choices=["mean", "first"], default="mean", help="the mean over tokens (default), or the first token"
    )
    parser.add_argument("--normalize", action="store_true", help="vectors of length 1: their products are cosines")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Embed."""
    from regard.encode.embed import TextReader

    lines = Lines(options)
    matrix = Matrix() if options.output and options.output.suffix == ".npy" else None
    with open_output(options.output, header=matrix.header if matrix else None, source=options.input) as out:
        reader = opened(TextReader, options)
        if matrix:
            matrix.width = reader.embed([]).shape[1]
        for texts in portions(lines):
            for vector in reader.embed(texts, pool=options.pool, normalize=options.normalize):
                if matrix:
                    out.put_bytes(vector.tobytes())
                else:
                    # As many digits as the numbers have.
                    out.put(json.dumps([float(f"{number:.7g}") for number in vector.tolist()]))
            out.flush()
    return 0


class Matrix:
    """What a file for numpy.load begins with: its shape, which is known only in the end."""

    width = 0

    def header(self, rows: int) -> bytes:
        """Always as long: numpy leaves room for rows to be added."""
        from io import BytesIO

        from numpy.lib import format as npy

        made = BytesIO()
        npy.write_array_header_1_0(made, {"descr": "<f4", "fortran_order": False, "shape": (rows, self.width)})
        return made.getvalue()
