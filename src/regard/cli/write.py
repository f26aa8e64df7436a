"""`regard write`."""

import argparse
import json
import sys
from pathlib import Path

from regard.cli.settings import Subparsers, add_command, add_decode_options, decode_settings

EXAMPLES = """  regard write runs/shakespeare "To be, or"
  regard write runs/shakespeare "To be, or" --temperature 0.8 --max-length 500
  regard write runs/shakespeare --n-best 3 --seed 7
  regard write runs/shakespeare "To be, or" --beam 4 --no-repeat 3
  echo "To be, or" | regard write runs/shakespeare -

Words are drawn at random as likely as the model holds them; --seed draws others. With --beam the
likeliest text is searched for instead, which is dull in long texts.
--max-length counts the tokens written after the beginning (200 if it is not given)."""


def add_parser(commands: Subparsers) -> None:
    """`regard write DIR [TEXT]`."""
    parser = add_command(commands, "write", "go on with a text, with a language model", EXAMPLES)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a model folder trained on running text")
    parser.add_argument(
        "text", nargs="?", default="", metavar="TEXT", help="the beginning; none if not given, standard input if -"
    )
    parser.add_argument("--n-best", type=int, metavar="N", help="so many texts")
    parser.add_argument("--json", action="store_true", help="one JSON object for each text")
    add_decode_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write."""
    settings = decode_settings(options)
    # A beam asks for the likeliest text; without one, words are drawn.
    settings.setdefault("sample", "beam" not in settings)
    from regard.api import load_as
    from regard.decode.author import Author

    author = load_as(Author, options.folder, device=options.device, threads=options.threads)
    piped = sys.stdin.buffer.read().decode(errors="replace").replace("\r\n", "\n") if options.text == "-" else ""
    prompt = piped.removesuffix("\n") if options.text == "-" else options.text
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    texts = author.n_best(prompt, **settings)
    for number, text in enumerate(texts, 1):
        if options.json:
            print(json.dumps({"number": number, "text": text}, ensure_ascii=False))
        else:
            print(text if len(texts) == 1 else f"{number}\t{text}")
    return 0
