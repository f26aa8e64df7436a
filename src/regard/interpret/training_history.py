"""What a model folder tells of its training, as plain data: the log, the samples, and what the probe saw.

A run may be read while it is going on: what it has just half written is left for the next time.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import model_name
from regard.errors import FolderError
from regard.folder import layout as folders
from regard.interpret import probe
from regard.pages.training import training_page
from regard.system import storage
from regard.training.log import read_log
from regard.training.loop import LARGEST
from regard.training.validation import SCORES

Column = list[float | None]

MOST_SENTENCES = 50
TRAINING = ("step", "epoch", "tokens", "seconds", "loss", "rate", "gradient", "tokens_per_second", "padding")
"""What is shown of every line that tells of training."""


@dataclass(frozen=True)
class History:
    """A run, as the training page reads it."""

    title: str
    model: dict[str, Any]
    """Its name, and its parameters if they are known."""
    data: dict[str, str]
    """What it learned from, and what it was validated on."""
    metric: str
    """By which the best weights are chosen."""
    standing: str
    """finished, running or stopped."""
    ended: str
    """Why training is over, if it is."""
    step: int
    """The last that was heard of."""
    training: dict[str, Column]
    """A number for each line of the log, by what it means."""
    evaluations: list[dict[str, Any]]
    """Of each validation: step, tokens, seconds, loss, perplexity, scores, best; samples; and what the probe saw: the
    number of its sentence and the weights, or the problem in words."""
    sentences: list[dict[str, Any]]
    """Rows and maps, without weights, of the texts that were looked at: one, unless train.probe was changed."""
    averaged: dict[str, Any] | None
    """The checkpoints that were averaged at the end, and how good their average is."""
    names: dict[str, str]
    """How people write what was measured."""
    made: str = f"regard {version('regard')}"

    def html(self) -> str:
        """The training page: one file, nothing else needed."""
        return training_page(asdict(self))


def history_of(folder: Path) -> History:
    """All that is known of the training in a model folder."""
    config, about = folders.load_config(folder)
    lines = [_finite(line) for line in _lines(folder / folders.LOG, _is_logged)]
    training = [line for line in lines if "loss" in line]
    evaluations = [line for line in lines if "valid_loss" in line and "averaged" not in line]
    sentences, seen = _seen(_lines(folder / probe.FILE, _is_seen))
    if len(sentences) > MOST_SENTENCES:
        raise FolderError(
            f"{folder / probe.FILE} follows {len(sentences):,} different texts; {MOST_SENTENCES} at most can be shown. "
            "Restore it from a copy, or move it away."
        )
    return History(
        title=folder.resolve().name,
        model={"name": model_name(config.model), "parameters": about.get("parameters")},
        data={"data": about.get("data", ""), "valid": about.get("valid", "")},
        metric=config.train.metric,
        standing=_standing(folder, about),
        ended=about.get("finished", ""),
        step=int(max((line["step"] for line in lines), default=0)),
        training={name: [line.get(name) for line in training] for name in TRAINING},
        evaluations=[_evaluation(line, training) | seen.get(line["step"], {}) for line in evaluations],
        sentences=sentences,
        averaged=next((_scores(line) | {"steps": line["averaged"]} for line in lines if "averaged" in line), None),
        names=SCORES,
    )


def _lines(path: Path, is_right: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    lines = read_log(path) if path.exists() else []
    for number, line in enumerate(lines, 1):
        if not is_right(line):
            raise FolderError(
                f"{path} is damaged: line {number} is not as training writes it. Restore it from a copy, or move it away."
            )
    return lines


def _is_logged(line: dict[str, Any]) -> bool:
    """Whether all that is shown of a line of the log is there, and what it should be."""
    known = [value for name, value in line.items() if name in TRAINING or name.startswith("valid_")]
    if not _is_count(line.get("step")) or not all(map(_is_number, known)):
        return False
    if "averaged" in line:
        return isinstance(line["averaged"], list) and all(map(_is_count, line["averaged"]))
    if "valid_loss" in line and not (_is_number(line.get("seconds")) and isinstance(line.get("best"), bool)):
        return False
    return "loss" not in line or _is_count(line.get("tokens"))


def _is_seen(line: dict[str, Any]) -> bool:
    """Whether a line of what the probe saw has what a page draws."""
    if not _is_count(line.get("step")) or not isinstance(line.get("samples"), list) or not _is_plain(line):
        return False
    if "maps" not in line:
        return True
    rows, maps = line.get("rows"), line["maps"]
    if not isinstance(rows, dict) or not isinstance(maps, list):
        return False
    tokens = all(isinstance(row, dict) and isinstance(row.get("tokens"), list) for row in rows.values())
    layers = [one.get("layers") if isinstance(one, dict) else None for one in maps]
    return tokens and all(
        isinstance(some, list)
        and all(isinstance(one, dict) and isinstance(one.get("weights"), dict | str) for one in some)
        for some in layers
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < LARGEST)


def _is_plain(value: Any) -> bool:
    """Whether a page can hold it: JSON has no numbers that are none."""
    if isinstance(value, dict | list):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def _finite(line: dict[str, Any]) -> dict[str, Any]:
    """A page cannot read what is not a number; a curve has a gap there."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in line.items()}


def _scores(line: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("valid_"): value for name, value in line.items() if name.startswith("valid_")}


def _evaluation(line: dict[str, Any], training: list[dict[str, Any]]) -> dict[str, Any]:
    """Between two lines of training, tokens come in evenly."""
    steps, tokens = ([0, *(one[name] for one in training)] for name in ("step", "tokens"))
    read = round(float(np.interp(line["step"], steps, tokens)))
    return {"step": line["step"], "tokens": read, "seconds": line["seconds"], "best": line["best"], **_scores(line)}


def _seen(lines: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[int, dict[str, Any]]]:
    """Each text once, and by step what was kept of it; a text's rows and layers are the same in every line."""
    sentences: list[dict[str, Any]] = []
    found: dict[int, dict[str, Any]] = {}
    for line in lines:
        kept = {"samples": line["samples"], **({"problem": line["problem"]} if "problem" in line else {})}
        if "maps" in line:
            weights = [[layer.pop("weights") for layer in one["layers"]] for one in line["maps"]]
            sentence = {"rows": line["rows"], "maps": line["maps"]}
            if sentence not in sentences:
                sentences.append(sentence)
            kept |= {"sentence": sentences.index(sentence), "weights": weights}
        found[line["step"]] = kept
    return sentences, found


def _standing(folder: Path, about: dict[str, Any]) -> str:
    if storage.is_locked(folder / folders.LOCK):
        return "running"
    return "finished" if "finished" in about else "stopped"
