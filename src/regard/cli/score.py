"""`regard score`."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from regard.cli.options import (
    Subparsers,
    add_better_options,
    add_command,
    add_decode_options,
    add_engine_options,
    add_processes_option,
    decode_settings,
    translator_of,
)
from regard.cli.output import AT_A_TIME, Output, add_output_option, open_output
from regard.cli.streams import print_json
from regard.cli.values import path
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.decode.translation import Progress, TextTranslator, Translation
    from regard.evaluation.label_metrics import LabelReport
    from regard.evaluation.perplexity import TextReport
    from regard.evaluation.search_grid import Trials
    from regard.evaluation.translation import Report
    from regard.text.corpus import Corpus

EXAMPLES = """  regard score runs/mine test.en test.fr
  regard score runs/mine test.tsv --beam 5 --json
  regard score runs/mine test.tok.en test.tok.fr --tokenize none
  regard score runs/builtin builtin:en-fr/ambiguous --metrics bleu
  regard score runs/summaries test.jsonl --metrics rouge --references second.txt --references third.txt
  regard score runs/one --with runs/two test.en test.fr
  regard score runs/mine valid.en valid.fr --tune --keep
  regard score runs/book held-out.txt
  regard score runs/reviews test.tsv --columns text,label

What is measured depends on what the model learned.
A model that writes one text for another: BLEU, chrF and TER by sacrebleu; with --metrics rouge, for summaries
in English, ROUGE by the rouge-score package; each with its signature and a 95% bootstrap confidence interval.
WER, the word error rate, counts words inserted, left out and replaced, for answers that have a right order.
With further --references, ROUGE and WER take the best for each text, and the others do as sacrebleu does with several.
A language model trained on running text: perplexity and bits per byte.
A classifier: accuracy, F1 and Matthews' correlation."""


def add_parser(commands: Subparsers) -> None:
    """`regard score DIR DATA`."""
    parser = add_command(
        commands, "score", "measure a model on a test set: BLEU, chrF, TER, ROUGE, perplexity, accuracy", EXAMPLES
    )
    parser.add_argument("folder", type=path, metavar="DIR", help="a model folder made by regard train")
    parser.add_argument("data", nargs="+", metavar="DATA", help="the test set, given as to regard train")
    parser.add_argument(
        "--tokenize", default="13a", metavar="NAME", help="sacrebleu's tokenizer for BLEU (none if tokenised)"
    )
    parser.add_argument(
        "--metrics",
        default="bleu,chrf,ter",
        metavar="LIST",
        help="which of bleu, chrf, ter, wer, rouge1, rouge2, rougeL, or rouge for these three (default bleu,chrf,ter)",
    )
    parser.add_argument(
        "--references",
        action="append",
        default=[],
        metavar="FILE",
        help="further references, one line for each pair, an empty line where there is none; repeatable",
    )
    parser.add_argument("--columns", default="", metavar="A,B", help="columns or keys of source and target")
    add_output_option(parser, "also write the translations, or the labels, to a file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--tune",
        action="store_true",
        help="try several beams and length penalties (but for one that is given), by the first of --metrics",
    )
    parser.add_argument("--keep", action="store_true", help="with --tune: make the best search the model's own")
    add_decode_options(parser)
    add_engine_options(parser)
    add_better_options(parser)
    add_processes_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Score the model by what it learned."""
    from regard.folder.layout import load_config

    learned = load_config(options.folder)[1].get("job", "pairs")
    scorers: dict[str, Callable[[argparse.Namespace, Output], Report | TextReport | LabelReport | Trials]]
    scorers = {"text": score_text, "labelling": score_labels}
    if learned in scorers and (options.others or options.rescore or options.tune or options.processes > 1):
        raise ConfigError(
            "--with, --rescore, --tune and --processes are for models that translate; "
            f"{options.folder} does not. Leave them out."
        )
    if options.keep and not options.tune:
        raise ConfigError("--keep keeps what --tune found. Give both, or none.")
    if options.output and (learned == "text" or options.tune):
        raise ConfigError(
            "--output is for what one search or a classifier wrote, and there is no such thing. Leave it out."
        )
    with written_too(options) as out:
        report = scorers.get(learned, score_searches if options.tune else score_pairs)(options, out)
    if options.json:
        print_json(report.as_table())
    else:
        print("\n".join(report.lines()))
    return 0


def score_text(options: argparse.Namespace, _: Output) -> "TextReport":
    """How surprised a language model is."""
    from regard.decode.generator import Author
    from regard.evaluation.perplexity import perplexity
    from regard.folder.layout import load_config
    from regard.inference.torch_models import load_as
    from regard.text.plain_text import open_documents

    text = load_config(options.folder)[0].text
    documents = open_documents(options.data, unit=text.document, columns=options.columns)
    author = load_as(Author, options.folder, device=options.device, threads=options.threads)
    return perplexity(author, documents, text.longest)


def score_labels(options: argparse.Namespace, out: Output) -> "LabelReport":
    """How many labels are right."""
    from regard.encode.torch_classify import Labeller
    from regard.evaluation.label_metrics import LabelReport
    from regard.inference.torch_models import load_as
    from regard.text.batching.labelled import all_labelled_texts
    from regard.text.corpus import open_corpus

    corpus = open_corpus(options.data, columns=options.columns)
    rows = list(all_labelled_texts(corpus))
    guessed: list[str] = []
    labeller = load_as(Labeller, options.folder, device=options.device, threads=options.threads)
    for first in range(0, len(rows), AT_A_TIME):
        some = [pair.source for _, pair in rows[first : first + AT_A_TIME]]
        for found in labeller.classify(some, progress=part_of(len(rows), first)):
            guessed.append(found.label)
            out.put(found.label)
    if unlabelled := [line for line, pair in rows if not pair.target]:
        what = (
            "1 text has no label, and is"
            if len(unlabelled) == 1
            else f"{len(unlabelled):,} texts have no label, and are"
        )
        print(f"regard: {what} not scored (first: {corpus.place(unlabelled[0])})", file=sys.stderr)
    both = [(label, pair.target) for label, (_, pair) in zip(guessed, rows, strict=True) if pair.target]
    return LabelReport.of([label for label, _ in both], [right for _, right in both])


def score_searches(options: argparse.Namespace, _: Output) -> "Trials":
    """Search in several ways; the best may become the model's own."""
    settings = decode_settings(options)
    from dataclasses import replace

    from regard.evaluation.search_grid import try_searches
    from regard.folder.layout import load_config, save_config
    from regard.text.corpus import open_corpus

    pairs = [pair for _, pair in open_corpus(options.data, columns=options.columns).all_pairs()]
    metric = options.metrics.split(",")[0]
    with translator_of(options, dict(settings)) as translator:
        settings.pop("n_best", None)
        # What is given is not varied.
        fixed = {"beams": settings.pop("beam", None), "penalties": settings.pop("length_penalty", None)}
        chosen = {name: [value] for name, value in fixed.items() if value is not None}
        found = try_searches(translator, pairs, metric=metric, tokenize=options.tokenize, **chosen, **settings)
    if options.keep:
        config, about = load_config(options.folder)
        best = found.trials[0]
        decode = replace(config.decode, beam=best.beam, length_penalty=best.length_penalty, n_best=1)
        save_config(options.folder, replace(config, decode=decode), about)
    return found


