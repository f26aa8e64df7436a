"""From text to a tokenizer and ids on disk, once, in bounded memory: what a training run does before its first step.

A preparation that is interrupted goes on where it stopped: the journal tells how far the text is safe on disk.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from regard.config import TextConfig
from regard.errors import DataError
from regard.system import storage
from regard.text.corpus import BuiltinCorpus, Corpus
from regard.text.pair import Pair
from regard.text.shards.cache import Journal, key_of, once
from regard.text.shards.held_out import Draw, HeldOut, KeysOf, both_sides, given, kept, lost, taken_up
from regard.text.shards.pair_shards import Block, Shards, ShardWriter, Written, stored
from regard.text.shards.reservoir import Reservoir
from regard.text.tokenizers.bulk import Encoded
from regard.text.tokenizers.encoding import AT_A_TIME, Encoder
from regard.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

SAVED_EVERY = 50 * AT_A_TIME
"""Pairs after which what was tokenised is made safe."""
Progress = Callable[[str, int], None]
T = TypeVar("T")


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

    Without `valid`, a slice of `train` is held out, and what has a source or target of it is left out.
    """

    def write(new: Path, journal: Journal) -> list[str]:
        apart = None
        if "learned" not in journal.done:
            learned, apart = _learn(train, valid, config, new, seed, progress, learn)
            journal.tell("learned", learned)
        learned = journal.done["learned"]
        apart = apart or set_apart(train, valid, learned["held_out"], both_sides)
        corpora = [train] if valid is None else [train, valid]
        return [*learned["notes"], *_tokenise(corpora, apart, learned["pairs"], config, new, progress, journal)]

    notes = once(folder, key_of(train, valid, config, seed), write)
    tokenizer = load_tokenizer(folder, config)
    return Prepared(tokenizer, Shards(folder / "train"), Shards(folder / "valid"), notes)


