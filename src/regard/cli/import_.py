"""`regard import`."""

import argparse

from regard.cli.options import Subparsers, add_command
from regard.cli.values import path

EXAMPLES = """  regard import downloads/bert-base-uncased --to runs/bert
  regard import downloads/all-MiniLM-L6-v2 --to runs/minilm

The folder is as save_pretrained writes it: config.json, model.safetensors, and tokenizer.json or vocab.txt.
BERT can be imported: plain, with its layers for guessing words and the next sentence, or as a classifier of
texts. Nothing in the folder is executed."""


def add_parser(commands: Subparsers) -> None:
    """`regard import FOLDER --to DIR`."""
    parser = add_command(commands, "import", "take over a BERT in Hugging Face's format", EXAMPLES)
    parser.add_argument("source", type=path, metavar="FOLDER", help="the published model")
    parser.add_argument("--to", type=path, required=True, metavar="DIR", help="the model folder to make")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import."""
    from regard.interop.huggingface import import_bert

    came = import_bert(options.source, options.to)
    model = came.config.model
    print(
        f"{came.parameters:,} parameters: {model.depth} layers of width {model.width}, "
        f"{came.config.text.vocabulary:,} words"
    )
    if came.labels:
        print(f'It labels texts: {", ".join(came.labels)}. Try it:\n  regard classify {options.to} "your text"')
    elif "words" in came.heads:
        print(f'It guesses hidden words. Try it:\n  regard fill {options.to} "A text with a <mask> in it."')
    else:
        print(f'It came without a layer for guessing words. Try it:\n  regard embed {options.to} "your text"')
    return 0
