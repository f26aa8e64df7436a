"""`regard embed`."""

import argparse
import io
import json
from pathlib import Path

from regard.cli.reading import add_reading_options, opened, portions
from regard.cli.settings import Subparsers, add_command
from regard.cli.translate import open_output

EXAMPLES = """  regard embed runs/minilm "A sentence."
  regard embed runs/minilm --input sentences.txt --normalize --output vectors.npy
  regard embed runs/minilm --pool first < sentences.txt > vectors.jsonl

Each input line gives one output line, in order: its vector, as a JSON list. An empty line gives zeros.
With --output FILE.npy all vectors are saved as one matrix, for numpy.load."""


def add_parser(commands: Subparsers) -> None:
    """`regard embed DIR [TEXT]`."""
    parser = add_command(commands, "embed", "turn texts into vectors, with a model that reads", EXAMPLES)
    add_reading_options(parser, "the text")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to a file, which appears when it is complete; .npy for numpy"
    )
    parser.add_argument(
        "--pool", choices=["mean", "first"], default="mean", help="the mean over tokens (default), or the first token"
    )
    parser.add_argument("--normalize", action="store_true", help="vectors of length 1: their products are cosines")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Embed."""
    import numpy as np

    from regard.reading.texts import TextReader
    from regard.storage import write_file

    reader = opened(TextReader, options)
    found = (reader.embed(texts, pool=options.pool, normalize=options.normalize) for texts in portions(options))
    if options.output and options.output.suffix == ".npy":
        written = io.BytesIO()
        np.save(written, np.concatenate([*found, reader.embed([])]))
        write_file(options.output, written.getvalue())
        return 0
    with open_output(options.output) as out:
        for vectors in found:
            for vector in vectors.tolist():
                # As many digits as the numbers have.
                out.write(json.dumps([float(f"{number:.7g}") for number in vector]) + "\n")
            out.flush()
    return 0
