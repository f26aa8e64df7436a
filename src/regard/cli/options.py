"""Options that several commands share, and settings from recipe, `--set` and options, in that order of strength."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.values import MOST_PROCESSES, MOST_THREADS, number, path, whole
from regard.config import (
    MODEL_CONFIGS,
    SIZES,
    Config,
    DecodeConfig,
    TextConfig,
    TrainConfig,
    describe,
    merge,
    parse_set,
    read_recipe,
)

if TYPE_CHECKING:
    from regard.decode.translation import TextTranslator

# Candidates for a source token: as good a BLEU as with all words, in little more than half the time (docs/engines.md).
USUAL_SHORTLIST = 50
Subparsers = Any  # argparse does not name the type of what add_subparsers returns


def add_command(commands: Subparsers, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A command with a one-line summary and worked examples."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Options that end up as settings of a run."""
    group = parser.add_argument_group("settings")
    group.add_argument("--model", metavar="NAME", help=f"which model: {', '.join(MODEL_CONFIGS)}")
    sizes = dict.fromkeys(size for table in SIZES.values() for size in table)
    group.add_argument("--size", metavar="SIZE", help=f"how large: {', '.join(sizes)} (default tiny)")
    group.add_argument("--recipe", metavar="FILE", type=path, help="settings from a TOML file, such as recipes/*.toml")
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="one setting, e.g. train.rate=0.003; repeatable"
    )
    group.add_argument("--steps", type=whole(), metavar="N", help="updates at most (train.steps)")
    group.add_argument("--max-minutes", type=number(0), metavar="M", help="minutes at most (train.max_minutes)")
    group.add_argument("--seed", type=whole(), metavar="N", help="same seed, same model (train.seed)")
    group.add_argument("--threads", type=whole(), metavar="N", help="CPU threads (train.threads)")
    group.add_argument("--device", metavar="NAME", help="auto, cpu, cuda, cuda:N or mps (train.device)")
    group.add_argument("--columns", metavar="A,B", help="columns or keys of source and target (text.columns)")


def training_settings(options: argparse.Namespace, start: Path | None = None, words: Path | None = None) -> Config:
    """Recipe first, then `--set`, then the options of their own; all over what the folder `start` holds, if given, or
    over what `words` says of its tokenizer.
    """
    from regard.folder.layout import settings_over

    return settings_over(training_tables(options), start, words)


