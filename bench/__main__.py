"""`python -m bench --part NAME`: measures one part, or all; keeps what was found and writes it down."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from bench import inputs, report
from bench.parts import cold, growth, huge, machine, plain, processes, student, training, translation
from bench.result import Options, Result

PARTS: dict[str, Callable[[Options], Result]] = {
    "training-tiny": training.tiny,
    "training-base": training.base,
    "machine-tiny": machine.tiny,
    "machine-base": machine.base,
    "machine-peak": machine.peak,
    "translation": translation.translate,
    "cold": cold.start,
    "growth": growth.grow,
    "recurrent-conv": plain.compare,
    "processes": processes.compare,
    "student": student.compare,
    "huge": huge.start,
}
ONLY_IF_NAMED = {"huge", "student"}
"""The one takes long, and gigabytes of disk; the other needs two trained models."""


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--part", default="all", choices=["all", *PARTS], help="what to measure")
    parser.add_argument(
        "--rounds", type=int, default=5, help="turns of every contestant; the best and the median count"
    )
    parser.add_argument("--seconds", type=float, default=150, help="of a part, after which no new round begins")
    parser.add_argument("--data", type=Path, default=inputs.BESIDE, metavar="DIR", help="the folder of Multi30k")
    parser.add_argument("--model", type=Path, metavar="DIR", help="a trained model folder to translate with")
    parser.add_argument("--student", type=Path, metavar="DIR", help="the model folder that is compared with --model")
    asked = parser.parse_args()
    options = Options(asked.data, asked.rounds, asked.seconds, asked.model, asked.student)
    asked_for = [name for name in PARTS if name not in ONLY_IF_NAMED] if asked.part == "all" else [asked.part]
    for name in asked_for:
        print(f"measuring {name}", file=sys.stderr)
        result = PARTS[name](options)
        report.show(result)
        report.keep(name, result)
        report.write(PARTS)


if __name__ == "__main__":
    main()
