"""First uses of a model by CTranslate2, many at once: by threads, and by processes that believe they are the same one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any
from unittest.mock import patch

import regard
from regard.fast import convert_transformer
from regard.folder.layout import CACHE
from torture.rows import Row
from untrained import leaning, made

THREADS, TRIALS, PROCESSES = 10, 60, 2
TEXTS = ["a b c", "d", "o n m l k j i h", "c <mask> a b a"]
SETTINGS = {"width": 64, "inner": 256}  # large enough for the files to take some time

# Loads and uses the model as its uses in this file do; another process beside it has the same number.
ALIKE = """
import os, sys
os.getpid = lambda: 7
from regard.inference.load import load
model = load(sys.argv[1], engine="ctranslate2")
print("ready", flush=True)
sys.stdin.readline()
print(model.translate(sys.argv[2:], beam=1))
"""


def run(scratch: Path) -> Iterator[Row]:
    writer = leaning(scratch / "writer", **SETTINGS)
    yield first_use_by_threads(scratch, writer, "each its own translator", fresh=True)
    yield first_use_by_threads(scratch, writer, "one translator")
    for name in ("lm", "bert", "classifier"):
        yield first_use_by_threads(scratch, made(name, scratch / name, settings=SETTINGS), f"one {name}")
    yield first_use_by_processes(scratch, writer)


def use(model: Any) -> Any:
    """What the model makes of some texts."""
    if hasattr(model, "classify"):
        return model.classify(TEXTS)
    return model.fill(TEXTS) if hasattr(model, "fill") else model.translate(TEXTS, beam=1, precision="float32")


def first_use_by_threads(scratch: Path, model: Path, what: str, *, trials: int = TRIALS, fresh: bool = False) -> Row:
    """So many first uses at the same moment: all alike, and what they leave is of use to the next."""
    expected = use(regard.load(model, device="cpu"))
    raised = differed = spoiled = 0
    for _ in range(trials):
        copy = Path(shutil.copytree(model, scratch / "copy"))
        shutil.rmtree(copy / CACHE, ignore_errors=True)
        models = [regard.load(copy, engine="ctranslate2") for _ in range(THREADS if fresh else 1)]
        together = Barrier(THREADS)

        def first(one: Any, together: Barrier = together) -> Any:
            together.wait()
            return use(one)

        with all_converting(), ThreadPoolExecutor(THREADS) as pool:
            running = [pool.submit(first, models[n % len(models)]) for n in range(THREADS)]
        raised += any(future.exception() for future in running)
        differed += any(not future.exception() and not like(future.result(), expected) for future in running)
        spoiled += not usable(copy, expected)
        shutil.rmtree(copy)
    seen = f"{raised} raised, {differed} differed, {spoiled} left a cache of no use"
    return Row("X", f"first use from {THREADS} threads, {what}", trials, seen, not raised + differed + spoiled)


@contextmanager
def all_converting() -> Iterator[None]:
    """Who converts a Transformer waits a moment for others to do so too."""
    real, together = convert_transformer.converted, Barrier(THREADS)

    def converted(*given: Any) -> Any:
        files = real(*given)
        with suppress(BrokenBarrierError):
            together.wait(0.2)
        return files

    with patch.object(convert_transformer, "converted", converted):
        yield


def like(found: Any, expected: Any) -> bool:
    """The same texts, labels or words; their scores are another test's matter."""
    return plain(found) == plain(expected)


def plain(found: Any) -> Any:
    if hasattr(found, "label"):
        return found.label
    if hasattr(found, "word"):
        return found.word
    return [plain(one) for one in found] if isinstance(found, list) else found


def usable(copy: Path, expected: Any) -> bool:
    """Whether what lies in the cache serves the next start, and nothing lies beside it."""
    places = [path.name for path in (copy / CACHE / "ctranslate2").iterdir()]
    try:
        return len(places) == 1 and like(use(regard.load(copy, engine="ctranslate2")), expected)
    except Exception:
        return False


def first_use_by_processes(scratch: Path, model: Path) -> Row:
    """Two containers on one volume, whose processes have the same number."""
    expected = str(regard.load(model, engine="ctranslate2").translate(TEXTS, beam=1)) + "\n"
    wrong = 0
    for _ in range(TRIALS // 3):
        copy = Path(shutil.copytree(model, scratch / "copy"))
        shutil.rmtree(copy / CACHE, ignore_errors=True)
        command = [sys.executable, "-c", ALIKE, str(copy), *TEXTS]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running = [subprocess.Popen(command, text=True, env=os.environ, **pipes) for _ in range(PROCESSES)]
        for one in running:
            one.stdout.readline()  # type: ignore[union-attr]
        for one in running:
            one.stdin.write("\n")  # type: ignore[union-attr]
            one.stdin.flush()  # type: ignore[union-attr]
        said = [one.communicate()[0] for one in running]
        wrong += said != [expected] * PROCESSES or not usable(copy, use(regard.load(model, device="cpu")))
        shutil.rmtree(copy)
    what = f"first use by {PROCESSES} processes of the same number"
    return Row("X", what, TRIALS // 3, f"{wrong} went wrong", not wrong)
