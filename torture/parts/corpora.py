"""Hostile corpora at their full size, each made ready by a process of its own: what is said of it, and its memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hostile_corpora import CLEAN, GROUPS, Hostile, line, verdict
from regard.errors import DataError
from torture.rows import Row

SECONDS = 300
KINDS = {"pairs": (".tsv", "a.tsv"), "text": (".txt", "a.txt"), "labels": (".label", "a.tsv")}
# Prints what was said, or the error, and the most memory that was held, in KB: its own, where getrusage counts that of
# the process that started it, too.
CHILD = """
import json, sys
from hostile_corpora import prepared
from pathlib import Path
from regard.errors import DataError
try:
    said = {"notes": prepared(sys.argv[1], sys.argv[3:], Path(sys.argv[2]))}
except DataError as error:
    said = {"refused": str(error)}
(memory,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({**said, "memory": int(memory)}))
"""


def run(scratch: Path) -> Iterator[Row]:
    clean = {
        kind: tried(Hostile("nothing", kind, {name: b"".join(line(n, ending) for n in range(CLEAN))}), scratch / kind)[
            1
        ]
        for kind, (ending, name) in KINDS.items()
    }
    for group, made in GROUPS.items():
        wrong, most, count = list[str](), 0.0, 0
        for count, hostile in enumerate(made(1), 1):
            found, memory = tried(hostile, scratch / f"{group} {count}")
            most = max(most, memory / clean[hostile.kind])
            if found or memory > 2 * clean[hostile.kind]:
                wrong.append(f"{hostile.what}: {found or f'{memory / clean[hostile.kind]:.1f} times the memory'}")
        told = f"{count - len(wrong)} as they must be, at most {most:.2f} times the memory of a clean one"
        yield Row("T18", f"hostile corpora: {group}", count, "; ".join([told, *wrong]), not wrong)


def tried(hostile: Hostile, folder: Path) -> tuple[str, int]:
    """What is wrong with what comes of it, and the memory it took."""
    folder.mkdir()
    for name, content in hostile.files.items():
        (folder / name).write_bytes(content)
    names = [str(folder / name) for name in hostile.files]
    command = [sys.executable, "-c", CHILD, hostile.kind, str(folder / "tokens"), *names]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    for name in hostile.files:
        (folder / name).unlink()
    if ended.returncode:
        return f"ended with {ended.returncode}: {ended.stderr.strip().splitlines()[-1:]}", 0
    said = json.loads(ended.stdout)
    return verdict(hostile, DataError(said["refused"]) if "refused" in said else said["notes"]), said["memory"]
