"""`regard score`."""

import argparse
import json
import sys
from pathlib import Path

from regard.cli.settings import Subparsers, add_command, add_decode_options, decode_settings

EXAMPLES = """  regard score runs/mine test.en test.fr
  regard score runs/mine test.tsv --beam 5 --json
  regard score runs/mine test.tok.en test.tok.fr --tokenize none
  regard score runs/builtin builtin:en-fr/ambiguous --metrics bleu

Scores are sacrebleu's, each with its signature and a 95% bootstrap confidence interval."""


def add_parser(commands: Subparsers) -> None:
    """`regard score DIR DATA`."""
    parser = add_command(commands, "score", "translate a test set and score it: BLEU, chrF, TER, perplexity", EXAMPLES)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a model folder made by regard train")
    parser.add_argument("data", nargs="+", metavar="DATA", help="the test set, given as to regard train")
    parser.add_argument(
        "--tokenize", default="13a", metavar="NAME", help="sacrebleu's tokenizer for BLEU (none if tokenised)"
    )
    parser.add_argument(
        "--metrics", default="bleu,chrf,ter", metavar="LIST", help="which of bleu, chrf, ter (default all)"
    )
    parser.add_argument("--columns", default="", metavar="A,B", help="columns or keys of source and target")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the translations to a file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_decode_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Translate and score."""
    settings = decode_settings(options)
    from regard.api import load, read_pairs
    from regard.evaluate import evaluate
    from regard.storage import write_file

    pairs = read_pairs(options.data, options.columns)
    translator = load(options.folder, device=options.device, threads=options.threads)
    report = evaluate(
        translator,
        pairs,
        tokenize=options.tokenize,
        metrics=options.metrics.split(","),
        progress=show if sys.stderr.isatty() else None,
        **settings,
    )
    if options.output:
        write_file(options.output, "".join(line + "\n" for line in report.hypotheses).encode())
    print(json.dumps(report.as_table(), ensure_ascii=False) if options.json else "\n".join(report.lines()))
    return 0


def show(done: int, total: int) -> None:
    """Progress on stderr."""
    print(f"\r{done:,} of {total:,} translated", end="\n" if done == total else "", file=sys.stderr, flush=True)
