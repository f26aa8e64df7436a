"""From the command to its end: what a person waits for who asks for one thing."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.contest import ContestError, race
from bench.parts.translation import trained
from bench.result import Options, Result

TORCH = "python -c 'import torch'"
SENTENCE = "a man in a red shirt is sitting on a bench ."


class Command:
    """A command that is run anew at each turn."""

    def __init__(self, name: str, *arguments: str) -> None:
        self.name = name
        self._command = [sys.executable, *arguments]

    def go(self, **order: Any) -> dict[str, Any]:
        """Run it; the amount is one."""
        began = time.perf_counter()
        done = subprocess.run(self._command, capture_output=True, text=True)
        if done.returncode:
            raise ContestError((done.stderr.strip().splitlines() or ["it failed"])[-1])
        return {"amount": 1, "seconds": time.perf_counter() - began}


def start(options: Options) -> Result:
    """Every command once in each round."""
    folder = trained(options)
    commands = [
        Command(TORCH, "-c", "import torch"),
        Command("python -c 'import regard'", "-c", "import regard"),
        Command("regard --help", "-m", "regard", "--help"),
        Command("regard translate", *_translate(folder)),
        Command("regard translate --engine torch", *_translate(folder), "--engine", "torch"),
    ]
    result = Result(
        "Starting cold",
        "times a second",
        "Each in a new process, its files in the system's cache.",
        TORCH,
        comparison="time / import torch",
    )
    able = []
    for command in commands:
        try:
            command.go()
            able.append(command)
        except ContestError as error:
            result.failed[command.name] = str(error)
    result.lines = race(able, options.rounds + 2, options.seconds)
    result.notes = {line.name: f"{1 / line.best:.2f} s, median {1 / line.median:.2f} s" for line in result.lines}
    return result


def _translate(folder: Path) -> list[str]:
    return ["-m", "regard", "translate", str(folder), SENTENCE]
