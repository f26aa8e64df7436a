"""Absurd values of every option, as real processes: one line, an exit code, and never more CPU seconds than a limit."""

import os
import random
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import absurd
from torture.rows import Row

DRAWN, SECONDS = 300, 60
PATIENCE = 20
"""Seconds after which a command that has begun to work, as it should, is interrupted."""


def run(scratch: Path) -> Iterator[Row]:
    right = absurd.base(scratch)
    every = [case for name in right for case in absurd.cases(name, right[name])]
    seen: Counter[str] = Counter()
    for case in random.Random(0).sample(every, DRAWN):
        outcome = tried(case, scratch)
        seen[outcome] += 1
        if outcome == "wrong":
            print(f"options: {[part[:80] for part in case]}", file=sys.stderr)
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(seen.items()))
    what = f"an option or argument with an absurd value, of {len(every):,} that the parsers tell"
    yield Row("S12", what, DRAWN, told, not seen["wrong"])


def tried(case: list[str], at: Path) -> str:
    """What becomes of one command in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", *map(os.fsencode, case)],
        cwd=at,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
    )
    try:
        said = process.communicate(timeout=PATIENCE)[1]
        interrupted = False
    except subprocess.TimeoutExpired:
        process.terminate()
        said, interrupted = process.communicate()[1], True
    lines = [line for line in said.decode(errors="replace").splitlines() if line.startswith("regard: ")]
    if b"Traceback" in said or (
        process.returncode < 0 and not interrupted
    ):  # Python itself may still have been starting
        return "wrong"
    if interrupted:
        return "worked until they were interrupted"
    if process.returncode == 0:
        return "possible"
    return "refused in one line" if len(lines) == 1 else "wrong"
