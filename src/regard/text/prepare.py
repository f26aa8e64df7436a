"""From text to a tokenizer and ids on disk, once, in bounded memory: what a training run does before its first step."""

import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from regard.config import TextConfig
from regard.errors import DataError
from regard.text.ahead import ahead
from regard.text.corpus import Corpus
from regard.text.documents import Documents
from regard.text.pair import Pair
from regard.text.shards import Shards, ShardWriter, Tokenised
from regard.text.stream import Stream, StreamWriter
from regard.text.tokenizer import Tokenizer, load_tokenizer

ENCODED_AT_A_TIME = 5000
THREADS = os.cpu_count() or 1
LINES_HELD_OUT = 10_000  # of running text, when there is no other to validate on; at most a tenth of it
Progress = Callable[[str, int], None]


Learn = Callable[[list[str]], Tokenizer]
"""Sentences -> the tokenizer to use; most often learned from them."""


@dataclass(frozen=True)
class Prepared:
    """Pairs made ready for training."""

    tokenizer: Tokenizer
    train: Shards
    valid: Shards
    notes: list[str]
    """What a person should know: what was left out and what was held out."""


@dataclass(frozen=True)
class PreparedText:
    """Running text made ready for training."""

    tokenizer: Tokenizer
    train: Stream
    valid: Stream
    notes: list[str]


def prepare(
    train: Corpus,
    valid: Corpus | None,
    config: TextConfig,
    folder: Path,
    seed: int,
    progress: Progress,
    learn: Learn,
) -> Prepared:
    """Learn the tokenizer and tokenise all pairs into `folder`, or take up what an earlier call left there.

    Without `valid`, a slice of `train` is held out.
    """
    key = key_of(train, valid, config, seed)
    notes = once(folder, key, lambda new: _write(train, valid, config, new, seed, progress, learn))
    tokenizer = load_tokenizer(folder, config)
    return Prepared(tokenizer, Shards(folder / "train"), Shards(folder / "valid"), notes)


def prepare_text(
    train: Documents,
    valid: Documents | None,
    config: TextConfig,
    folder: Path,
    seed: int,
    progress: Progress,
    learn: Learn,
) -> PreparedText:
    """The same for running text. Without `valid`, its last lines are held out."""
    key = key_of(train, valid, config, seed)
    notes = once(folder, key, lambda new: _write_text(train, valid, config, new, seed, progress, learn))
    tokenizer = load_tokenizer(folder, config)
    return PreparedText(tokenizer, Stream.open(folder / "train"), Stream.open(folder / "valid"), notes)


def once(folder: Path, key: dict[str, Any], write: Callable[[Path], list[str]]) -> list[str]:
    """Let `write` fill the folder, unless it is there; it appears under its name only when it is complete."""
    if not _is_complete(folder, key):
        unfinished = folder.with_name(folder.name + ".unfinished")
        for old in (unfinished, folder):
            shutil.rmtree(old, ignore_errors=True)
        unfinished.mkdir(parents=True)
        notes = write(unfinished)
        (unfinished / "prepared.json").write_text(json.dumps({"key": key, "notes": notes}))
        unfinished.rename(folder)
    stored: list[str] = json.loads((folder / "prepared.json").read_text())["notes"]
    return stored


def _write(
    train: Corpus,
    valid: Corpus | None,
    config: TextConfig,
    folder: Path,
    seed: int,
    progress: Progress,
    learn: Learn,
) -> list[str]:
    count, sentences = _draw(train, config.learn_from, seed, progress)
    notes = [str(train.skipped)] if train.skipped.total else []
    held_out: set[int] = set()
    if valid is None:
        held_out = hold_out(train, count, config, seed)
        notes.append(f"held out {len(held_out):,} of {count:,} pairs for validation, as no --valid was given")
    tokenizer = learn_into(sentences, config, folder, progress, learn, notes)
    del sentences
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


def learn_into(
    sentences: list[str], config: TextConfig, folder: Path, progress: Progress, learn: Learn, notes: list[str]
) -> Tokenizer:
    """The tokenizer, stored in `folder`."""
    progress("learning the tokenizer", 0)
    tokenizer = learn(sentences)
    if tokenizer.size < config.vocabulary and config.tokenizer in ("bpe", "unigram"):
        notes.append(f"the text fills a vocabulary of {tokenizer.size:,}, not {config.vocabulary:,}")
    (folder / tokenizer.file_name).write_bytes(tokenizer.as_bytes())
    return tokenizer


