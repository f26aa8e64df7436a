"""What every contestant's process does: get ready, say so, then work when told to and sleep otherwise.

It reads one JSON object a line from standard input, what to do, and answers each with one on standard output. Only the
standard library is used here, as this runs in every peer's environment.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]


def serve(prepare: Callable[[dict[str, Any]], Callable[[dict[str, Any]], Answer]]) -> None:
    """Prepare from the settings in argv[1], then answer line by line until standard input ends."""
    # A peer may print; only answers go to whoever is listening.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: Answer) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    work = prepare(json.loads(sys.argv[1]))
    say({"ready": True})
    for line in sys.stdin:
        try:
            say(work(json.loads(line)))
        except Exception as error:  # whoever gave the order decides what follows
            say({"error": f"{type(error).__name__}: {error}"})


def timed_steps(step: Callable[[int], int], batches: int) -> Answer:
    """Take each batch once, in order; `step` trains on the batch of this number and returns its target tokens."""
    began = time.perf_counter()
    tokens = sum(step(number) for number in range(batches))
    return {"amount": tokens, "seconds": time.perf_counter() - began}


def texts(settings: dict[str, Any]) -> list[str]:
    """The sentences to translate, from the file that the settings name."""
    found: list[str] = json.loads(Path(settings["texts"]).read_text())
    return found
