"""What the contestants work on, made once: training batches by Regard's own loader, and sentences to translate."""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench import batches as files
from bench.contest import ROOT
from bench.sizes import BASE_VOCABULARY, BEGIN, END
from regard.api import read_pairs
from regard.config import read
from regard.text.batching.batch import make_pairs
from regard.training.tasks import open_job

MADE = ROOT / "bench" / ".data"
BESIDE = ROOT.parent / "shared" / "data" / "multi30k"
"""Where Multi30k is looked for unless another folder is named."""
BATCH_TOKENS = 4096
BASE_TOKENS = 2000


class Batches(NamedTuple):
    """A file of batches and what is in it."""

    path: Path
    about: str


def tiny(folder: Path, count: int) -> Batches:
    """Batches of Multi30k, or of the built-in corpus where that is not there, as `regard train` would make them."""
    there = (folder / "tok" / "train.en.gz").exists()
    name = "multi30k" if there else "builtin"
    data = [str(folder / "tok" / f"train.{side}.gz") for side in ("en", "de")] if there else ["builtin:en-fr"]
    valid = [str(folder / "tok" / f"val.{side}.gz") for side in ("en", "de")] if there else []
    text = {"vocabulary": 10_000}
    config = read({"model": {"name": "transformer"}, "text": text, "train": {"batch_tokens": BATCH_TOKENS}})
    MADE.mkdir(parents=True, exist_ok=True)
    job = open_job(data, valid, config, spool=MADE)
    job.prepare(MADE / name, config.train.seed, lambda what, done: None)
    loader = job.batches()
    made = [_plain(loader.read(loader.plan(0).numbers(n), epoch=0)) for n in range(min(count, loader.count(0)))]
    path = MADE / f"{name}-{count}.npz"
    files.save(path, made, job.tokenizer.size)
    about = "Multi30k English to German" if there else "built-in English to French"
    return Batches(path, f"{about}, {len(made)} batches, {job.tokenizer.size:,} subwords")


def base(count: int) -> Batches:
    """Batches of random words, as long as sentences of news are."""
    random = np.random.Generator(np.random.PCG64(1))
    made = []
    for _ in range(count):
        middle = int(random.integers(12, 45))
        rows = BASE_TOKENS // middle
        lengths = random.integers(middle - 2, middle + 3, (2, rows))
        sides = [[random.integers(END + 1, BASE_VOCABULARY, length) for length in side] for side in lengths]
        made.append(_plain(make_pairs(sides[0], sides[1], list(range(rows)))))
    path = MADE / f"base-{count}.npz"
    files.save(path, made, BASE_VOCABULARY)
    return Batches(path, f"random words, {count} batches of about {BASE_TOKENS:,} target words")


def test_set(folder: Path, count: int = 1000) -> tuple[list[str], list[str], str]:
    """Sentences to translate, their right translations, and what they are."""
    if (folder / "tok" / "test_2016_flickr.en.gz").exists():
        sides = [_lines(folder / "tok" / f"test_2016_flickr.{side}.gz")[:count] for side in ("en", "de")]
        return sides[0], sides[1], f"Multi30k test_2016_flickr, {len(sides[0]):,} sentences"
    pairs = read_pairs("builtin:en-fr/test")[:count]
    return [p.source for p in pairs], [p.target for p in pairs], f"built-in English to French, {len(pairs):,} sentences"


def _plain(pairs: object) -> files.Batch:
    batch = files.Batch(*(getattr(pairs, name).numpy() for name in _NAMES))
    assert (batch.target[:, 0] == BEGIN).all(), "every target begins"
    return batch


_NAMES = ("source_BS", "source_lengths_B", "target_BT", "target_lengths_B")


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def stored(texts: list[str]) -> Path:
    """The file from which every translating contestant reads them."""
    path = MADE / "texts.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(texts))
    return path
