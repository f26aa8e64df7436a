"""The results as a table: sorted, as CSV, for the terminal, and what can be said of them in sentences."""

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.experiments.compare.model_facts import CONSTANT

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Row = dict[str, Any]
Table = dict[str, Any]
NAMES = {"bleu": "BLEU", "chrf": "chrF2"}
PLAIN = ["model", "family", "path_within", "path_across", "parameters", "width", "rate", "step", "tokens", "seconds"]
MEASURED = ["exact_match", "perplexity", "tokens_per_second", "sentences_per_second", "peak_memory"]


def sort(rows: Sequence[Row], metric: str) -> list[Row]:
    """The best first, those that failed last."""
    return sorted(rows, key=lambda row: (bool(row["failed"]), -row[metric]["value"] if not row["failed"] else 0.0))


def as_csv(rows: Sequence[Row]) -> str:
    """One line for each model; every number of the table, by name."""
    lines = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for line in lines for name in line))
    written = io.StringIO()
    writer = csv.DictWriter(written, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return written.getvalue()


def _flat(row: Row) -> Row:
    flat = {name: row.get(name) for name in PLAIN}
    for metric in NAMES:
        score = row.get(metric) or {}
        flat |= {metric: score.get("value"), f"{metric}_low": score.get("low"), f"{metric}_high": score.get("high")}
    flat |= {name: row.get(name) for name in MEASURED}
    for metric in NAMES:
        both = row.get("halves") or []
        flat[f"{metric}_short"] = both[0][metric]["value"] if both else None
        flat[f"{metric}_long"] = both[1][metric]["value"] if len(both) > 1 else None
    return flat | {"failed": row["failed"]}


def said(table: Table) -> list[str]:
    """What the table says, in sentences."""
    metric, rows = table["metric"], [row for row in table["rows"] if not row["failed"]]
    found = []
    if len(rows) > 1:
        best = rows[0]
        close = [row["model"] for row in rows[1:] if row[metric]["high"] >= best[metric]["low"]]
        doubt = f"; the intervals of {listed(close)} overlap with it" if close else ", clear of all others' intervals"
        found.append(f"{best['model']} has the best {NAMES[metric]}, {_interval(best[metric])}{doubt}.")
    if len(rows) > 1 and all(len(row["halves"]) == 2 for row in rows):
        found.extend(_by_length(rows, metric, table["test"]["median"]))
    found.extend(f"{row['model']} failed: {row['failed']}" for row in table["rows"] if row["failed"])
    return found


def _by_length(rows: Sequence[Row], metric: str, median: int) -> list[str]:
    """Short sentences against long ones; those that look at the source against the one that must remember it."""
    found = []
    plain = next((row for row in rows if row["model"] == "seq2seq"), None)
    looking = [row for row in rows if row["path_across"] == CONSTANT]
    for half, which in ((1, f"longer than the median ({median} tokens)"), (0, f"of at most {median} tokens")):
        count = rows[0]["halves"][half]["sentences"]
        if plain and looking:
            scores = listed([f"{row['model']} {row['halves'][half][metric]['value']:.1f}" for row in looking])
            remembers = f"{plain['halves'][half][metric]['value']:.1f}"
            found.append(
                f"On the {count:,} sentences {which}, the models with attention to the source reach {NAMES[metric]} "
                f"{scores}; seq2seq, which has none, {remembers}."
            )
    change = [(row["halves"][1][metric]["value"] - row["halves"][0][metric]["value"], row["model"]) for row in rows]
    (most, fading), (least, steady) = min(change), max(change)
    found.append(
        f"From sentences of at most {median} tokens to longer ones, {NAMES[metric]} changes by {_signed(most)} for {fading} "
        f"and by {_signed(least)} for {steady}; for all others by something between."
    )
    return found


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1] if names else "") if part)


def _signed(value: float) -> str:
    # Adding nothing turns a rounded -0.0 into 0.0.
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", "−")


def _interval(score: dict[str, Any]) -> str:
    return f"{score['value']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"


def for_terminal(table: Table) -> "RichTable":
    """The table as rich draws it."""
    from rich import box
    from rich.table import Table as RichTable

    metric = table["metric"]
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, caption=None)
    drawn.add_column("model", no_wrap=True)
    heads = [
        NAMES[metric], "95% interval", "exact %", "perplexity", "parameters", "trained tokens/s", "sentences/s",
        "memory MB", "short", "long", "path",
    ]  # fmt: skip
    for head in heads:
        drawn.add_column(head, justify="right", min_width=min(6, len(head)), overflow="fold")
    for number, row in enumerate(table["rows"]):
        if row["failed"]:
            drawn.add_row(row["model"], "failed", style="dim")
            continue
        score, half = row[metric], [f"{part[metric]['value']:.1f}" for part in row["halves"]]
        drawn.add_row(
            f"{row['model']}{' ★' if number == 0 else ''}",
            f"{score['value']:.1f}",
            f"{score['low']:.1f}–{score['high']:.1f}",
            f"{row['exact_match']:.1f}",
            _number(row["perplexity"], ",.2f"),
            f"{row['parameters'] / 1e6:.2f}M",
            _number(row["tokens_per_second"], ",.0f"),
            _number(row["sentences_per_second"], ",.1f"),
            _number(row["peak_memory"] and row["peak_memory"] / 1e6, ",.0f"),
            *[*half, "–"][:2],
            ", ".join(dict.fromkeys((row["path_within"], row["path_across"]))),
            style="bold" if number == 0 else "",
        )  # fmt: skip
    return drawn


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
