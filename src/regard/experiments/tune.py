"""Which settings suit a text: many short trainings, of which the better half goes on, again and again.

Successive halving (Karnin et al. 2013; Jamieson and Talwalkar 2016): every round has the same part of the budget, and half
as many models as the one before, so that most of the time is spent on those that promise most. Each is an ordinary model
folder, whose training goes on from round to round.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from regard.config import Config, as_table, merge, read
from regard.errors import ConfigError, DataError, FolderError, TrainingError
from regard.experiments.compare.worker import Progress
from regard.folder import layout
from regard.system import storage
from regard.training.log import read_log
from regard.training.run import train
from regard.training.tasks import open_job

STATE, RECIPE, RUNS = "tuned.json", "tuned.toml", "runs"
DEFAULTS: dict[str, dict[str, Any]] = {
    # What suits short trainings, unless the user says otherwise. The loss cannot be compared between vocabularies.
    "train": {"warm_up": 400, "validate_steps": 200, "checkpoint_steps": 200, "patience": 0, "metric": "chrf"}
}
_ENDLESS = 1_000_000_000  # steps: more than any budget of minutes allows
_SHORT = 0.5  # minutes of a first round below which little can be told

_NOT_IN_A_RECIPE = {"steps", "max_minutes", "patience", "device", "threads"}

Settings = dict[str, Any]
"""By name: "model.dropout" -> 0.3."""
Note = Callable[[str], None]
Stop = Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched for, on which text, for how long."""

    data: Sequence[str]
    to: Path
    config: Config
    """The first candidate; the others differ from it."""
    valid: Sequence[str] = ()
    fixed: frozenset[str] = frozenset()
    """Settings that are not to be varied, by name."""
    candidates: int = 8
    minutes: float = 0.0
    """Of training in all; 0 if the budget is in steps."""
    steps: int = 0

    def __post_init__(self) -> None:
        if (self.minutes > 0) == (self.steps > 0):
            raise ConfigError("A search needs a budget: give either --minutes or --steps, more than 0.")
        if self.candidates < 2:
            raise ConfigError(f"--candidates {self.candidates} leaves nothing to choose from. Give at least 2.")
        if self.config.train.schedule == "cosine":
            raise ConfigError(
                "train.schedule=cosine ends at train.steps, so training cannot go on from round to round. "
                "Use inverse_sqrt for the search."
            )


@dataclass(frozen=True)
class Candidate:
    """One set of settings."""

    name: str
    settings: Settings
    """What it has instead of the first one's; empty = it is the first."""
    config: Config


@dataclass(frozen=True)
class Result:
    """How a search ended."""

    rows: list[dict[str, Any]]
    """One for each candidate, the best first."""
    stopped: bool = False


def tune(search: Search, *, note: Note = lambda _: None, stop: Stop = lambda: False) -> Result:
    """Search, or go on where an earlier call stopped; then leave a recipe of the best settings, and a table."""
    if "-" in [*search.data, *search.valid]:
        raise DataError(
            "A search reads its text once for each model, so it cannot be standard input. Save it to a file."
        )
    job = open_job(search.data, search.valid, search.config)
    if search.config.train.metric not in job.scores:
        raise ConfigError(
            f"A search compares by a score that does not depend on the vocabulary. Set train.metric to one of: "
            f"{', '.join(job.scores)}. Running text has none, and cannot be tuned for."
        )
    with layout.held(search.to, STATE):
        candidates = propose(search)
        rounds = _agreed(search, candidates, job.fingerprints())
        first = _share(search, len(candidates), 0)
        if search.minutes and first < _SHORT:
            note(
                f"each has only {60 * first:.0f} seconds in the first round: give more --minutes or fewer --candidates"
            )
        return _search(search, candidates, rounds, note, stop)


