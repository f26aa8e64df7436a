"""Training on millions of pairs: how long until the first step, and in how much memory. Runs bench/huge.py."""

import json
import subprocess
import sys

from bench.contest import ROOT
from bench.result import Options, Result

SCRIPT = ROOT / "bench" / "huge.py"
PAIRS = 10_000_000


def start(options: Options) -> Result:
    """`regard train` up to its first step, on pseudo-sentences written to a temporary folder."""
    command = [sys.executable, str(SCRIPT), "--pairs", str(PAIRS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    seconds = found.pop("seconds")
    rows = [[f"seconds: {stage}", f"{value:,.0f}"] for stage, value in seconds.items()]
    rows += [[name, f"{value:,.0f}"] for name, value in found.items()]
    about = "A table of pseudo-sentences; memory is the most that was resident until the first step was done."
    return Result(f"The first step on {PAIRS:,} pairs", "", about, table=[["", "took"], *rows])
