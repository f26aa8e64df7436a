"""One target under atheris, until its time is up. What breaks the law is kept, once for each place, and the search goes on.

python -m fuzz.guided TARGET FINDINGS CORPUS [LIBFUZZER OPTIONS]
"""

import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["regard", "tomllib", "csv"]):
    from fuzz.edits import edited
    from fuzz.targets import TARGETS, Target
    from regard.errors import RegardError

LONGEST = 1 << 16


def trial(target: Target, at: Path, findings: Path) -> Callable[[bytes], None]:
    """What atheris calls with each file it makes up."""

    def attempt(content: bytes) -> None:
        try:
            target.read(content, at)
        except RegardError:
            pass
        except Exception as error:
            last = [frame for frame in traceback.extract_tb(error.__traceback__) if "regard" in frame.filename][-1]
            kept = findings / f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"
            if not kept.exists():
                kept.write_bytes(content)

    return attempt


def mutated(content: bytes, longest: int, seed: int) -> bytes:
    """Half of the time as libFuzzer would, else with knowledge of the format."""
    random = Random(seed)
    if random.random() < 0.5:
        return bytes(atheris.Mutate(content, longest))
    for _ in range(random.randint(1, 3)):
        content = edited(content, random.getrandbits(16), random.getrandbits(20), random.getrandbits(12))
    return content[:longest]


def main() -> None:
    """Set up, and hand over to libFuzzer, which ends the process."""
    name, findings, corpus, *options = sys.argv[1:]
    target = TARGETS[name]
    for number, seed in enumerate(target.seeds()):
        (Path(corpus) / f"seed-{number}").write_bytes(seed)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        at = Path(scratch) / "made"
        target.made(at)
        arguments = [sys.argv[0], corpus, f"-artifact_prefix={findings}/", f"-max_len={LONGEST}", *options]
        atheris.Setup(arguments, trial(target, at, Path(findings)), custom_mutator=mutated)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