def training_tables(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """What was given by recipe, `--set` and options, unchecked."""
    named = {
        "model": {"name": options.model, "size": options.size},
        "train": {
            "steps": options.steps,
            "max_minutes": options.max_minutes,
            "seed": options.seed,
            "threads": options.threads,
            "device": options.device,
        },
        "text": {"columns": options.columns},
    }
    given = {s: {k: v for k, v in table.items() if v is not None} for s, table in named.items()}
    recipe = read_recipe(options.recipe) if options.recipe else {}
    return merge(recipe, parse_set(options.set), given)


class ShowSettings(argparse.Action):
    """`--settings`: print every setting with its default and meaning, then leave."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        show("text", TextConfig.__doc__, TextConfig)
        show("train", TrainConfig.__doc__, TrainConfig)
        show("decode", DecodeConfig.__doc__, DecodeConfig)
        for name, kind in MODEL_CONFIGS.items():
            show("model", f"--model {name}: {kind.__doc__}", kind)
        parser.exit()


def show(section: str, title: str | None, kind: type) -> None:
    """One section: each setting with its default and meaning."""
    print(f"[{section}]  {title}")
    for name, default, meaning in describe(kind):
        print(f"  {section + '.' + name:28} {default!s:14} {meaning}")
    print()


def add_decode_options(parser: argparse.ArgumentParser) -> None:
    """Options that override how the model writes."""
    group = parser.add_argument_group("search")
    group.add_argument("--beam", type=whole(), metavar="N", help="hypotheses kept at each step; 1 = greedy (default 4)")
    group.add_argument(
        "--length-penalty", type=number(), metavar="A", help="how far long sentences are forgiven (default 0.6)"
    )
    group.add_argument("--coverage-penalty", type=number(), metavar="B", help="cost of leaving source words unattended")
    group.add_argument("--sample", action="store_true", default=None, help="draw words at random instead of searching")
    group.add_argument("--temperature", type=number(), metavar="T", help="sampling: below 1 bolder, above 1 more even")
    group.add_argument("--top-k", type=whole(), metavar="K", help="sampling: only among the K likeliest words")
    group.add_argument("--top-p", type=number(), metavar="P", help="sampling: only among the likeliest with mass P")
    group.add_argument("--seed", type=whole(), metavar="N", help="sampling: same seed, same text")
    group.add_argument(
        "--no-repeat", type=whole(), metavar="N", help="never write the same N words twice in a sentence"
    )
    group.add_argument("--min-length", type=whole(), metavar="N", help="tokens at least")
    group.add_argument("--max-length", type=whole(), metavar="N", help="tokens at most")
    group.add_argument(
        "--batch-tokens", type=whole(), metavar="N", help="tokens translated together; changes speed only"
    )
    group.add_argument("--precision", metavar="NAME", help="auto, float32, bfloat16 or int8: numbers computed with")
    machine = parser.add_argument_group("machine")
    machine.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:N or mps")
    machine.add_argument("--threads", type=whole(0, MOST_THREADS), default=0, metavar="N", help="CPU threads")


def add_better_options(parser: argparse.ArgumentParser) -> None:
    """What makes a translation better, and takes longer."""
    group = parser.add_argument_group("better, but slower (torch)")
    group.add_argument(
        "--mbr",
        type=whole(),
        metavar="N",
        help="draw N samples, and choose the text most like the others by chrF (minimum Bayes risk)",
    )
    add_with_option(group)
    group.add_argument(
        "--rescore",
        action="append",
        default=[],
        type=path,
        metavar="DIR",
        help="let this model folder, of any tokenizer, or a language model of the target, judge the n-best too; repeatable",
    )
    group.add_argument(
        "--rescore-weight", type=number(), default=1.0, metavar="W", help="how much each of these counts (default 1)"
    )


def add_start_options(parser: argparse.ArgumentParser) -> None:
    """What training begins with, or goes on with: `--from`, whose value `training_settings` is given too, and `--override`."""
    parser.add_argument(
        "--from",
        dest="start",
        type=path,
        metavar="DIR",
        help="begin with the weights and tokenizer of this model folder",
    )
    parser.add_argument("--override", action="store_true", help="accept settings that differ from the run's first ones")


def add_with_option(group: argparse._ActionsContainer) -> None:
    """Further models, to write together."""
    group.add_argument(
        "--with",
        dest="others",
        action="append",
        default=[],
        type=path,
        metavar="DIR",
        help="average the word probabilities with those of this model folder too (same tokenizer); repeatable",
    )


def add_engine_option(parser: argparse.ArgumentParser) -> None:
    """Which library computes."""
    parser.add_argument(
        "--engine",
        default="auto",
        metavar="NAME",
        help="auto, torch or ctranslate2, which starts and works faster; auto = ctranslate2 where it can do the same",
    )


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Which library translates, and whether by a shortlist."""
    add_engine_option(parser)
    parser.add_argument(
        "--shortlist",
        type=whole(),
        nargs="?",
        const=USUAL_SHORTLIST,
        metavar="N",
        help="faster: score only the N likeliest translations of each source token, learned from the training text at first "
        f"use (default if bare: {USUAL_SHORTLIST})",
    )


def add_processes_option(parser: argparse.ArgumentParser) -> None:
    """How many processes translate."""
    parser.add_argument(
        "--processes",
        type=whole(1, MOST_PROCESSES),
        default=1,
        metavar="N",
        help="translate with so many processes, which share the threads; the same text (default 1)",
    )


@contextmanager
def translator_of(
    options: argparse.Namespace, settings: dict[str, Any], *, processes: int | None = None
) -> Iterator["TextTranslator"]:
    """The translator that the options ask for; `processes`, if not as many as they do."""
    from regard.inference.load import Opening, rescored, translating

    opening = Opening(options.folder, options.engine, options.device, tuple(settings.items()), tuple(options.others))
    machine = {"device": options.device, "threads": options.threads}
    with translating(opening, options.threads, processes or options.processes) as translator:
        yield rescored(translator, options.rescore, options.rescore_weight, **machine)


def decode_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The search options that were given."""
    names = (name for name, _, _ in describe(DecodeConfig))
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}
