"""Every call that changes the disk fails in turn, or the process is killed there; and disks that are really full.

The kills are real: a child of this process does the work, and SIGKILL ends it at the call. Where a fault leaves the very
files that an earlier one has left, how training goes on from them is not tried again.
"""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from conftest import write_digits
from faults import (
    BRIEF,
    FaultyDisk,
    counted,
    differences,
    failing,
    faulty,
    fingerprint,
    full,
    kill_for_good,
    running_text,
    train,
    whole_checkpoint,
)
from regard.errors import StorageError
from regard.text.shards import pair_shards, prepare_pairs, prepare_text
from regard.text.tokenizers import encoding
from torture.rows import Row

SHAPE = {"model.heads": 2, "model.depth": 1, "model.inner": 16}
CHAINS, CHAIN, SIZES = 10, 10, 10


class Fault(NamedTuple):
    check: str
    name: str
    strike: Callable[[], None]
    lasts: bool


KILL = Fault("T2", "SIGKILL", kill_for_good, True)
FAULTS = [
    KILL,
    Fault("T4", "no room, once,", full, False),
    Fault("T4", "errors of the disk from there on,", failing, True),
]


class Case(NamedTuple):
    """Work that is always the same: its result, where it begins, and what it then asks of the disk."""

    name: str
    work: Callable[[Path], None]
    whole: Path
    part: Path | None
    calls: list[str]

    def begin(self, to: Path) -> None:
        shutil.rmtree(to, ignore_errors=True)
        if self.part:
            shutil.copytree(self.part, to)


def run(scratch: Path) -> Iterator[Row]:
    encoding.AT_A_TIME, prepare_pairs.SAVED_EVERY, prepare_text.SAVED_EVERY, pair_shards.PAIRS_IN_A_SHARD = (
        10,
        40,
        40,
        64,
    )
    pairs, text = write_digits(scratch, 120), running_text(scratch)
    works: dict[str, Callable[[Path], None]] = {
        "transformer": lambda to: train(pairs, to, "transformer", **SHAPE, **{"train.ema": 0.9}),
        "lstm": lambda to: train(text, to, "lstm"),
    }
    for model, work in works.items():
        preparing, saving = cases(scratch / model, model, work)
        for fault in FAULTS:
            yield at_every_call(preparing, fault)
            yield at_every_call(saving, fault)
        yield chained(saving)
        yield in_the_logs(saving)
    yield limited(scratch / "limited", pairs)
    if os.geteuid() == 0:
        yield on_small_disks(scratch / "small", pairs)


def cases(place: Path, model: str, work: Callable[[Path], None]) -> tuple[Case, Case]:
    """Preparing the text, and the last checkpoint with the final save, of one training."""
    whole, part = place / "whole/model", place / "part/model"
    calls = counted(lambda: work(whole))
    prepared, last = calls.index("open model/log.jsonl"), calls.index("mkdir checkpoints/.step-00000003.tmp")
    end_at(last, KILL, work, part)
    begun = Path(shutil.copytree(part, place / "counted/model"))
    saving = counted(lambda: work(begun))
    return (
        Case(f"preparing text for {model}", work, whole, None, calls[:prepared]),
        Case(f"the last checkpoint and the final save of {model}", work, whole, part, saving),
    )


def end_at(at: int, fault: Fault, work: Callable[[Path], None], to: Path, only: str = "") -> str:
    """Do the work in a process of its own, with a fault at a call, and say how it ended."""
    child = os.fork()
    if not child:
        code = 1
        with suppress(BaseException):
            try:
                with faulty(FaultyDisk(at, fault.strike, lasts=fault.lasts, only=lambda call: call.endswith(only))):
                    work(to)
                code = 0
            except StorageError as error:
                code = error.code if "\n" not in str(error) else 1
        os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {0: "done", StorageError.code: "told", -signal.SIGKILL: "killed"}.get(code, f"exit code {code}")


def goes_on(case: Case, to: Path, seen: set[object]) -> bool:
    """Whether the same command ends with the same files, and no others; and had a whole checkpoint to go on from."""
    whole_checkpoint(to)
    if (left := fingerprint(to)) not in seen:
        with faulty(FaultyDisk(-2, full)):
            case.work(to)
        seen.add(left)
        return differences(case.whole, to) == []
    return True


