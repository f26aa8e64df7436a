"""One model of a comparison, trained and measured in a process of its own: its memory is its own, and so is its crash.

`python -m regard.experiments.compare ORDER` reads what to do from a file, tells its progress on stderr, and leaves what
it measured in the model folder. It goes on as long as its standard input is open: whoever started it closes that to
stop it, or ends. Then training is saved and can be taken up again.
"""

import hashlib
import json
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch

from regard.config import as_table, read
from regard.decode.translator import Translator
from regard.errors import RegardError
from regard.evaluation import metrics
from regard.evaluation.translation import Report, evaluate
from regard.experiments.compare.length_buckets import Bucket
from regard.folder.layout import LOG
from regard.inference.torch_models import load_as
from regard.system.storage import write_file
from regard.text.pair import Pair
from regard.training.log import read_log
from regard.training.loop import Display, TrainState
from regard.training.run import train
from regard.training.validation import Validation

MEASURED = "measured.json"
SCORES = ("bleu", "chrf")
TIMED = 200  # sentences at most by which speed is measured
TOLD_SECONDS = 10.0  # between two lines about training
POINTS = 200  # of a learning curve, at most

Row = dict[str, Any]
"""What was measured of one model, ready for JSON."""
Stop = Callable[[], bool]


@dataclass(frozen=True)
class Order:
    """What a worker is to do, ready for JSON."""

    name: str
    folder: str
    data: list[str]
    valid: list[str]
    config: dict[str, Any]
    pairs: list[Pair]
    """The test set."""
    halves: list[Bucket]
    quantiles: list[Bucket]
    tokenize: str
    key: str
    """A hash of everything on which the result depends."""

    def write(self, path: Path) -> None:
        """To a file, for a worker."""
        write_file(path, json.dumps(asdict(self), ensure_ascii=False).encode())

    @classmethod
    def read(cls, path: Path) -> "Order":
        """From a file."""
        table = json.loads(path.read_text(encoding="utf-8"))
        table["pairs"] = [Pair(*pair) for pair in table["pairs"]]
        for name in ("halves", "quantiles"):
            table[name] = [Bucket(*bucket) for bucket in table[name]]
        return cls(**table)


def main(arguments: Sequence[str]) -> int:
    """Do what the order in this file says, as long as standard input is open."""
    closed = threading.Event()
    threading.Thread(target=_watch, args=(closed,), daemon=True).start()
    return carry_out(Order.read(Path(arguments[0])), closed.is_set)


def carry_out(order: Order, stop: Stop) -> int:
    """Work, and leave the result in the model's folder; or say on stdout why it failed, with the error's code."""
    try:
        row = work(order, stop)
    except RegardError as error:
        print(" ".join(str(error).split()))
        return error.code
    if row is not None:
        write_file(Path(order.folder) / MEASURED, json.dumps({"key": order.key, "row": row}, indent=1).encode())
    return 0


def _watch(closed: threading.Event) -> None:
    while os.read(0, 1):
        pass
    closed.set()


class StoppedError(Exception):
    """Someone asked to stop while the model was being measured."""


def work(order: Order, stop: Stop) -> Row | None:
    """Train, or go on training, and measure; None if it was stopped before the end."""
    folder, config = Path(order.folder), read(order.config)
    display = Progress(order.name)
    outcome = train(order.data, folder, config, valid=order.valid, display=display, stop=stop)
    if outcome.reason is None:
        return None
    trained_here = outcome.validation is not None
    memory = peak_memory() if trained_here else _measured_before(folder).get("peak_memory")
    translator = load_as(Translator, folder, device=config.train.device, threads=config.train.threads)
    display.note(f"translating {len(order.pairs):,} sentences")

    def progress(_done: int, _total: int) -> None:
        if stop():
            raise StoppedError

    try:
        speed = sentences_per_second(translator, [pair.source for pair in order.pairs[:TIMED]])
        report = evaluate(translator, order.pairs, tokenize=order.tokenize, metrics=SCORES, progress=progress)
    except StoppedError:
        return None
    curve = learning_curve(read_log(folder / LOG))
    row: Row = {
        "step": outcome.step,
        "ended": outcome.reason,
        "tokens": curve["train"][-1]["tokens"] if curve["train"] else None,
        "seconds": max((point["seconds"] for points in curve.values() for point in points), default=None),
        **{name: score._asdict() for name, score in report.scores.items()},
        "exact_match": report.exact_match,
        "perplexity": report.perplexity,
        "tokens_per_second": tokens_per_second(read_log(folder / LOG)),
        "sentences_per_second": speed,
        "peak_memory": memory,
        "halves": [scored(bucket, order, report, interval=True) for bucket in order.halves],
        "quantiles": [scored(bucket, order, report, interval=False) for bucket in order.quantiles],
        "curve": curve,
        "tokenizer": hashlib.blake2b((folder / translator.tokenizer.file_name).read_bytes(), digest_size=8).hexdigest(),
        "config": as_table(config),
    }
    display.note(f"{report.scores['bleu'].name} {report.scores['bleu'].value:.2f}, exact {report.exact_match:.1f}%")
    return cast(Row, finite(row))


