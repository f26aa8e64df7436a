"""`regard models`."""

import argparse

from regard.cli.options import Subparsers, add_command
from regard.cli.values import whole
from regard.config import MODEL_CONFIGS, SIZES, read

EXAMPLES = """  regard models
  regard models --vocabulary 37000"""


def add_parser(commands: Subparsers) -> None:
    """`regard models`."""
    parser = add_command(commands, "models", "list the models there are, with their sizes", EXAMPLES)
    parser.add_argument(
        "--vocabulary",
        type=whole(1, 10**9),
        default=8000,
        metavar="N",
        help="words to count parameters for (default 8000)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """One paragraph for each model: its name, what it is, and how many parameters each size has."""
    import torch

    from regard.models import build

    # On this device tensors have shapes but no numbers: counting costs no memory.
    with torch.device("meta"):
        for name, kind in MODEL_CONFIGS.items():
            print(f"{name:13}{(kind.__doc__ or '').splitlines()[0]}")
            counts = []
            for size in SIZES[kind]:
                model = build(read({"model": {"name": name, "size": size}}).model, options.vocabulary)
                counts.append(f"{size} {sum(p.numel() for p in model.parameters()) / 1e6:.1f}M")
            print(f"{'':13}{', '.join(counts)}")
    return 0
