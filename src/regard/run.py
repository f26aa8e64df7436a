"""One training run: a person's text in, a model folder out. Run again, it goes on where it stopped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import card, checkpoint, folder, metrics, storage
from regard.config import Config, differences
from regard.decode.translator import Translator
from regard.device import keep_memory, pick_device, pick_precision, set_threads
from regard.errors import ConfigError, DataError, FolderError
from regard.models import build
from regard.models.interface import Writer
from regard.text.corpus import Corpus, open_corpus
from regard.text.loader import Loader
from regard.text.prepare import Prepared, prepare
from regard.training.learner import Learner
from regard.training.log import Log
from regard.training.loop import Display, Loop, TrainState, Validation
from regard.training.validate import Validator

# What may change between two runs of the same command without asking: how long, how often, where.
FREE = {
    "train.steps", "train.max_minutes", "train.patience", "train.keep", "train.samples", "train.checkpoint_minutes",
    "train.device", "train.threads",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    folder: Path
    step: int
    reason: str | None
    """Why training is over; None if it was stopped and can go on."""
    validation: Validation | None
    """Of the weights that the folder now holds."""


def train(
    data: Sequence[str],
    to: Path,
    config: Config,
    *,
    valid: Sequence[str] = (),
    override: bool = False,
    display: Display | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train on `data` into the folder `to`, or go on with what is there.

    `data` and `valid` are two parallel files, or one TSV, CSV or JSONL file, or a built-in corpus such as
    "builtin:en-fr". `override` accepts settings that differ from those the run began with. `stop` is asked after
    every step.
    """
    display = display or Display()
    _claim(to)
    with storage.locked(to / folder.LOCK):
        keep_memory()
        train_text, valid_text = _open(data, valid, to, config)
        about = {"data": train_text.name, "valid": valid_text.name if valid_text else "held out"}
        text = {"train": train_text.fingerprint(), "valid": valid_text.fingerprint() if valid_text else ""}
        config, finished = _agree(to, config, text, override, display)
        folder.save_config(to, config, {**about, "text": text})
        try:
            prepared = _prepare(train_text, valid_text, config, to, display, stop)
        except StoppedError:
            return Outcome(to, 0, None, None)
        return _train(to, config, prepared, {**about, "text": text}, finished, display, stop)


def _train(
    to: Path,
    config: Config,
    prepared: Prepared,
    about: dict[str, Any],
    finished: bool,
    display: Display,
    stop: Callable[[], bool],
) -> Outcome:
    device = pick_device(config.train.device)
    precision = pick_precision(config.train.precision, device)
    threads = set_threads(config.train.threads)
    torch.manual_seed(config.train.seed)
    model = build(config.model, prepared.tokenizer.size)
    if model.longest is not None and config.text.longest >= model.longest:
        raise ConfigError(
            f"text.longest {config.text.longest} lets in sentences for which this model has no positions. "
            f"Set text.longest={model.longest - 1} or less, or model.longest={config.text.longest + 1} or more."
        )
    learner = Learner(model, config.train, device, precision)
    state = _resume(to, learner, finished, display)
    if finished and (reason := state.ended(config.train)):
        display.note(f"training was already finished: {reason}. Raise train.steps or train.max_minutes to go on.")
        return Outcome(to, state.step, reason, None)
    loader = Loader(prepared.train, config.train.batch_tokens, config.train.seed)
    if config.text.sampling:
        loader.sample_subwords(prepared.tokenizer, config.text.sampling)
    parameters = sum(p.numel() for p in model.parameters())
    display.note(
        f"{len(prepared.train):,} pairs, {prepared.tokenizer.size:,} words, {parameters:,} parameters; "
        f"{device.type}, {str(precision).removeprefix('torch.')}, {threads} threads; "
        f"{len(loader.plan(0)):,} batches an epoch, {loader.padding_share(0):.1%} padding"
    )
    validator = _validator(prepared, learner, config)
    with Log(to / folder.LOG, state.log_bytes) as log:
        loop = Loop(
            learner, loader, config.train, config.model.width, to / folder.CHECKPOINTS, log, display, validator,
            keep_best=lambda learner: folder.save_weights(to, learner.best_weights()), stop=stop, state=state,
        )  # fmt: skip
        reason = loop.run()
        if reason is None:
            return Outcome(to, state.step, None, None)
        validation = _choose_weights(to, loop, validator)
    about = {**about, "finished": reason, "step": state.step, "parameters": parameters}
    folder.save_config(to, config, about)
    card.write(to, config, about, validation)
    return Outcome(to, state.step, reason, validation)


def _open(data: Sequence[str], valid: Sequence[str], to: Path, config: Config) -> tuple[Corpus, Corpus | None]:
    if "-" in valid:
        raise DataError("--valid cannot be standard input. Save it to a file first.")
    if not valid and len(data) == 1 and data[0].startswith("builtin:") and "/" not in data[0]:
        valid = [data[0] + "/valid"]
    columns = config.text.columns
    with storage.explained(to):
        (to / folder.CACHE).mkdir(exist_ok=True)
    train_text = open_corpus(data, columns=columns, spool=to / folder.CACHE / "stdin.tsv")
    return train_text, open_corpus(valid, columns=columns) if valid else None


