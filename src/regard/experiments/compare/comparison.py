"""The comparison itself: each model in its turn, in a process of its own; then the table and the page."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from regard.evaluation.metrics import scorer
from regard.experiments.compare.gradient_path import fading
from regard.experiments.compare.ground import Ground, Note, Test, opened
from regard.experiments.compare.model_facts import KINDS
from regard.experiments.compare.plan import Contender, Request
from regard.experiments.compare.table import Table, as_csv, said, sort
from regard.experiments.compare.worker import MEASURED, Order, Row, Stop, StoppedError, finite
from regard.folder import layout
from regard.folder.weights import load_model
from regard.models import build
from regard.models.base import Model, Writer
from regard.pages.compare import compare_page
from regard.system import storage
from regard.system.device import pick_device, pick_precision

TABLE, CSV, PAGE, PATH = "table.json", "table.csv", "compare.html", "path.json"
WAIT_SECONDS = 0.1


@dataclass(frozen=True)
class Result:
    """How a comparison ended."""

    table: Table
    stopped: bool = False
    """Whether someone asked to stop before all models were done."""

    @property
    def failed(self) -> list[str]:
        """Models that could not be trained or measured."""
        return [row["model"] for row in self.table.get("rows", ()) if row["failed"]]


def compare(request: Request, *, note: Note = lambda _: None, stop: Stop = lambda: False) -> Result:
    """Train and measure each model, or take up where an earlier call stopped; write table and page after each."""
    scorer("bleu", tokenize=request.tokenize)  # a wrong one is told now
    try:
        with opened(request, note, stop) as ground:
            test = ground.open_test()
            if test.held_out:
                note("no --test was given: the models are compared on the validation pairs")
            for contender in ground.contenders:
                note(f"{contender.name:<12}{contender.parameters:,} parameters, width {contender.config.model.width}")
            orders = {contender.name: ground.order(contender, test) for contender in ground.contenders}
            rows = {name: row for name, order in orders.items() if (row := _measured(order))}
            for name in rows:
                note(f"{name:<12}measured before")
            table = _write(ground, test, rows)
            for contender in ground.contenders:
                if contender.name in rows:
                    continue
                row = None if stop() else _train(ground, contender, orders[contender.name], note, stop)
                if row is None:
                    return Result(table, stopped=True)
                rows[contender.name] = row
                table = _write(ground, test, rows)
            return Result(table)
    except StoppedError:
        return Result({}, stopped=True)


def trace(request: Request, *, note: Note = lambda _: None, stop: Stop = lambda: False) -> Result:
    """How the gradient fades in each model, as it begins and, where there is a trained one, as it ends."""
    try:
        with opened(request, note, stop) as ground:
            to, paths = request.to, {}
            for contender in ground.contenders:
                if stop():
                    raise StoppedError
                note(f"{contender.name:<12}gradients")
                paths[contender.name] = _path(ground, contender)
            storage.write_file(to / PATH, json.dumps(paths).encode())
            table = _read(to / TABLE) or _describe(ground, ground.open_test())
            storage.write_file(to / PAGE, compare_page(table, paths).encode())
            return Result(table)
    except StoppedError:
        return Result({}, stopped=True)


def _path(ground: Ground, contender: Contender) -> dict[str, Any]:
    """The gradients of one model: as it begins, and as it is now, if it has been trained."""
    vocabulary, seed = ground.prepared.tokenizer.size, ground.plan.shared.train.seed
    torch.manual_seed(seed)
    models: dict[str, Model | None] = {"initial": build(contender.config.model, vocabulary), "trained": None}
    if (ground.folder_of(contender) / layout.MODEL).exists():
        models["trained"] = load_model(ground.folder_of(contender)).model
    found = {
        name: fading(model, vocabulary, seed).as_table() if isinstance(model, Writer) else None
        for name, model in models.items()
    }
    return {"family": KINDS[contender.name].family, **cast("dict[str, Any]", finite(found))}


def _train(ground: Ground, contender: Contender, order: Order, note: Note, stop: Stop) -> Row | None:
    """What a new process measures of a model; None if it was stopped."""
    ground.share_tokens(contender)
    failed = in_child(order, ground.request.to / layout.CACHE / f"{contender.name}.json", stop)
    row = _measured(order)
    if row is None:
        if stop():
            return None
        row = {"failed": failed or "Its process left before it was done."}
    elif row["tokenizer"] != ground.tokenizer_hash:
        row = {"failed": f"The tokenizer in {order.folder} is not that of the comparison. Name a new folder with --to."}
    if row.get("failed"):
        note(f"{contender.name:<12}failed: {row['failed']}")
    return row


def in_child(order: Order, path: Path, stop: Stop) -> str | None:
    """Let a new process do the work; why it failed, if it did."""
    order.write(path)
    # In a session of its own, so that Ctrl-C reaches us alone: it is for us to let the worker save and leave.
    with subprocess.Popen(
        [sys.executable, "-m", "regard.experiments.compare", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        while process.poll() is None:
            if stop() and not process.stdin.closed:
                process.stdin.close()
            try:
                process.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        said, code = process.stdout.read().strip(), process.returncode
    if code == 0:
        return None
    if code < 0:
        why = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
        return f"Its process was ended by {signal.Signals(-code).name}{why}."
    return said or f"Its process ended with code {code}; the reason is among the lines it printed."


def _write(ground: Ground, test: Test, rows: dict[str, Row]) -> Table:
    """Table and page, of the models that are done."""
    to, table = ground.request.to, _describe(ground, test)
    done = [contender for contender in ground.contenders if contender.name in rows]
    table["rows"] = sort([{**_known(contender), **rows[contender.name]} for contender in done], table["metric"])
    table["said"] = said(table)
    storage.write_file(to / TABLE, json.dumps(table, indent=1, ensure_ascii=False).encode())
    storage.write_file(to / CSV, as_csv(table["rows"]).encode())
    storage.write_file(to / PAGE, compare_page(table, _read(to / PATH)).encode())
    return table


def _known(contender: Contender) -> Row:
    """What is known of a model before it is trained."""
    kind, config = KINDS[contender.name], contender.config
    return {
        "model": contender.name,
        "family": kind.family,
        "path_within": kind.within,
        "path_across": kind.across,
        "parameters": contender.parameters,
        "width": config.model.width,
        "rate": config.train.rate,
        "failed": None,
    }


def _describe(ground: Ground, test: Test) -> Table:
    """Everything about the comparison but its results."""
    request, plan = ground.request, ground.plan
    train, text = plan.shared.train, plan.shared.text
    device = pick_device(train.device)
    reference = next(contender for contender in ground.contenders if contender.name == plan.reference)
    return {
        "format": 1,
        "data": ground.names["data"],
        "valid": ground.names["valid"],
        "pairs": len(ground.prepared.train),
        "test": {
            "name": test.name,
            "sentences": len(test.pairs),
            "held_out": test.held_out,
            "median": test.median,
        },
        "budget": plan.budget,
        "match": {"reference": reference.name, "parameters": reference.parameters} if plan.match else None,
        "metric": request.metric,
        "tokenize": request.tokenize,
        "beam": plan.shared.decode.beam,
        "tokenizer": {
            "kind": text.tokenizer,
            "size": ground.prepared.tokenizer.size,
            "hash": ground.tokenizer_hash,
        },
        "seed": train.seed,
        "batch_tokens": train.batch_tokens * train.accumulate,
        "machine": {
            "cores": _cores(),
            "threads": train.threads or _cores(),
            "device": device.type,
            "precision": str(pick_precision(train.precision, device)).removeprefix("torch."),
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
        "command": request.command,
        "folder": str(request.to),
        "rows": [],
        "said": [],
    }


def _cores() -> int:
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _measured(order: Order) -> Row | None:
    """What was measured by this very order, if it was."""
    found = _read(Path(order.folder) / MEASURED)
    if found is None or found.get("key") != order.key:
        return None
    row: Row = found["row"]
    return row


def _read(path: Path) -> dict[str, Any] | None:
    """A JSON object that an earlier call left, if it is there and whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else None
    except (OSError, ValueError):
        return None
