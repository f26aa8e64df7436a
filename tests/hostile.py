"""Model folders that somebody spoiled or made up to do harm, and the commands that open one.

A folder is a base, a small whole model, and a harm done to it; every one is a function of its number alone. The first
ones are those that once broke a command, each in its own way; the others are drawn.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import regard
from fuzz import seeds
from fuzz.edits import VALUES, edited
from harms import FILES, TRAINED, Hostile, listed, set_about, set_in
from regard.config import MODEL_CONFIGS

BASES = (*MODEL_CONFIGS, "text", TRAINED)
SECTIONS = ("text", "model", "train", "decode")
LETTERS = ["a b c", "d e", "f g h i", "j", "k l m n o", "c b a"] * 4
QUICK = ["--steps", "6", "--set", "train.batch_tokens=64", "--set", "train.validate_steps=2"]
QUICK += ["--set", "train.checkpoint_steps=2", "--set", "train.threads=1"]


def make_base(name: str, to: Path) -> Path:
    """A whole model folder: of every model with random weights, of running text, or trained for four steps."""
    if name == TRAINED:
        data = write_pairs(to.with_name("data-of-" + to.name))
        small = {f"model.{key}": value for key, value in seeds.SHAPE.items()}
        few = {"steps": 4, "batch_tokens": 64, "validate_steps": 2, "checkpoint_steps": 2, "threads": 1}
        quick = {f"train.{key}": value for key, value in few.items()}
        regard.train(data, to, settings={"text.tokenizer": "words", **small, **quick})
        return to
    if name == "text":
        made = seeds.model_folder(to, "lm")
        return set_about(made, {"job": "text"})
    return seeds.model_folder(to, name)


def write_pairs(to: Path) -> list[str]:
    """A corpus of letters."""
    to.mkdir(parents=True, exist_ok=True)
    for name, step in (("a.en", 1), ("a.fr", -1)):
        (to / name).write_text("".join(line[::step] + "\n" for line in LETTERS))
    return [str(to / "a.en"), str(to / "a.fr")]


# ----------------------------------------------------------------------------------------------------------- commands


def commands(folder: Path, work: Path) -> Iterator[tuple[str, list[str]]]:
    """What may be done with a model folder: a name, and the command's arguments. What they write goes into `work`."""
    data, at = write_pairs(work / "data"), str(folder)
    for engine in ("torch", "ctranslate2"):
        with_engine = ["--engine", engine, "--threads", "1"]
        yield f"translate-{engine}", ["translate", at, "a b c", *with_engine]
        yield f"classify-{engine}", ["classify", at, "a b c", *with_engine]
        yield f"fill-{engine}", ["fill", at, "a <mask> c", *with_engine]
        yield f"embed-{engine}", ["embed", at, "a b c", *with_engine]
        yield f"score-{engine}", ["score", at, *data, *with_engine]
    yield "shortlist", ["translate", at, "a b c", "--shortlist", "5", "--threads", "1"]
    yield "write", ["write", at, "a b", "--max-length", "9", "--threads", "1"]
    yield "see", ["see", at, "a b c", "--no-open", "--to", str(work / "see.html"), "--threads", "1"]
    yield "history", ["see", at, "--no-open", "--to", str(work / "history.html"), "--threads", "1"]
    yield "explain", ["explain", at, "a b c", "--no-pager"]
    yield "average", ["average", at, at, "--to", str(work / "average")]
    yield "from", ["train", *data, "--from", at, "--to", str(work / "from"), *QUICK]
    yield "words-of", ["train", *data, "--words-of", at, "--to", str(work / "words-of"), "--size", "tiny", *QUICK]
    yield "resume", ["train", *data, "--to", at, *QUICK]
    yield "distill", ["distill", at, *data, "--to", str(work / "distill"), *QUICK]
    yield "back-translate", ["back-translate", at, data[0], "--to", str(work / "back.tsv"), "--threads", "1"]


# --------------------------------------------------------------------------------------------------------------- drawn


def drawn(number: int) -> Hostile:
    """Damage of chance, in one file or two."""
    random = Random(number)
    base = random.choice(BASES)

    def change(folder: Path, _: Path) -> None:
        for _ in range(random.choice((1, 1, 2))):
            kind = random.randrange(3)
            if kind == 0:
                section = random.choice(SECTIONS)
                table = json.loads((folder / "config.json").read_text())[section]
                set_in(folder, section, **{random.choice(sorted(table)): random.choice(VALUES)})
            else:
                path = folder / random.choice(FILES[: 3 if kind == 1 else len(FILES)])
                if path.exists():
                    path.write_bytes(edited(path.read_bytes(), *(random.getrandbits(20) for _ in range(3))))

    return Hostile(f"drawn {number}", base, change)


LISTED = listed()


def hostile(number: int) -> Hostile:
    """The listed ones first, then those that are drawn."""
    return LISTED[number] if number < len(LISTED) else drawn(number)
