"""`python -m torture --part NAME`: one part of the torture, or all; one table, and exit code 1 if a law did not hold."""

import argparse
import importlib
import pkgutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from torture import parts
from torture.rows import Row, table

PARTS = sorted(module.name for module in pkgutil.iter_modules(parts.__path__))


def rows_of(part: str) -> Iterator[Row]:
    """What a part finds, told as it is found."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"torture-{part}-") as scratch:
        for row in importlib.import_module(f"torture.parts.{part}").run(Path(scratch)):
            verdict = "held" if row.passed else "DID NOT HOLD"
            told = f"{part}: {row.check} {verdict} in {row.tried:,}: {row.seen} ({time.monotonic() - began:.0f} s)"
            print(told, file=sys.stderr, flush=True)
            yield row


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--part", default="all", choices=["all", *PARTS], help="what to try")
    asked = parser.parse_args().part
    found = [(part, row) for part in (PARTS if asked == "all" else [asked]) for row in rows_of(part)]
    print(table(found))
    return 0 if all(row.passed for _, row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
