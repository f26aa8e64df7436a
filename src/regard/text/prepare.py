"""From a corpus to a tokenizer and shards, once, in bounded memory; what a training run does before its first step."""

import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.config import TextConfig
from regard.errors import DataError
from regard.text.corpus import Corpus
from regard.text.pair import Pair
from regard.text.shards import Shards, ShardWriter, Tokenised
from regard.text.tokenizer import Tokenizer, learn_tokenizer, load_tokenizer

ENCODED_AT_A_TIME = 5000
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Prepared:
    """Text made ready for training."""

    tokenizer: Tokenizer
    train: Shards
    valid: Shards
    notes: list[str]
    """What a person should know: what was left out and what was held out."""


def prepare(
    train: Corpus, valid: Corpus | None, config: TextConfig, folder: Path, seed: int, progress: Progress
) -> Prepared:
    """Learn the tokenizer and tokenise everything into `folder`, or take up what an earlier call left there.

    The folder appears under its name only when it is complete. Without `valid`, a slice of `train` is held out.
    """
    key = _key(train, valid, config, seed)
    if not _is_complete(folder, key):
        unfinished = folder.with_name(folder.name + ".unfinished")
        for old in (unfinished, folder):
            shutil.rmtree(old, ignore_errors=True)
        unfinished.mkdir(parents=True)
        notes = _write(train, valid, config, unfinished, seed, progress)
        (unfinished / "prepared.json").write_text(json.dumps({"key": key, "notes": notes}))
        unfinished.rename(folder)
    notes = json.loads((folder / "prepared.json").read_text())["notes"]
    tokenizer = load_tokenizer(folder, config)
    return Prepared(tokenizer, Shards(folder / "train"), Shards(folder / "valid"), notes)


def _write(
    train: Corpus, valid: Corpus | None, config: TextConfig, folder: Path, seed: int, progress: Progress
) -> list[str]:
    count, sentences = _draw(train, config.learn_from, seed, progress)
    notes = [str(train.skipped)] if train.skipped.total else []
    held_out: set[int] = set()
    if valid is None:
        held_out = _hold_out(train, count, config, seed)
        notes.append(f"held out {len(held_out):,} of {count:,} pairs for validation, as no --valid was given")
    progress("learning the tokenizer", 0)
    tokenizer = learn_tokenizer(sentences, config)
    del sentences
    if tokenizer.size < config.vocabulary and config.tokenizer in ("bpe", "unigram"):
        notes.append(f"the text fills a vocabulary of {tokenizer.size:,}, not {config.vocabulary:,}")
    (folder / tokenizer.file_name).write_bytes(tokenizer.as_bytes())
    writers = {
        "train": ShardWriter(folder / "train", tokenizer.size),
        "valid": ShardWriter(folder / "valid", tokenizer.size),
    }
    too_long = 0
    keep = {"train": config.sampling > 0, "valid": True}
    corpora = [("train", train)] if valid is None else [("train", train), ("valid", valid)]
    for name, corpus in corpora:
        for number, pair in enumerate(_tokenise(corpus, tokenizer, progress)):
            side = "valid" if name == "valid" or number in held_out else "train"
            if side == "train" and max(len(pair.source), len(pair.target)) > config.longest:
                too_long += 1
                continue
            writers[side].add(pair if keep[side] else pair._replace(text=None))
        if name == "valid" and corpus.skipped.total:
            notes.append(f"{corpus.name}: {corpus.skipped}")
    for writer in writers.values():
        writer.close()
    if too_long:
        notes.append(f"left out {too_long:,} pairs longer than {config.longest} tokens (text.longest)")
    if not len(Shards(folder / "train")):
        raise DataError(
            f"{train.name} leaves no pair to train on: all are longer than text.longest={config.longest} tokens."
        )
    return notes


def _draw(corpus: Corpus, most: int, seed: int, progress: Progress) -> tuple[int, list[str]]:
    """Count the pairs and draw sentences evenly from all of them (reservoir sampling: Vitter 1985, algorithm R)."""
    chosen = random.Random(seed)
    drawn: list[Pair] = []
    most_pairs = max(1, most // 2)
    count = 0
    for count, (_, pair) in enumerate(corpus.pairs(), start=1):
        if len(drawn) < most_pairs:
            drawn.append(pair)
        elif (place := chosen.randrange(count)) < most_pairs:
            drawn[place] = pair
        if count % ENCODED_AT_A_TIME == 0:
            progress("reading", count)
    return count, [side for pair in drawn for side in pair]


def _hold_out(corpus: Corpus, count: int, config: TextConfig, seed: int) -> set[int]:
    size = min(config.held_out, count // 10)
    if not size:
        raise DataError(f"{corpus.name} has only {count} pairs, too few to hold some out for validation. Give --valid.")
    return set(random.Random(f"held out {seed}").sample(range(count), size))


def _tokenise(corpus: Corpus, tokenizer: Tokenizer, progress: Progress) -> Iterator[Tokenised]:
    done = 0
    pairs = corpus.pairs()
    while chunk := list(itertools.islice(pairs, ENCODED_AT_A_TIME)):
        sources = tokenizer.encode([pair.source for _, pair in chunk])
        targets = tokenizer.encode([pair.target for _, pair in chunk])
        for (line, pair), source, target in zip(chunk, sources, targets, strict=True):
            yield Tokenised(line, source, target, pair)
        done += len(chunk)
        progress("tokenising", done)


def _key(train: Corpus, valid: Corpus | None, config: TextConfig, seed: int) -> dict[str, Any]:
    """What the prepared text depends on."""
    return {
        "train": train.fingerprint(),
        "valid": valid.fingerprint() if valid else None,
        "text": asdict(config),
        "seed": seed,
        "format": 1,
    }


def _is_complete(folder: Path, key: dict[str, Any]) -> bool:
    try:
        return bool(json.loads((folder / "prepared.json").read_text())["key"] == key)
    except (OSError, ValueError, KeyError, TypeError):
        return False
