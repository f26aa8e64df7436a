"""`make fuzz`, or python -m fuzz [TARGET ...] [--seconds 600]: the fuzzers one after the other, and a table of what was seen.

A file that breaks the law is kept in fuzz/.findings; python -m fuzz TARGET --again FILE shows how. What reached new lines
is kept in fuzz/.corpus, and is where the next call begins.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SECONDS_A_FILE, MEGABYTES = 10, 2000


def main() -> int:
    """0 if nothing was found."""
    from fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="fuzz", description="Look for files that break what reads them.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"all, or of: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    parser.add_argument("--again", type=Path, metavar="FILE", help="read this file, and show what happens")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"there is no target {min(unknown)}; there are: {', '.join(TARGETS)}")
    if options.again:
        with tempfile.TemporaryDirectory() as scratch:
            at = Path(scratch) / "made"
            target = TARGETS[options.targets[0]]
            target.made(at)
            print(target.read(options.again.read_bytes(), at))
        return 0
    print(f"{'target':<24}{'files tried':>12}{'seconds':>9}{'found':>7}", flush=True)
    return int(sum(fuzzed(name, options.seconds) for name in options.targets or TARGETS) > 0)


def fuzzed(name: str, seconds: int) -> int:
    """Run one target in a process of its own; how many findings there are."""
    findings, corpus = HERE / ".findings" / name, HERE / ".corpus" / name
    for folder in (findings, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-timeout={SECONDS_A_FILE}", f"-rss_limit_mb={MEGABYTES}"]
    command = [sys.executable, "-W", "ignore", "-m", "fuzz.guided", name, str(findings), str(corpus), *limits]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(findings.with_suffix(".log"), "w+b") as log:
        ended = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment).returncode
        log.seek(0)
        told = log.read().decode(errors="replace")
    done = re.search(r"Done (\d+) runs in (\d+) second", told)
    runs, took = (int(done[1]), int(done[2])) if done else (0, 0)
    found = sum(1 for _ in findings.iterdir())
    note = "" if done else f"  ended with code {ended}: see {log.name}"
    print(f"{name:<24}{runs:>12,}{took:>9,}{found:>7}{note}", flush=True)
    return found + (done is None)


if __name__ == "__main__":
    sys.exit(main())
