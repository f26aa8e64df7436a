"""What is to be compared: which models, with which settings, for how long."""

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from regard.config import MODEL_CONFIGS, Config, merge, parse_set, read, read_recipe
from regard.errors import ConfigError
from regard.experiments.compare.match_parameters import matched, parameters
from regard.experiments.compare.model_facts import KINDS, Settings
from regard.models import MODELS
from regard.models.base import Writer

MINUTES = 5.0
REFERENCE = "transformer"

# What makes a comparison one: the same for all models, so that it cannot be set for one of them.
SAME = {"train.seed", "train.steps", "train.max_minutes", "train.batch_tokens", "train.accumulate", "train.smoothing"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asks for."""

    data: Sequence[str]
    to: Path
    models: str = "all"
    """Names with commas between them, or "all"."""
    valid: Sequence[str] = ()
    test: Sequence[str] = ()
    minutes: float | None = None
    steps: int | None = None
    match: Literal["parameters", "none"] = "parameters"
    size: str | None = None
    recipe: Path | None = None
    settings: Sequence[str] = ()
    """As of `--set`: "train.rate=0.003" for all, "conv:train.rate=0.005" for one."""
    metric: Literal["bleu", "chrf"] = "bleu"
    tokenize: str = "13a"
    command: str = ""
    """How the user asked; repeated on the page."""


@dataclass(frozen=True)
class Contender:
    """One model of the comparison, ready to be trained."""

    name: str
    config: Config
    parameters: int


@dataclass(frozen=True)
class Plan:
    """All models with their settings, but for the widths, for which the vocabulary must be known."""

    configs: dict[str, Config]
    match: bool
    fixed: dict[str, set[str]] = field(default_factory=dict)
    """For each model, what the user set for it alone."""

    @property
    def shared(self) -> Config:
        """Settings that are the same for all; look only at those."""
        return next(iter(self.configs.values()))

    @property
    def reference(self) -> str:
        """The model whose size the others take."""
        return _reference(list(self.configs))

    @property
    def budget(self) -> str:
        """What each model may spend, in words."""
        train = self.shared.train
        return f"{train.max_minutes:g} minutes" if train.max_minutes else f"{train.steps:,} steps"

    def contenders(self, vocabulary: int) -> list[Contender]:
        """The models at their final sizes."""
        wanted = parameters(self.configs[self.reference].model, vocabulary)
        found = []
        for name, config in self.configs.items():
            if self.match and name != self.reference:
                if "model.width" in self.fixed.get(name, ()):
                    raise ConfigError(
                        f"--set {name}:model.width is given, but --match parameters chooses the width. "
                        "Leave one of them out: use --match none for sizes of your own."
                    )
                config = replace(config, model=matched(config.model, vocabulary, wanted))
            found.append(Contender(name, config, parameters(config.model, vocabulary)))
        return found


def make_plan(request: Request) -> Plan:
    """The settings of every model: our own, then the recipe's, then those of `--set`, then the budget."""
    names = chosen(request.models)
    recipe = read_recipe(request.recipe) if request.recipe else {}
    recipe.get("model", {}).pop("name", None)  # --models names them
    for_all, for_one = _parse(request.settings, names)
    given = merge(recipe, for_all, {"model": {"size": request.size}} if request.size else {})
    _refuse_settings_of_no_model(given.get("model", {}), names)
    budget = _budget(request, given)
    configs: dict[str, Config] = {}
    match = request.match == "parameters"
    for name in names:
        # Where sizes are matched, a width for all is one for the reference: the others' follow from it.
        follows = {"width", "inner"} if match and name != _reference(names) else set()
        fits = {key: value for key, value in given.get("model", {}).items() if _has(name, key) and key not in follows}
        own = merge({**given, "model": fits}, for_one.get(name, {}), budget)
        defaults = _defaults(name, request.steps or 0, paper=own.get("train", {}).get("schedule") == "paper")
        configs[name] = read(merge(defaults, own, {"model": {"name": name}}))
    # Some models prefer other texts by themselves; here all of them get one and the same.
    text = next(iter(configs.values())).text
    configs = {name: replace(config, text=text) for name, config in configs.items()}
    fixed = {name: {f"{s}.{k}" for s, table in tables.items() for k in table} for name, tables in for_one.items()}
    return Plan(configs, match, fixed)


def chosen(models: str) -> list[str]:
    """The names that the user means, each once; only those of models that write."""
    writers = [name for name, kind in MODEL_CONFIGS.items() if issubclass(MODELS[kind], Writer)]
    if models.strip() == "all":
        return writers
    names = list(dict.fromkeys(name.strip() for name in models.split(",") if name.strip()))
    for name in names:
        if name not in MODEL_CONFIGS:
            close = difflib.get_close_matches(name, writers, n=1)
            near = f" Did you mean {close[0]}?" if close else ""
            raise ConfigError(f"There is no model {name!r}.{near} Those that can be compared: {', '.join(writers)}.")
        if name not in writers:
            raise ConfigError(
                f"{name} reads text and does not write it, so it has no translation to compare. "
                f"Leave it out of --models. Those that can be compared: {', '.join(writers)}."
            )
    if not names:
        raise ConfigError(f"--models {models!r} names no model. Give all, or some of: {', '.join(writers)}.")
    return names


def _reference(names: list[str]) -> str:
    return REFERENCE if REFERENCE in names else names[0]


def _parse(settings: Iterable[str], names: list[str]) -> tuple[Settings, dict[str, Settings]]:
    """`--set` for all models, and for each one alone."""
    for_all: list[str] = []
    alone: dict[str, list[str]] = {}
    for setting in settings:
        name, colon, rest = setting.partition("=")[0].partition(":")
        if not colon:
            for_all.append(setting)
            continue
        if name not in names:
            raise ConfigError(
                f"--set {setting!r} is for {name!r}, which is not compared. It is one of: {', '.join(names)}."
            )
        if rest.startswith("text.") or rest in SAME:
            raise ConfigError(f"{rest} is the same for all models of a comparison. Set it without {name}:")
        alone.setdefault(name, []).append(setting.removeprefix(f"{name}:"))
    for table in (parse_set(for_all), *(parse_set(own) for own in alone.values())):
        if "name" in table.get("model", {}):
            raise ConfigError("model.name cannot be set here: --models names the models.")
    return parse_set(for_all), {name: parse_set(own) for name, own in alone.items()}


def _refuse_settings_of_no_model(model: dict[str, Any], names: list[str]) -> None:
    for key in model:
        if not any(_has(name, key) for name in names):
            raise ConfigError(
                f"None of {', '.join(names)} has a setting model.{key}. `regard train --settings` lists them."
            )


def _has(name: str, key: str) -> bool:
    return key in {"size", *(one.name for one in dataclasses.fields(MODEL_CONFIGS[name]))}


def _budget(request: Request, given: Settings) -> Settings:
    if request.minutes is not None and request.steps is not None:
        raise ConfigError(
            f"Both --minutes {request.minutes:g} and --steps {request.steps} were given. Give one of them."
        )
    if request.minutes is not None and request.minutes <= 0:
        raise ConfigError(f"--minutes {request.minutes:g} leaves no time to train. Give more than 0.")
    if request.steps is not None:
        return {"train": {"steps": request.steps, "max_minutes": 0}}
    if request.minutes is None and {"steps", "max_minutes"} & set(given.get("train", {})):
        return {}
    minutes = MINUTES if request.minutes is None else request.minutes
    return {"train": {"max_minutes": minutes, "steps": 1_000_000_000}}


def _defaults(name: str, steps: int, *, paper: bool) -> Settings:
    """What we set if the user does not: a warm-up and validations that suit a short run, and what suits the model."""
    # A run of known length is validated ten times; one of some minutes, once in a while.
    every = max(1, steps // 10) if steps else 200
    common: Settings = {
        "text": {"kind": "pairs"},
        "train": {
            "warm_up": max(1, min(400, steps // 5)) if steps else 400,
            "validate_steps": every,
            "checkpoint_steps": every,
            "log_steps": max(1, min(50, every // 2)),
            "validate_sentences": 50,
            "samples": 0,
            "patience": 0,  # the budget is the same for all, and used up by all
            "smoothing": 0.1,
        },
    }
    kind = KINDS[name].settings
    if paper:  # it computes its own rate, and refuses another
        kind = {section: {k: v for k, v in table.items() if k != "rate"} for section, table in kind.items()}
    return merge(common, kind)
