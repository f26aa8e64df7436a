"""`regard write`."""

import argparse
import json

from regard.cli.options import Subparsers, add_command, add_decode_options, decode_settings
from regard.cli.output import add_output_option, open_output
from regard.cli.values import path, whole

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
    parser.add_argument("folder", type=path, metavar="DIR", help="a model folder trained on running text")
    parser.add_argument(
        "text", nargs="?", default="", metavar="TEXT", help="the beginning; none if not given, standard input if -"
    )
    parser.add_argument("--n-best", type=whole(1, 1000), metavar="N", help="so many texts")
    add_output_option(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object for each text")
    add_decode_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write."""
    settings = decode_settings(options)
    # A beam asks for the likeliest text; without one, words are drawn.
    settings.setdefault("sample", "beam" not in settings)
    from regard.decode.generator import Author
    from regard.inference.torch_models import load_as

    with open_output(options.output) as out:
        author = load_as(Author, options.folder, device=options.device, threads=options.threads)
        texts = author.n_best(beginning() if options.text == "-" else options.text, **settings)
        for number, text in enumerate(texts, 1):
            if options.json:
                out.put(json.dumps({"number": number, "text": text}, ensure_ascii=False))
            else:
                out.put(text if len(texts) == 1 else f"{number}\t{text}")
    return 0


def beginning() -> str:
    """What standard input holds, its last line end left out."""
    from regard.text.corpus import standard_input

    return standard_input().read().decode(errors="replace").replace("\r\n", "\n").removesuffix("\n")
