"""Train what a recipe describes, score it, and add the run to docs/results.jsonl, of which docs/results.md is made.

    python -m recipes.results --data FOLDER NAME [NAME ...]      or: make results DATA=FOLDER RESULT=NAME

FOLDER holds the corpora, see recipes/README.md. A training that was stopped goes on by the same command.
"""

import argparse
import datetime
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from bench.result import machine
from recipes import report, texts
from recipes.report import ROOT, Run


class Result(NamedTuple):
    """Commands, in which $DATA is the folder of the corpora and $TEXT what was made of them; $TO is the model folder,
    $RUNS holds all of these, and $SEED is its seed: a student's teachers are those of its own.
    """

    train: str
    scores: list[str]
    prepare: Callable[[Path, Path], None] | None = None
    """(corpora, folder to write to)."""
    made_up: str = ""
    """A command that writes words; the new ones go to $TEXT/made-up-$SEED.txt, for teachers to read."""


def captions(part: str, read: str, write: str, folder: str = "tok") -> str:
    """Both files of one part of Multi30k."""
    return " ".join(f"$DATA/multi30k/{folder}/{part}.{language}.gz" for language in (read, write))


def multi30k(read: str, write: str, *parts: str, folder: str = "tok", recipe: str = "") -> Result:
    """Captions from one language to another, scored on these parts."""
    how = "--beam 5 --length-penalty 1 --tokenize none" if folder == "tok" else ""
    train, valid = (captions(part, read, write, folder) for part in ("train", "val"))
    return Result(
        f"regard train {train} --valid {valid} --to $TO {recipe}",
        [f"regard score $TO {captions(part, read, write, folder)} {how}" for part in parts],
    )


def together(teachers: Sequence[str]) -> str:
    """Other results, as the teachers of one."""
    return " --with ".join(f"$RUNS/{teacher}-$SEED" for teacher in teachers)


def distilled(teachers: Sequence[str], recipe: str, how: str, *parts: str, start: str = "", back: str = "") -> Result:
    """English captions to German, learned from what other results write together; `start` is the one that goes on, and
    `back` the one that makes further sources.
    """
    train, valid = (captions(part, "en", "de") for part in ("train", "val"))
    others = " ".join(f"{name} $RUNS/{other}-$SEED" for name, other in (("--from", start), ("--back", back)) if other)
    return Result(
        f"regard distill {together(teachers)} {train} --valid {valid} {others} "
        f"--to $TO --beam 5 --nearest 5 --true-too --recipe recipes/{recipe}.toml",
        [f"regard score $TO {captions(part, 'en', 'de')} {how} --tokenize none" for part in parts],
    )


SPELLED = "$TEXT/train.tsv --valid $TEXT/valid.tsv --to $TO"
PRONOUNCED = [
    "regard score $TO $TEXT/valid.tsv --metrics wer",
    f"regard score $TO $TEXT/test.tsv {' '.join(f'--references $TEXT/test.{n}' for n in (2, 3, 4))} --metrics wer",
]


def letters(model: str) -> Result:
    """Spelling to sound."""
    return Result(f"regard train {SPELLED} --recipe recipes/cmudict-{model}.toml", PRONOUNCED, texts.cmudict)


def letters_distilled() -> Result:
    """Spelling to sound, learned from three models together, which also pronounce made-up words."""
    teachers = [f"cmudict-{model}" for model in ("transformer", "conv", "bahdanau")]
    return Result(
        f"regard distill {together(teachers)} {SPELLED} --from $RUNS/{teachers[0]}-$SEED "
        "--beam 1 --true-only --also $TEXT/made-up-$SEED.txt --recipe recipes/cmudict-distilled.toml",
        PRONOUNCED,
        texts.cmudict,
        "regard write $RUNS/cmudict-spelling-$SEED --n-best 200000 --max-length 30",
    )


def digits(task: str, model: str) -> Result:
    """More digits than ever in training. Numbers to add are the package's own."""
    data, parts = f"$TEXT/{task}.few.tsv --valid $TEXT/{task}.valid.tsv", ["80", "400", "to-400"]
    tests = [f"$TEXT/{task}.{part}.tsv" for part in parts]
    if task == "addition":
        data, tests = "builtin:addition", ["builtin:addition/80", "builtin:addition/400", "builtin:addition/long"]
    return Result(
        f"regard train {data} --to $TO --recipe recipes/digits-{model}.toml",
        [f"regard score $TO {test} --metrics wer" for test in tests],
        None if task == "addition" else texts.digits,
    )