def finite(value: Any) -> Any:
    """The same, but None for every number that JSON cannot hold.

    >>> finite({"loss": [1.0, math.inf]})
    {'loss': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def scored(bucket: Bucket, order: Order, report: Report, *, interval: bool) -> dict[str, Any]:
    """How good the translations of these sentences are."""
    written = [report.hypotheses[n] for n in bucket.numbers]
    right = [order.pairs[n].target for n in bucket.numbers]
    found: dict[str, Any] = {
        "shortest": bucket.shortest,
        "longest": bucket.longest,
        "sentences": len(written),
        "exact_match": metrics.exact_match(written, right),
    }
    for name in SCORES:
        score = metrics.scorer(name, tokenize=order.tokenize, interval=interval, quiet=True)(written, right)
        found[name] = {"value": score.value, "low": score.low, "high": score.high}
    return found


def sentences_per_second(translator: Translator, sources: list[str]) -> float:
    """Greedy: what one sentence costs without a search. The first few are not counted, as they warm up."""
    translator.translate(sources[:10], beam=1, n_best=1, sample=False, mbr=0)
    began = time.perf_counter()
    translator.translate(sources, beam=1, n_best=1, sample=False, mbr=0)
    return len(sources) / max(1e-9, time.perf_counter() - began)


def tokens_per_second(log: list[dict[str, Any]]) -> float | None:
    """Target tokens learned from in a second of training, validations aside; None if nothing was logged."""
    lines = [line for line in log if line.get("tokens_per_second")]
    tokens = seconds = before = 0.0
    for line in lines:
        tokens += line["tokens"] - before
        seconds += (line["tokens"] - before) / line["tokens_per_second"]
        before = line["tokens"]
    return tokens / seconds if seconds else None


def learning_curve(log: list[dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """Loss against steps, seconds and tokens: "train", thinned, and "valid". A validation's tokens are interpolated."""
    train = [{k: line[k] for k in ("step", "seconds", "tokens", "loss")} for line in log if "loss" in line]
    valid = []
    for line in log:
        if "valid_loss" in line and "seconds" in line:
            point = {"step": line["step"], "seconds": line["seconds"], "tokens": _tokens_at(line["step"], train)}
            valid.append({**point, "loss": line["valid_loss"], "bleu": line["valid_bleu"]})
    thin = max(1, math.ceil(len(train) / POINTS))
    return {"train": train[::-1][::thin][::-1], "valid": valid}


def _tokens_at(step: int, train: list[dict[str, float]]) -> float:
    """Between two lines of the log, and after the last one, every step has as many tokens as the next or the last."""
    last, tokens = 0.0, 0.0
    for line in train:
        if line["step"] >= step:
            return tokens + (line["tokens"] - tokens) * (step - last) / (line["step"] - last)
        last, tokens = line["step"], line["tokens"]
    return tokens * step / last if last else 0.0


def peak_memory() -> int:
    """The most memory that this process has held, in bytes; on a GPU, the most that tensors have held there."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated()
    try:
        # The kernel's other number, ru_maxrss, begins with what the parent held when it started this process.
        status = Path("/proc/self/status").read_text()
        return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _measured_before(folder: Path) -> Row:
    try:
        row: Row = json.loads((folder / MEASURED).read_text(encoding="utf-8"))["row"]
        return row
    except (OSError, ValueError, KeyError):
        return {}


class Progress(Display):
    """Plain lines on stderr, each with the model's name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told = -TOLD_SECONDS

    def note(self, text: str) -> None:
        print(f"{self._name:<12}{text}", file=sys.stderr, flush=True)

    def training(self, state: TrainState, line: dict[str, Any]) -> None:
        if state.seconds - self._told >= TOLD_SECONDS:
            self._told = state.seconds
            speed = f"{line['tokens_per_second']:,.0f} tokens/s"
            self.note(f"step {state.step:,}  loss {line['loss']:.3f}  {speed}  {line['seconds']:,.0f} s")

    def validation(self, state: TrainState, validation: Validation, *, best: bool) -> None:
        self.note(f"step {state.step:,}  validation loss {validation.loss:.3f}  perplexity {validation.perplexity:.2f}")