def _learn(
    train: Corpus,
    valid: Corpus | None,
    config: TextConfig,
    folder: Path,
    seed: int,
    progress: Progress,
    learn: Learn,
) -> tuple[dict[str, Any], HeldOut]:
    """Count the pairs, choose those to hold out and store the tokenizer; what there is to know of it all."""
    drawn, draw = Reservoir[Pair](max(1, config.learn_from // 2), random.Random(seed)), Draw(config, seed, both_sides)
    for count, (_, pair) in enumerate(train.pairs(), start=1):
        drawn.offer(pair)
        if valid is None:
            draw.offer(pair)
        if count % AT_A_TIME == 0:
            progress("reading", count)
    notes = [str(train.skipped)] if train.skipped.total else []
    if valid is None:
        apart, note = draw.chosen(train.name, partial(sides, train), partial(progress, "looking for copies"))
        notes.append(note)
    else:
        apart = set_apart(train, valid, [], both_sides)
    learn_into([side for pair in drawn.kept for side in pair], config, folder, progress, learn, notes)
    return {"pairs": drawn.offered, "held_out": sorted(apart.numbers), "notes": notes}, apart


def set_apart(train: Corpus, valid: Corpus | None, held_out: list[int], keys_of: KeysOf) -> HeldOut:
    """The pairs to validate on, held out of `train` before or given, to look for others like them."""
    if valid is None:
        return taken_up(partial(sides, train), held_out, keys_of)
    # The parts of a built-in corpus were made apart; a short answer to a sum may still occur in several.
    return HeldOut(keys_of) if isinstance(valid, BuiltinCorpus) else given(partial(sides, valid), keys_of)


def sides(corpus: Corpus) -> Iterator[Pair]:
    """The pairs without the numbers of their lines."""
    return (pair for _, pair in corpus.pairs())


@dataclass
class _Position:
    """How far tokenising has come, ready for JSON."""

    corpora: int = 0
    """So many are done."""
    pairs: int = 0
    """And so many of the one that follows."""
    too_long: int = 0
    alike: int = 0
    """Pairs of the first corpus whose source or target is also validated on."""
    notes: list[str] = field(default_factory=list)
    train: Written = field(default_factory=Written)
    valid: Written = field(default_factory=Written)

    @classmethod
    def read(cls, table: dict[str, Any]) -> "_Position":
        return cls(**{**table, "train": Written(**table["train"]), "valid": Written(**table["valid"])})


def _tokenise(
    corpora: list[Corpus],
    apart: HeldOut,
    pairs: int,
    config: TextConfig,
    folder: Path,
    progress: Progress,
    journal: Journal,
) -> list[str]:
    at = _Position.read(journal.done["tokenised"]) if "tokenised" in journal.done else _Position()
    tokenizer = load_tokenizer(folder, config)
    train = ShardWriter(folder / "train", tokenizer.size, at.train)
    valid = ShardWriter(folder / "valid", tokenizer.size, at.valid)

    with Encoder(tokenizer, folder, config, 2 * pairs) as encoder:
        for corpus in corpora[at.corpora :]:
            rows = skipped(corpus.pairs(), at.pairs, progress)
            for chunk, encoded in encoder.chunks(rows, lambda row: row[1]):
                fitting_N = encoded.lengths.reshape(-1, 2).max(1) <= config.longest
                for_valid_N, alike_N = np.full((2, len(chunk)), bool(at.corpora))
                if not at.corpora:
                    for_valid_N = np.array([at.pairs + n in apart.numbers for n in range(len(chunk))])
                    alike_N = ~for_valid_N & np.array([apart.has_like(pair) for _, pair in chunk])
                    at.alike += int(alike_N.sum())
                candidates_N = ~for_valid_N & ~(alike_N & bool(apart.numbers))
                train.add(_chosen(chunk, encoded, candidates_N & fitting_N, keep_text=config.sampling > 0))
                valid.add(_chosen(chunk, encoded, for_valid_N, keep_text=True))
                at.too_long += int((candidates_N & ~fitting_N).sum())
                at.pairs += len(chunk)
                progress("tokenising", at.pairs)
                if at.pairs % SAVED_EVERY == 0:
                    at.train, at.valid = train.save(), valid.save()
                    journal.tell("tokenised", asdict(at))
            if at.corpora and corpus.skipped.total:
                at.notes.append(f"{corpus.name}: {corpus.skipped}")
            at.corpora, at.pairs = at.corpora + 1, 0
    if not len(train):
        raise DataError(
            f"{corpora[0].name} leaves no pair to train on: all are longer than text.longest={config.longest} tokens."
        )
    train.close()
    valid.close()
    left_out = f"left out {at.too_long:,} pairs longer than {config.longest} tokens (text.longest)"
    alike = lost(at.alike) if apart.numbers else kept(at.alike, corpora[-1].name)
    return at.notes + [left_out] * bool(at.too_long) + [alike] * bool(at.alike)


def _chosen(
    chunk: list[tuple[int, Pair]], encoded: Encoded, chosen_N: npt.NDArray[np.bool_], *, keep_text: bool
) -> Block:
    """Some of the pairs, on their way to disk."""
    lengths_N2 = encoded.lengths.reshape(-1, 2)
    rows = [chunk[n] for n in np.flatnonzero(chosen_N)]
    return Block(
        np.array([line for line, _ in rows], np.int64),
        lengths_N2[chosen_N],
        encoded.ids[np.repeat(chosen_N, lengths_N2.sum(1))],
        [stored(pair) for _, pair in rows] if keep_text else [],
    )


def skipped(things: Iterator[T], count: int, progress: Progress) -> Iterator[T]:
    """What comes after so many of them."""
    for done in range(0, count, AT_A_TIME):
        for _ in islice(things, min(AT_A_TIME, count - done)):
            pass
        progress("finding the place again", done)
    return things


def learn_into(
    sentences: list[str], config: TextConfig, folder: Path, progress: Progress, learn: Learn, notes: list[str]
) -> Tokenizer:
    """The tokenizer, stored in `folder`."""
    progress("preparing the tokenizer", 0)
    tokenizer = learn(sentences)
    if tokenizer.size < config.vocabulary and config.tokenizer in ("bpe", "unigram"):
        notes.append(f"the text fills a vocabulary of {tokenizer.size:,}, not {config.vocabulary:,}")
    storage.write_file(folder / tokenizer.file_name, tokenizer.as_bytes())
    return tokenizer
