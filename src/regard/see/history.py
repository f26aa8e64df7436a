"""What a model folder tells of its training, as plain data: the log, the samples, and what the probe saw.

A run may be read while it is going on: what it has just half written is left for the next time.
"""

import math
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from regard import folder as folders
from regard import storage
from regard.config import model_name
from regard.pages.training import training_page
from regard.see import probe
from regard.training.log import read_log
from regard.training.loop import SCORES

Column = list[float | None]

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
    lines = [_finite(line) for line in _lines(folder / folders.LOG)]
    training = [line for line in lines if "loss" in line]
    evaluations = [line for line in lines if "valid_loss" in line and "averaged" not in line]
    sentences, seen = _seen(_lines(folder / probe.FILE))
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


def _lines(path: Path) -> list[dict[str, Any]]:
    return read_log(path) if path.exists() else []


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