def score_pairs(options: argparse.Namespace, out: Output) -> "Report":
    """Translate and compare."""
    settings = decode_settings(options)
    from regard.decode.translator import Translator
    from regard.evaluation.translation import evaluate
    from regard.inference.load import load
    from regard.inference.torch_models import load_as
    from regard.text.corpus import open_corpus

    corpus = open_corpus(options.data, columns=options.columns)
    pairs = [pair for _, pair in corpus.all_pairs()]
    references = [beside(corpus, len(pairs), name) for name in options.references]
    # Probabilities need torch, whichever engine translates.
    machine = {"device": options.device, "threads": options.threads}
    translator: Translator = (
        load([options.folder, *options.others], engine=options.engine, **machine)
        if options.others
        else load_as(Translator, options.folder, **machine)
    )
    with translator_of(options, settings) as fast:
        return evaluate(
            translator,
            pairs,
            fast=Noted(fast, out),  # type: ignore[arg-type]  # all of it that is asked for here
            tokenize=options.tokenize,
            metrics=options.metrics.split(","),
            references=references,
            **settings,
        )


class Noted:
    """A translator whose translations are written down as they are made, whatever becomes of the scores."""

    def __init__(self, translator: "TextTranslator", out: Output) -> None:
        self._translator, self._out = translator, out

    def n_best(self, texts: Sequence[str], *, progress: object = None, **settings: Any) -> "list[list[Translation]]":
        """The translations of each text, best first."""
        found: list[list[Translation]] = []
        for first in range(0, len(texts), AT_A_TIME):
            some = texts[first : first + AT_A_TIME]
            found += self._translator.n_best(some, progress=part_of(len(texts), first), **settings)
            for translations in found[first:]:
                self._out.put(translations[0].text)
            self._out.flush()
        return found


@contextmanager
def written_too(options: argparse.Namespace) -> Iterator[Output]:
    """Where single results go, beside the report: to --output, or nowhere."""
    if options.output is None:
        yield Output(lambda _: None)
        return
    with open_output(options.output) as out:
        yield out


def part_of(total: int, first: int) -> "Progress | None":
    """Progress with some of so many, of which the first are done."""
    return (lambda done, _: show(first + done, total)) if sys.stderr.isatty() else None


def beside(corpus: "Corpus", pairs: int, name: str) -> list[str]:
    """The lines of a file, one for each pair of the corpus."""
    from regard.text.corpus import read_lines

    lines = list(read_lines(name))
    if len(lines) != pairs:
        raise DataError(
            f"{name} has {len(lines):,} line{'' if len(lines) == 1 else 's'}, but {corpus.name} has {pairs:,} pairs. "
            "Give one line for each pair, in the same order; an empty one where there is no further reference."
        )
    return lines


def show(done: int, total: int) -> None:
    """Progress on stderr."""
    print(f"\r{done:,} of {total:,} done", end="\n" if done == total else "", file=sys.stderr, flush=True)
