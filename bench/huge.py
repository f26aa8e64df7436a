"""What `regard train` does before its first step with a corpus of millions of pairs: its stages, and the memory.

    python bench/huge.py --pairs 1000000

Writes a table of pseudo-sentences, the same ones each time, into a temporary folder; then trains on it for one step.
One JSON line: seconds of each stage, and the largest amount of memory held until the first step was done.
"""

import argparse
import itertools
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from regard.config import read
from regard.training.loop import Display
from regard.training.run import train

WORDS, AT_A_TIME = 50_000, 100_000
SYLLABLES = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "r", "s")]


def lexicon(random: np.random.Generator, ending: str) -> list[str]:
    """Words of one to four syllables, the frequent ones short."""
    lengths = np.minimum(1 + np.arange(WORDS) // (WORDS // 4), 4)
    return ["".join(random.choice(SYLLABLES, n)) + ending for n in lengths]


def sentences(random: np.random.Generator, words: list[str], lengths: list[int]) -> Iterator[str]:
    """Of these lengths; few words are frequent and most are rare."""
    numbers = iter(np.minimum(random.zipf(1.15, sum(lengths)), WORDS).tolist())
    return (" ".join([words[number - 1] for number in itertools.islice(numbers, length)]) for length in lengths)


def write_table(path: Path, pairs: int) -> None:
    """So many pairs, of 12 words on average."""
    random = np.random.default_rng(1)
    sides = lexicon(random, ""), lexicon(random, "ö")
    with path.open("w", encoding="utf-8") as file:
        for done in range(0, pairs, AT_A_TIME):
            lengths = np.clip(random.lognormal(2.4, 0.4, min(AT_A_TIME, pairs - done)), 2, 60).astype(int).tolist()
            rows = zip(*(sentences(random, words, lengths) for words in sides), strict=True)
            file.writelines(f"{source}\t{target}\n" for source, target in rows)


class Stopwatch(Display):
    """Notes when each stage begins, by the first word of what the run says."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {"fingerprint": time.perf_counter()}
        self.memory = 0

    def note(self, text: str) -> None:
        stage = text.split(":")[0].split(",")[0]
        self.began.setdefault("planning" if text.startswith(("held out", "left out")) else stage, time.perf_counter())

    def stop(self) -> bool:
        """Asked during preparation, and before and after each step."""
        self.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return False

    def seconds(self) -> dict[str, float]:
        """Of each stage that began, until the next one did."""
        return {
            stage: round(end - start, 2)
            for (stage, start), (_, end) in itertools.pairwise([*self.began.items(), ("end", time.perf_counter())])
        }


def main() -> None:
    """Write the table, train one step, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--table", type=Path, help="use this table again if it is there, else write it and keep it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = chosen.table or Path(folder) / "huge.tsv"
        if not table.exists():
            write_table(table, chosen.pairs)
        config = read({"text": {"vocabulary": 10_000}, "train": {"steps": 1, "validate_sentences": 1}})
        watch = Stopwatch()
        train([str(table)], Path(folder) / "model", config, display=watch, stop=watch.stop)
        print(json.dumps({"pairs": chosen.pairs, "bytes": table.stat().st_size, "seconds": watch.seconds(),
                          "megabytes": watch.memory // 1024}))  # fmt: skip


if __name__ == "__main__":
    main()
