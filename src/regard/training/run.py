"""One training run: a person's text in, a model folder out. Run again, it goes on where it stopped."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config import Config, differences
from regard.errors import ConfigError, DataError, FolderError
from regard.folder import checkpoints as checkpoint
from regard.folder import layout as folder
from regard.folder import model_card
from regard.folder.weights import check_folder, check_shapes, load_weights, save_weights, start_from, weights_of
from regard.interpret import probe
from regard.models.base import Model
from regard.system import storage
from regard.system.allocator import keep_memory
from regard.system.device import pick_device, pick_precision, set_threads
from regard.text.tokenizers.tokenizer import load_tokenizer
from regard.training.distributed import World
from regard.training.log import Log, NoLog
from regard.training.loop import Display, Loop, TrainState
from regard.training.losses.cross_entropy import Objective
from regard.training.tasks import AnyJob, open_job
from regard.training.trainer import Learner
from regard.training.validation import SCORES, Validation

# What may change between two runs of the same command without asking: how long, how often, where.
FREE = {
    "train.steps", "train.max_minutes", "train.patience", "train.keep", "train.samples", "train.checkpoint_minutes",
    "train.device", "train.threads", "train.probe", "train.recompute",
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
    example: str = ""
    """How to try the model: a command in which DIR stands for its folder."""


def train(
    data: Sequence[str],
    to: Path,
    config: Config,
    *,
    valid: Sequence[str] = (),
    start: Path | None = None,
    override: bool = False,
    display: Display | None = None,
    stop: Callable[[], bool] = lambda: False,
    world: World | None = None,
    tokenizer: Path | None = None,
    objective: Objective | None = None,
) -> Outcome:
    """Train on `data` into the folder `to`, or go on with what is there.

    `data` and `valid` are two parallel files, or one TSV, CSV or JSONL file, or a built-in corpus such as
    "builtin:en-fr"; for a language model also files of running text. `override` accepts settings that differ from
    those the run began with. `stop` is asked after every step. `start` is a model folder whose weights and tokenizer to
    begin with; the settings then come from `regard.config.read_from`. `world` is the processes that train together:
    the leader makes the text ready and writes the folder, which all of them must be able to read. `tokenizer` is a model
    folder whose tokenizer to use, if not that of `start` or a new one; `objective` is what to make smaller, if not what
    the text and the settings say.
    """
    if config.train.soft and not objective:
        raise ConfigError(
            f"train.soft {config.train.soft:g} asks for teachers, but there are none. Use regard distill, or leave it at 0."
        )
    if start:
        check_folder(start)  # before a model of these settings is built, whatever they are
    world = world or World()
    display = display if display and world.leads else Display()
    if world.size > 1 and "-" in data:
        raise DataError("Several processes cannot read standard input. Save it to a file first.")
    with folder.held(to) if world.leads else nullcontext():
        if world.leads:
            with storage.explained(to):
                storage.make_folder(to / folder.CACHE)
        keep_memory()
        known = tokenizer or start
        learn = (lambda _: load_tokenizer(known, config.text)) if known else None
        job = open_job(data, valid, config, spool=to / folder.CACHE, learn=learn)
        about = world.told(lambda: _make_ready(to, config, job, start, override, display, stop))
        if about is None:
            return Outcome(to, 0, None, None)
        if not world.leads:
            job.take_up(to / folder.CACHE / folder.TOKENS, config.train.seed, about["text"])
        return _train(to, config, job, about, start, display, stop, world, objective or job.objective)


def _make_ready(
    to: Path,
    config: Config,
    job: AnyJob,
    start: Path | None,
    override: bool,
    display: Display,
    stop: Callable[[], bool],
) -> dict[str, Any] | None:
    """Text and folder, for all who will train: what the folder says about itself, or None if someone asked to stop."""
    text = job.fingerprints()
    valid_name = job.valid.name if job.valid else "held out"
    # What an earlier call wrote stays until it is replaced: the folder may be in use.
    earlier = _agree(to, config, job, text, override, display)
    about = earlier | {"job": job.name, "data": job.train.name, "valid": valid_name, "text": text}
    folder.save_config(to, config, about)
    try:
        _prepare(job, config, to, display, stop)
    except StoppedError:
        return None
    about |= job.about() | ({"from": str(start)} if start else {})
    folder.save_config(to, config, about)
    return about


def _train(
    to: Path,
    config: Config,
    job: AnyJob,
    about: dict[str, Any],
    start: Path | None,
    display: Display,
    stop: Callable[[], bool],
    world: World,
    objective: Objective,
) -> Outcome:
    device = world.device(pick_device(config.train.device))
    precision = pick_precision(config.train.precision, device)
    threads = set_threads(config.train.threads)
    torch.manual_seed(config.train.seed)
    model = job.build()
    if start and not checkpoint.steps(to / folder.CHECKPOINTS):
        start_from(model, start)  # before there is a learner, whose moving average begins with these weights
    learner = Learner(model, config.train, device, precision, objective, world)
    state = _resume(to, learner, "finished" in about, display)
    if "finished" in about and (reason := state.ended(config.train)):
        display.note(f"training was already finished: {reason}. Raise train.steps or train.max_minutes to go on.")
        return Outcome(to, state.step, reason, None)
    loader = job.batches(world.share)
    parameters = sum(p.numel() for p in model.parameters())
    display.note(
        f"{job.size()}, {job.tokenizer.size:,} words, {parameters:,} parameters; "
        f"{device.type}, {str(precision).removeprefix('torch.')}, {world.processes}{threads} thread{'s' * (threads != 1)}; "
        f"{loader.count(0):,} batches an epoch, {loader.padding_share(0):.1%} padding"
    )
    for note in job.told_of(model):
        display.note(note)
    validator, watch = job.validator(learner), probe.recorder(job.watch(learner))
    with _log(to / folder.LOG, state.log_bytes, world) as log, _log(to / probe.FILE, state.seen_bytes, world) as seen:
        loop = Loop(
            learner, loader, config.train, config.model.width, to / folder.CHECKPOINTS, log, seen, display, validator, watch,
            keep_best=lambda weights: save_weights(to, weights), stop=stop, state=state,
        )  # fmt: skip
        reason = loop.run()
        if reason is None or not world.leads:
            return Outcome(to, state.step, reason, None)
        validation = _choose_weights(to, loop, validator)
    about = {**about, "finished": reason, "step": state.step, "parameters": parameters}
    model_card.write(to, config, about, validation, job.example)
    folder.save_config(to, config, about)  # the last: after it, nothing is left to do
    return Outcome(to, state.step, reason, validation, job.example)


def _agree(
    to: Path, config: Config, job: AnyJob, text: dict[str, str], override: bool, display: Display
) -> dict[str, Any]:
    """Check the settings against the job and those the run began with; what the folder says about itself, if it is one."""
    if config.train.metric not in ("loss", *job.scores):
        raise ConfigError(
            f"train.metric {config.train.metric} is not measured in this training. Use loss, {', '.join(job.scores)}."
        )
    if not (to / folder.CONFIG).exists():
        return {}
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
    return about


def _log(path: Path, size: int, world: World) -> Log | NoLog:
    return Log(path, size) if world.leads else NoLog()


class StoppedError(Exception):
    """Someone asked to stop while the text was being prepared."""


def _prepare(job: AnyJob, config: Config, to: Path, display: Display, stop: Callable[[], bool]) -> None:
    def progress(what: str, done: int) -> None:
        if stop():
            raise StoppedError
        if done % 100_000 == 0:
            display.note(f"{what}{f': {done:,}' if done else ''}")

    with storage.explained(to / folder.CACHE):
        notes = job.prepare(to / folder.CACHE / folder.TOKENS, config.train.seed, progress)
    storage.write_file(to / job.tokenizer.file_name, job.tokenizer.as_bytes())
    for note in notes:
        display.note(note)


def _resume(to: Path, learner: Learner, finished: bool, display: Display) -> TrainState:
    """Load the newest whole checkpoint, if there is any."""
    checkpoints = to / folder.CHECKPOINTS
    step = learner.world.told(lambda: checkpoint.newest(checkpoints, display.note))
    if step is None:
        if finished:
            raise FolderError(
                f"{to} holds a finished model but no checkpoints to go on from. Train into a new folder with --to."
            )
        return TrainState()
    saved = checkpoint.folder_of(checkpoints, step)
    state = TrainState.restored(checkpoint.load_state(checkpoints, step), saved / checkpoint.STATE)
    own = weights_of(learner.model)
    check_shapes({name: tuple(weight.shape) for name, weight in own.items()}, saved / checkpoint.WEIGHTS)
    weights, training = (checkpoint.load_tensors(saved / name) for name in (checkpoint.WEIGHTS, checkpoint.TRAINING))
    learner.check(training, saved / checkpoint.TRAINING)
    learner.restore(weights, training)
    display.note(f"going on from step {step:,}")
    return state


def _choose_weights(to: Path, loop: Loop, validator: Callable[[Model], Validation]) -> Validation:
    """Keep the average of the last checkpoints if it validates better than the best single one."""
    config, log = loop.config, loop.log
    metric = config.metric
    best = checkpoint.load_tensors(to / folder.MODEL)
    model = loop.learner.model_with(best)
    load_weights(model, best, to / folder.MODEL)
    single = validator(model)
    regular = [step for step in checkpoint.steps(loop.checkpoints) if step % config.checkpoint_steps == 0]
    chosen = checkpoint.undamaged(loop.checkpoints, regular[-config.average :], loop.display.note)
    if len(chosen) < 2:
        return single
    mean: dict[str, Tensor] = checkpoint.average(loop.checkpoints, chosen)
    load_weights(model, mean, loop.checkpoints)
    averaged = validator(model)
    better = averaged.better_than(single.value(metric), single.loss, metric)
    scores = {f"valid_{name}": round(score, 4) for name, score in averaged.scores.items()}
    log.write(step=loop.state.step, averaged=chosen, valid_loss=round(averaged.loss, 6), **scores)
    loop.display.note(
        f"the average of the last {len(chosen)} checkpoints has {SCORES.get(metric, metric)} "
        f"{averaged.value(metric):.3f}, the best single one (step {loop.state.best_step:,}) "
        f"{single.value(metric):.3f}: keeping the "
        f"{'average' if better else 'single one'}"
    )
    if not better:
        return single
    save_weights(to, mean)
    return averaged
