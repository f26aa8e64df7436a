"""docs/results.jsonl -> docs/results.md: one table of what was reached, and the commands that reach it again."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "results.jsonl"
PAGE = DATA.with_suffix(".md")

Run = dict[str, Any]
"""One line of the data: name, seed, commit, date, machine, torch, parameters, steps, minutes, threads, commands, scores."""

HEAD = """# Results

What models reached, one row a run. `make results` trains, scores, adds the run to `results.jsonl`, and writes this page from
it; do not edit it by hand. To run a row again, at its commit or a later one:

```
make results DATA=folder-of-corpora RESULT=name SEED=1
```

[recipes/](../recipes/README.md) has the settings and tells which corpora to put where. Settings were chosen on validation sets.
What was learned from these and many other runs is in [what helps](what-helps.md).
"""
TASKS = {
    "multi30k-en-de": (
        "Captions, English -> German",
        "Multi30k, tokenised. Published for 2.6M parameters: BLEU 41.02.",
    ),
    "multi30k-en": ("Captions in other languages", "By the settings of the German ones."),
    "multi30k-raw": ("Captions as written, German -> English", "By the settings of the tokenised ones."),
    "shakespeare": (
        "Tiny Shakespeare, characters",
        "Published: loss 1.47 (10.7M parameters, A100), 1.88 (CPU, 3 minutes).",
    ),
    "cmudict": (
        "Spelling -> sound",
        "CMUdict. Published, on another split: 77.9% right (Transformer), 71.4% (LSTM).",
    ),
    "scan": ("Commands -> actions", "SCAN. Published: simple split 99.8% right, length split 20.8% (LSTM)."),
    "digits": (
        "Longer than in training",
        "Up to 40 digits in training, more in the test. Published for the Universal Transformer at 400 digits: copying 91% of "
        "the symbols, reversing 96%.",
    ),
}
"""By the beginning of a result's name: heading, and what to hold the figures against."""
SHOWN = {
    "bleu": lambda value: f"BLEU {_interval(value)}",
    "wer": lambda value: f"WER {_interval(value)}",
    "exact_match": lambda value: f"{value:.2f}% right",
    "word_accuracy": lambda value: f"{value:.2f}% of the symbols",
    "loss": lambda value: f"loss {value:.3f}",
}


def page(runs: Iterable[Run]) -> str:
    """All runs as Markdown."""
    ordered = sorted(runs, key=lambda run: (list(TASKS).index(_task(run["name"])), run["name"], run["seed"]))
    parts = [HEAD]
    for task, group in groupby(ordered, lambda run: _task(run["name"])):
        heading, published = TASKS[task]
        parts += [f"## {heading}", "", published, "", *_table(list(group)), ""]
    signatures = sorted(set(_signatures(ordered)))
    parts += ["## Signatures", "", *(f"- {name}: `{signature}`" for name, signature in signatures), ""]
    machines = sorted({f"{run['machine']}; torch {run['torch']}" for run in ordered})
    parts += ["## Machines", "", *(f"- {machine}" for machine in machines), "", "## Commands", ""]
    parts += [
        "`$DATA`, `$TEXT` and `$TO` are the folders of corpora, of what was made of them, and of the model.",
        "",
        "```",
    ]
    parts += [*_commands(ordered), "```", ""]
    return "\n".join(parts)


def _task(name: str) -> str:
    return next((task for task in TASKS if name.startswith(task)), "digits")


def _table(runs: list[Run]) -> Iterator[str]:
    yield "| `RESULT` | seed | parameters | minutes, 1 thread | scored on | reached | commit |"
    yield "|---|---|---|---|---|---|---|"
    for run in runs:
        where = f"{run['minutes']:.0f}" + ("" if run["threads"] == "1 thread" else f" ({run['threads']})")
        on = "<br>".join(_scored_on(run))
        reached = "<br>".join(_reached(run["name"], score) for score in run["scores"])
        cells = (
            f"`{run['name']}`",
            run["seed"],
            _millions(run["parameters"]),
            where,
            on,
            reached,
            f"`{run['commit']}`",
        )
        yield "| " + " | ".join(map(str, cells)) + " |"


def _reached(name: str, score: dict[str, Any]) -> str:
    """The figures that say most of a task: BLEU where there is one, else what is right altogether and in part."""
    kinds = {"multi30k": ["bleu"], "digits": ["exact_match", "word_accuracy"], "scan": ["exact_match"]}
    shown = kinds.get(name.partition("-")[0], ["exact_match", "wer", "loss"])
    return ", ".join(SHOWN[kind](score[kind]) for kind in shown if kind in score)


def _scored_on(run: Run) -> Iterator[str]:
    for command in run["commands"][-len(run["scores"]) :]:
        yield Path(command.split("$TO ")[1].split()[0]).name.removesuffix(".gz")


def _interval(value: dict[str, Any]) -> str:
    return f"{value['value']:.2f} [{value['low']:.2f}, {value['high']:.2f}]"


def _millions(parameters: int) -> str:
    return f"{parameters / 1e6:.2f}M"


def _signatures(runs: list[Run]) -> Iterator[tuple[str, str]]:
    for run in runs:
        for score in run["scores"]:
            yield from ((one["name"], one["signature"]) for one in score.values() if isinstance(one, dict))


def _commands(runs: list[Run]) -> Iterator[str]:
    """How each result was trained: once, whatever the seed."""
    for _, group in groupby(runs, lambda run: run["name"]):
        run = next(group)
        for command in run["commands"][: -len(run["scores"])]:
            yield command.replace(f" --seed {run['seed']}", "").replace(" --threads 1", "")


def kept() -> list[Run]:
    """All runs there are."""
    return [json.loads(line) for line in DATA.read_text().splitlines()]


def add(run: Run) -> None:
    """Add one run, in place of an earlier one of this name and seed, and write the page anew."""
    runs = [one for one in kept() if (one["name"], one["seed"]) != (run["name"], run["seed"])] + [run]
    DATA.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in runs))
    PAGE.write_text(page(runs))
    print(page([run]).split("\n## Signatures")[0].removeprefix(HEAD))


if __name__ == "__main__":
    PAGE.write_text(page(kept()))