def _claim(to: Path) -> None:
    """Make the folder, or make sure that it is ours to write in."""
    if to.exists() and not to.is_dir():
        raise FolderError(f"--to {to} is a file. Name a folder.")
    with storage.explained(to):
        to.mkdir(parents=True, exist_ok=True)
    strangers = sorted(path.name for path in to.iterdir() if path.name not in (folder.LOCK, folder.CACHE))
    if strangers and not (to / folder.CONFIG).exists():
        raise FolderError(
            f"--to {to} holds other files ({strangers[0]}), which stay untouched. Name a new or empty folder."
        )


def _agree(to: Path, config: Config, text: dict[str, str], override: bool, display: Display) -> tuple[Config, bool]:
    """Check the settings against those the run began with; the settings to use, and whether it had ended before."""
    if not (to / folder.CONFIG).exists():
        return config, False
    old, about = folder.load_config(to)
    if about.get("text") != text:
        raise ConfigError(
            f"The text is not the one that {to} was trained on ({about.get('data')}). "
            "Restore it, or train into a new folder with --to."
        )
    changed = [change for change in differences(old, config) if not change[0].startswith("decode.")]
    fixed = FREE - {"train.steps"} if config.train.schedule == "cosine" else FREE
    refused = [change for change in changed if change[0] not in fixed]
    deep = [change for change in refused if not (change[0].startswith("train.") or change[0] == "model.dropout")]
    if deep or (refused and not override):
        listed = "; ".join(f"{name} {before} -> {after}" for name, before, after in refused)
        advice = "Train into a new folder with --to" if deep else "Add --override to accept this"
        raise ConfigError(f"{to} was trained with other settings: {listed}. {advice}, or give the old settings.")
    for name, before, after in changed:
        display.note(f"{name} {before} -> {after}")
    return config, "finished" in about


class StoppedError(Exception):
    """Someone asked to stop while the text was being prepared."""


def _prepare(
    train_text: Corpus,
    valid_text: Corpus | None,
    config: Config,
    to: Path,
    display: Display,
    stop: Callable[[], bool],
) -> Prepared:
    def progress(what: str, done: int) -> None:
        if stop():
            raise StoppedError
        if done % 100_000 == 0:
            display.note(f"{what}{f': {done:,} pairs' if done else ''}")

    with storage.explained(to / folder.CACHE):
        prepared = prepare(
            train_text, valid_text, config.text, to / folder.CACHE / "tokens", config.train.seed, progress
        )
    storage.write_file(to / prepared.tokenizer.file_name, prepared.tokenizer.as_bytes())
    for note in prepared.notes:
        display.note(note)
    return prepared


def _resume(to: Path, learner: Learner, finished: bool, display: Display) -> TrainState:
    """Load the newest whole checkpoint, if there is any."""
    checkpoints = to / folder.CHECKPOINTS
    step = checkpoint.newest(checkpoints, display.note)
    if step is None:
        if finished:
            raise FolderError(
                f"{to} holds a finished model but no checkpoints to go on from. Train into a new folder with --to."
            )
        return TrainState()
    saved = checkpoint.folder_of(checkpoints, step)
    learner.restore(
        checkpoint.load_tensors(saved / checkpoint.WEIGHTS), checkpoint.load_tensors(saved / checkpoint.TRAINING)
    )
    display.note(f"going on from step {step:,}")
    return TrainState(**checkpoint.load_state(checkpoints, step))


def _validator(prepared: Prepared, learner: Learner, config: Config) -> Validator:
    # Greedy: a validation should cost seconds, and compares a model with itself only.
    quick = replace(config.decode, beam=1, n_best=1, sample=False)

    def translate(model: Writer, sources: list[str]) -> list[str]:
        return Translator(model, prepared.tokenizer, quick, learner.device).translate(sources)

    def score(written: list[str], right: list[str]) -> tuple[float, float]:
        bleu = metrics.bleu(written, right, interval=False, quiet=True)
        return bleu.value, metrics.chrf(written, right, interval=False).value

    train = config.train
    return Validator(
        prepared.valid,
        learner,
        sentences=train.validate_sentences,
        samples=train.samples,
        translate=translate,
        score=score,
    )


def _choose_weights(to: Path, loop: Loop, validator: Validator) -> Validation:
    """Keep the average of the last checkpoints if it validates better than the best single one."""
    config, log, model = loop.config, loop.log, loop.learner.model
    metric = config.metric
    best = checkpoint.load_tensors(to / folder.MODEL)
    folder.load_weights(model, best, to / folder.MODEL)
    single = validator(model)
    regular = [step for step in checkpoint.steps(loop.checkpoints) if step % config.checkpoint_steps == 0]
    chosen = regular[-config.average :]
    if len(chosen) < 2:
        return single
    mean: dict[str, Tensor] = checkpoint.average(loop.checkpoints, chosen)
    folder.load_weights(model, mean, loop.checkpoints)
    averaged = validator(model)
    better = averaged.better_than(getattr(single, metric), metric)
    log.write(
        step=loop.state.step, averaged=chosen, valid_loss=round(averaged.loss, 6), valid_bleu=round(averaged.bleu, 3)
    )
    names = {"loss": "loss", "bleu": "BLEU", "chrf": "chrF"}
    loop.display.note(
        f"the average of the last {len(chosen)} checkpoints has {names[metric]} {getattr(averaged, metric):.3f}, "
        f"the best single one (step {loop.state.best_step:,}) {getattr(single, metric):.3f}: keeping the "
        f"{'average' if better else 'single one'}"
    )
    if not better:
        return single
    folder.save_weights(to, mean)
    return averaged