def propose(search: Search) -> list[Candidate]:
    """The candidates: the settings as given, then others drawn at random; always the same ones for the same seed."""
    base, found = as_table(search.config), [Candidate("01", {}, search.config)]
    axes = {name: values for name, values in _axes(search.config).items() if name not in search.fixed}
    drawn = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    random.Random(f"tune {search.config.train.seed}").shuffle(drawn)
    for settings in drawn:
        if len(found) == search.candidates:
            break
        tables: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            section, _, key = name.partition(".")
            tables.setdefault(section, {})[key] = value
        config = read(merge(base, tables))
        if config != search.config:
            found.append(Candidate(f"{len(found) + 1:02}", settings, config))
    if len(found) < 2:
        raise ConfigError("Every setting that could be searched is fixed by --set. Leave one of them out.")
    return found


def _axes(config: Config) -> dict[str, list[Any]]:
    """What matters most for little text, and the values to try."""
    depth = config.model.depth
    axes: dict[str, list[Any]] = {
        "model.dropout": [0.1, 0.2, 0.3, 0.4, 0.5],
        "model.depth": sorted({max(1, depth // 2), depth, depth + max(1, depth // 2)}),
    }
    if config.train.schedule != "paper":  # which computes its own
        axes["train.rate"] = [5e-4, 1e-3, 2e-3, 4e-3]
    if config.text.tokenizer not in ("characters", "wordpiece"):
        axes["text.vocabulary"] = [1000, 2000, 4000, 8000, 16000]
    return axes


def _rounds(candidates: int) -> list[int]:
    """How many models each round has.

    >>> _rounds(8), _rounds(5)
    ([8, 4, 2, 1], [5, 3, 2, 1])
    """
    counts = [candidates]
    while counts[-1] > 1:
        counts.append((counts[-1] + 1) // 2)
    return counts


def _share(search: Search, candidates: int, last: int) -> float:
    """The budget that a model has used when it leaves this round, counted from 0: minutes or steps."""
    counts = _rounds(candidates)
    return sum((search.minutes or search.steps) / len(counts) / count for count in counts[: last + 1])


def _search(
    search: Search, candidates: list[Candidate], rounds: list[dict[str, Any]], note: Note, stop: Stop
) -> Result:
    going = candidates
    for number, count in enumerate(_rounds(len(candidates))):
        if number:
            going = _best(going, rounds[number - 1])[:count]
        if len(rounds) == number:
            rounds.append({})
        for candidate in going:
            if candidate.name in rounds[number]:
                continue
            measured = _trained(search, candidate, _share(search, len(candidates), number), stop)
            if measured is None:
                return Result(_rows(candidates, rounds), stopped=True)
            rounds[number][candidate.name] = measured
            _save(search, candidates, rounds)
            note(f"round {number + 1}  {candidate.name}  {_told(candidate)}  {_outcome(measured, search)}")
        if not _best(going, rounds[number]):
            reasons = [measured["failed"] for measured in rounds[number].values()]
            raise TrainingError(f"No candidate could be trained. The first of them: {reasons[0]}")
    rows = _rows(candidates, rounds)
    winner = next(candidate for candidate in candidates if candidate.name == rows[0]["name"])
    storage.write_file(search.to / RECIPE, recipe(winner.config).encode())
    return Result(rows)


def _trained(search: Search, candidate: Candidate, share: float, stop: Stop) -> dict[str, Any] | None:
    """What a candidate reaches with this budget; None if it was stopped."""
    limit = (
        {"max_minutes": share, "steps": _ENDLESS}
        if search.minutes
        else {"max_minutes": 0, "steps": max(1, round(share))}
    )
    config = read(merge(as_table(candidate.config), {"train": limit}))
    path = search.to / RUNS / candidate.name
    try:
        outcome = train(search.data, path, config, valid=search.valid, display=Progress(candidate.name), stop=stop)
    except TrainingError as error:
        return {"failed": " ".join(str(error).split())}
    if outcome.reason is None:
        return None
    lines, metric = read_log(path / layout.LOG), f"valid_{config.train.metric}"
    return {
        "score": max(line[metric] for line in lines if metric in line),
        "step": outcome.step,
        "minutes": round(max(line.get("seconds", 0.0) for line in lines) / 60, 2),
    }


def _best(going: Sequence[Candidate], measured: dict[str, Any]) -> list[Candidate]:
    """Those that did not fail, the best first; among equals, as they were."""
    whole = [candidate for candidate in going if "score" in measured[candidate.name]]
    return sorted(whole, key=lambda candidate: -measured[candidate.name]["score"])


def _rows(candidates: Sequence[Candidate], rounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is known of each: those that came farthest first, and of these the best."""
    rows: list[dict[str, Any]] = []
    for candidate in candidates:
        reached = [number for number, measured in enumerate(rounds) if candidate.name in measured]
        if reached:
            told = rounds[reached[-1]][candidate.name]
            config = as_table(candidate.config)
            values = {name: config[(part := name.partition("."))[0]][part[2]] for name in _axes(candidate.config)}
            rows.append({"name": candidate.name, "rounds": len(reached), **values, **told})
    return sorted(rows, key=lambda row: ("failed" in row, -row["rounds"], -row.get("score", 0.0)))


def recipe(config: Config) -> str:
    """Settings as `regard train --recipe` reads them, if not what they would be anyway; none of when to end, and where."""
    table = as_table(config)
    plain = as_table(read({"model": {"name": table["model"]["name"]}}))
    lines = ["# The best settings that regard tune found."]
    for section, settings in table.items():
        unlike = {key: value for key, value in settings.items() if value != plain[section].get(key)}
        if section == "train":
            unlike = {key: value for key, value in unlike.items() if key not in _NOT_IN_A_RECIPE}
        if section == "model":
            unlike = {"name": settings["name"], **unlike}
        if unlike:
            # TOML writes numbers, text and truth as JSON does.
            lines += ["", f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in unlike.items())]
    return "\n".join(lines) + "\n"


def _told(candidate: Candidate) -> str:
    settings = "  ".join(f"{name.partition('.')[2]} {value:g}" for name, value in candidate.settings.items())
    return settings or "the settings as given"


def _outcome(measured: dict[str, Any], search: Search) -> str:
    if "failed" in measured:
        return f"failed: {measured['failed']}"
    return f"{search.config.train.metric} {measured['score']:.2f} at step {measured['step']:,}"


def _key(search: Search, candidates: Sequence[Candidate], text: dict[str, str]) -> dict[str, Any]:
    """What the search depends on."""
    return {
        "text": text,
        "budget": [search.minutes, search.steps],
        "candidates": [as_table(candidate.config) for candidate in candidates],
    }


def _agreed(search: Search, candidates: Sequence[Candidate], text: dict[str, str]) -> list[dict[str, Any]]:
    """The rounds of an earlier call of the same search, if there was one."""
    key = _key(search, candidates, text)
    if not (search.to / STATE).exists():
        storage.write_file(search.to / STATE, json.dumps({"format": 1, "key": key, "rounds": []}, indent=1).encode())
        return []
    try:
        state = json.loads((search.to / STATE).read_text(encoding="utf-8"))
        before, rounds = state["key"], list(state["rounds"])
    except (OSError, ValueError, KeyError, TypeError):
        raise FolderError(f"{search.to / STATE} cannot be read. Name a new folder with --to.") from None
    if before != json.loads(json.dumps(key)):
        raise ConfigError(
            f"{search.to} holds a search on other terms: another text, budget or first settings. "
            "Name a new folder with --to, or give the old ones."
        )
    return rounds


def _save(search: Search, candidates: Sequence[Candidate], rounds: list[dict[str, Any]]) -> None:
    state = json.loads((search.to / STATE).read_text(encoding="utf-8"))
    state |= {"rounds": rounds, "rows": _rows(candidates, rounds)}
    storage.write_file(search.to / STATE, json.dumps(state, indent=1).encode())