def _write_text(
    train: Documents,
    valid: Documents | None,
    config: TextConfig,
    folder: Path,
    seed: int,
    progress: Progress,
    learn: Learn,
) -> list[str]:
    chosen = random.Random(seed)
    drawn = Reservoir[str](config.learn_from, chosen)
    for count, line in enumerate(train.lines(), 1):
        drawn.offer(line.text)
        if count % ENCODED_AT_A_TIME == 0:
            progress("reading", count)
    notes = [str(train.skipped)] if train.skipped.total else []
    held_out = 0
    if valid is None:
        held_out = min(LINES_HELD_OUT, drawn.offered // 10)
        if not held_out:
            raise DataError(f"{train.name} has only {drawn.offered} lines, too few to hold some out. Give --valid.")
        notes.append(
            f"held out the last {held_out:,} of {drawn.offered:,} lines for validation, as no --valid was given"
        )
    tokenizer = learn_into(drawn.kept, config, folder, progress, learn, notes)
    names = [("train", train)] if valid is None else [("train", train), ("valid", valid)]
    writers = {name: StreamWriter(folder / name, tokenizer.size) for name in ("train", "valid")}
    for name, documents in names:
        first_held_out = drawn.offered - held_out if name == "train" else 0
        done = 0
        with encoded(documents.lines(), lambda line: (line.text,), tokenizer) as chunks:
            for chunk, ids_of_lines in chunks:
                for line, ids in zip(chunk, ids_of_lines, strict=True):
                    side = "train" if name == "train" and done < first_held_out else "valid"
                    writers[side].add(ids, size=len(line.text.encode()), closes=line.closes)
                    done += 1
                progress("tokenising", done)
    for writer in writers.values():
        writer.close()
    return notes


T = TypeVar("T")


class Reservoir(Generic[T]):
    """Some of many things, each as likely as every other, in one pass (Vitter 1985, algorithm R)."""

    def __init__(self, most: int, chosen: random.Random) -> None:
        self.kept: list[T] = []
        self.offered = 0
        self._most, self._random = most, chosen

    def offer(self, thing: T) -> None:
        """Perhaps keep it."""
        self.offered += 1
        if len(self.kept) < self._most:
            self.kept.append(thing)
        elif (place := self._random.randrange(self.offered)) < self._most:
            self.kept[place] = thing


def _draw(corpus: Corpus, most: int, seed: int, progress: Progress) -> tuple[int, list[str]]:
    """Count the pairs and draw sentences evenly from all of them."""
    drawn = Reservoir[Pair](max(1, most // 2), random.Random(seed))
    for count, (_, pair) in enumerate(corpus.pairs(), start=1):
        drawn.offer(pair)
        if count % ENCODED_AT_A_TIME == 0:
            progress("reading", count)
    return drawn.offered, [side for pair in drawn.kept for side in pair]


def hold_out(corpus: Corpus, count: int, config: TextConfig, seed: int) -> set[int]:
    """Numbers of the pairs to validate on, when there are no others."""
    size = min(config.held_out, count // 10)
    if not size:
        raise DataError(f"{corpus.name} has only {count} pairs, too few to hold some out for validation. Give --valid.")
    return set(random.Random(f"held out {seed}").sample(range(count), size))


def _tokenise(corpus: Corpus, tokenizer: Tokenizer, progress: Progress) -> Iterator[Tokenised]:
    done = 0
    with encoded(corpus.pairs(), lambda row: row[1], tokenizer) as chunks:
        for chunk, ids in chunks:
            for (line, pair), source, target in zip(chunk, ids[0::2], ids[1::2], strict=True):
                yield Tokenised(line, source, target, pair)
            done += len(chunk)
            progress("tokenising", done)


def encoded(
    things: Iterator[T], texts: Callable[[T], tuple[str, ...]], tokenizer: Tokenizer
) -> "closing[Generator[tuple[list[T], list[list[int]]], None, None]]":
    """Many things at a time, and the ids of all their texts: found while those before them are written to disk."""

    def chunks() -> Iterator[tuple[list[T], list[list[int]]]]:
        while chunk := list(itertools.islice(things, ENCODED_AT_A_TIME)):
            yield chunk, tokenizer.encode([text for thing in chunk for text in texts(thing)], threads=THREADS)

    return closing(ahead(chunks()))


def key_of(
    train: Corpus | Documents, valid: Corpus | Documents | None, config: TextConfig, seed: int
) -> dict[str, Any]:
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