CAPTIONS = "--recipe recipes/multi30k.toml"
AS_PUBLISHED = "--beam 5 --length-penalty 1"
TEACHERS = ("multi30k-en-de", "multi30k-en-de-conv")
STUDENTS = tuple(f"{teacher}-distilled" for teacher in TEACHERS)
RESULTS = {
    "multi30k-en-de": multi30k("en", "de", "val", "test_2016_flickr", recipe=CAPTIONS),
    "multi30k-en-de-conv": multi30k("en", "de", "val", recipe="--recipe recipes/multi30k-conv.toml"),
    "multi30k-en-de-distilled": distilled(
        TEACHERS, "multi30k-distilled", AS_PUBLISHED, "val", "test_2016_flickr", start="multi30k-en-de"
    ),
    "multi30k-en-de-conv-distilled": distilled(
        TEACHERS, "multi30k-distilled", AS_PUBLISHED, "val", start="multi30k-en-de-conv"
    ),
    "multi30k-en-de-again": distilled(
        STUDENTS, "multi30k-distilled", AS_PUBLISHED, "val", "test_2016_flickr", start="multi30k-en-de-distilled"
    ),
    **{
        f"multi30k-{read}-{write}-relative": multi30k(
            read, write, "val", recipe="--recipe recipes/multi30k-relative.toml"
        )
        for read, write in (("en", "de"), ("de", "en"))
    },
    "multi30k-en-de-diverse": distilled(
        ("multi30k-en-de-relative", *STUDENTS),
        "multi30k-diverse",
        AS_PUBLISHED,
        "val",
        "test_2016_flickr",
        start="multi30k-en-de-relative",
        back="multi30k-de-en-relative",
    ),
    "multi30k-student": distilled(
        TEACHERS, "multi30k-student", "--beam 3 --length-penalty 1", "val", "test_2016_flickr"
    ),
    "multi30k-en-fr": multi30k("en", "fr", "val", recipe=CAPTIONS),
    "multi30k-en-cs": multi30k("en", "cs", "val", recipe=CAPTIONS),
    "multi30k-raw-de-en": multi30k("de", "en", "val", "test_2016_flickr", folder="raw"),
    "multi30k-raw-de-en-recipe": multi30k(
        "de", "en", "val", "test_2016_flickr", folder="raw", recipe=f"{CAPTIONS} --max-minutes 0"
    ),
    "shakespeare": Result(
        "regard train $TEXT/train.txt --valid $TEXT/valid.txt --to $TO --recipe recipes/shakespeare.toml",
        ["regard score $TO $TEXT/valid.txt"],
        texts.shakespeare,
    ),
    **{
        f"scan-{split}": Result(
            f"regard train $TEXT/{split}.train.tsv --to $TO --recipe recipes/scan-{split}.toml",
            [f"regard score $TO $TEXT/{split}.test.tsv --metrics wer"],
            texts.scan,
        )
        for split in ("simple", "length")
    },
    **{
        f"digits-{task}-{model}": digits(task, model)
        for task in ("copy", "reverse", "addition")
        for model in ("bahdanau", "transformer", "universal", "conv")
    },
    **{f"cmudict-{model}": letters(model) for model in ("seq2seq", "bahdanau", "conv", "transformer", "universal")},
    "cmudict-longer": Result(
        f"regard train {SPELLED} --from $RUNS/cmudict-transformer-$SEED --recipe recipes/cmudict-longer.toml",
        PRONOUNCED,
        texts.cmudict,
    ),
    "cmudict-spelling": Result(
        "regard train $TEXT/spelling.txt --valid $TEXT/spelling.valid.txt --to $TO --recipe recipes/cmudict-spelling.toml",
        ["regard score $TO $TEXT/spelling.valid.txt"],
        texts.cmudict,
    ),
    "cmudict-distilled": letters_distilled(),
}


def run(name: str, data: Path, runs: Path, seed: int, threads: int) -> Run:
    """Do all of one result; what there is to say of it."""
    result = RESULTS[name]
    text, to = runs / "texts" / name.partition("-")[0], runs / f"{name}-{seed}"
    places = {"DATA": data, "TEXT": text, "RUNS": runs, "TO": to, "SEED": seed}
    if result.prepare:
        try:
            result.prepare(data, text)
        except FileNotFoundError as missing:
            sys.exit(f"There is no {missing.filename}. recipes/README.md says which files --data should hold.")
    words = text / f"made-up-{seed}.txt"
    if result.made_up and not words.exists():
        texts.made_up(_regard(result.made_up, places, capture=True), text / "spelling.txt", words)
    train = f"{result.train} --seed {seed}" + (f" --threads {threads}" if threads else "")
    _regard(train, places)
    scores = [json.loads(_regard(f"{score} --json", places, capture=True)) for score in result.scores]
    before = [result.made_up] if result.made_up else []
    commands = [" ".join(command.split()) for command in (*before, train, *result.scores)]
    return {"name": name, "seed": seed, **where(), **trained(to), "commands": commands, "scores": scores}


def where() -> dict[str, Any]:
    """The state of the code, the day and the machine."""
    here = machine()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "commit": commit.stdout.strip() or "unknown",
        "date": datetime.date.today().isoformat(),
        "machine": f"{here['processor']}, {here['cores']} cores",
        "torch": here["torch"],
    }


def trained(folder: Path) -> dict[str, Any]:
    """How large the model is, and how long it learned."""
    config = json.loads((folder / "config.json").read_text())
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    seconds = max(line.get("seconds", 0) for line in log)
    about, threads = config["about"], config["train"]["threads"]
    on = f"{threads} thread{'' if threads == 1 else 's'}" if threads else "all cores"
    return {
        "parameters": about["parameters"],
        "steps": about["step"],
        "minutes": round(seconds / 60, 1),
        "threads": on,
    }


def _regard(command: str, places: dict[str, Path | int], *, capture: bool = False) -> str:
    print(f"$ {command}", file=sys.stderr, flush=True)
    arguments = shlex.split(Template(command).substitute({name: str(path) for name, path in places.items()}))[1:]
    done = subprocess.run(
        [sys.executable, "-m", "regard", *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE if capture else None
    )
    if done.returncode:  # It has said why.
        sys.exit(done.returncode)
    return done.stdout or ""


def main() -> int:
    """The results asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=RESULTS, metavar="NAME", help=", ".join(RESULTS))
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="the folder of the corpora")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "results", help="where models go")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], metavar="N")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="processor threads; 0 = as many as cores")
    options = parser.parse_args()
    for name in options.names:
        for seed in options.seeds:
            report.add(run(name, options.data.resolve(), options.runs.resolve(), seed, options.threads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