def at_every_call(case: Case, fault: Fault) -> Row:
    to, seen, ends, wrong = case.whole.parents[1] / "tried/model", set[object](), dict[str, int](), list[str]()
    for at, call in enumerate(case.calls):
        case.begin(to)
        ended = end_at(at, fault, case.work, to)
        ends[ended] = ends.get(ended, 0) + 1
        expected = ended == "killed" if fault is KILL else ended in ("told", "done")
        whole = not case.part or whole_checkpoint(to) in (2, 3)
        if not (expected and whole and goes_on(case, to, seen)):
            wrong.append(call)
    tried = len(case.calls)
    told = f"{tried - len(wrong)} went on to the same bytes, no file too many" + (
        f"; {ends.get('told', 0)} told in one line, {ends.get('done', 0)} did no harm" if fault is not KILL else ""
    )
    return Row(fault.check, f"{fault.name} at each call of {case.name}", tried, told + _of(wrong), not wrong)


def chained(case: Case) -> Row:
    to, most, left, wrong = case.whole.parents[1] / "chain/model", 0, 0, 0
    before_it_counts = case.calls.index("rename checkpoints/.step-00000003.tmp")
    for number in range(CHAINS):
        moments = random.Random(number)
        case.begin(to)
        for _ in range(CHAIN):
            end_at(moments.randrange(before_it_counts), KILL, case.work, to)
            most = max(most, len([path for path in (to / "checkpoints").iterdir() if path.name.startswith("step-")]))
            left = max(left, len([path for path in to.rglob(".*.tmp") if path.is_file()]))
        wrong += not goes_on(case, to, set())
    model = case.name.split()[-1]
    seen = f"at most {most} checkpoints (train.keep={BRIEF['train.keep']}), temporary files: {left}; then 0, all equal"
    return Row("T3", f"{CHAIN} kills in a row before the next checkpoint, {model}", CHAIN * CHAINS, seen, not wrong)


def in_the_logs(case: Case) -> Row:
    to, seen, wrong, tried = case.whole.parents[1] / "logs/model", set[object](), list[str](), 0
    for file in ("log.jsonl", "probe.jsonl"):
        for at in range(sum(call.endswith(file) for call in case.calls)):
            case.begin(to)
            ended = end_at(at, Fault("T5", "", full, True), case.work, to, only=file)
            if ended != "told" or not whole_checkpoint(to) or not goes_on(case, to, seen):
                wrong.append(f"{file} {at}")
            tried += 1
    told = f"{tried - len(wrong)} told in one line, checkpoints whole, the same bytes in the end"
    model = case.name.split()[-1]
    return Row("T5", f"no room for the log alone, at each call, {model}", tried, told + _of(wrong), not wrong)


def command(data: list[str], to: Path) -> list[str]:
    settings = {**BRIEF, "model.width": 64, **SHAPE}
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "regard", "train", *data, "--to", str(to), *options]


def told_no_room(arguments: list[str], limit: int | None = None) -> bool:
    """Whether a command, whose files may grow to a limit, ends with a message of one line and the right code."""
    size = (resource.RLIM_INFINITY if limit is None else limit,) * 2
    done = subprocess.run(
        arguments, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, size)
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("regard:")]
    return done.returncode == 74 and len(said) == 1 and "No room" in said[0] and "Traceback" not in done.stderr


def limited(place: Path, data: list[str]) -> Row:
    whole = place / "whole/model"
    subprocess.run(command(data, whole), check=True, capture_output=True)
    largest = max(path.stat().st_size for path in whole.rglob("*"))
    held = 0
    for number in range(SIZES):
        to = place / f"{number}/model"
        told = told_no_room(command(data, to), limit=largest * (2 * number + 1) // (2 * SIZES))
        subprocess.run(command(data, to), check=True, capture_output=True)
        held += told and differences(whole, to) == []
    seen = f"{held} told in one line with exit code 74, then went on to the same bytes"
    return Row(
        "T4", "`regard train` where files may not grow beyond a limit (RLIMIT_FSIZE)", SIZES, seen, held == SIZES
    )


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[None]:
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def on_small_disks(place: Path, data: list[str]) -> Row:
    whole = place / "whole/model"
    subprocess.run(command(data, whole), check=True, capture_output=True)
    needed = sum(path.stat().st_blocks * 512 for path in whole.rglob("*"))
    held = 0
    for number in range(SIZES):
        disk = place / f"{number}"
        with small_disk(disk, needed * (number + 1) // (SIZES + 1)):
            told = told_no_room(command(data, disk / "model"))
            subprocess.run(["mount", "-o", f"remount,size={4 * needed}", disk], check=True)
            subprocess.run(command(data, disk / "model"), check=True, capture_output=True)
            held += told and differences(whole, disk / "model") == []
    seen = f"{held} told in one line with exit code 74, then, with more room, went on to the same bytes"
    return Row("T4", "`regard train` on a disk too small (tmpfs)", SIZES, seen, held == SIZES)


def _of(wrong: list[str]) -> str:
    return f"; not at: {', '.join(wrong)}" if wrong else ""
