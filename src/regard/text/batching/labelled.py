"""Labelled text: made ready on disk, and batches of it. A label is the second side of a pair, so files are read alike."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.config import TextConfig
from regard.errors import DataError
from regard.system import storage
from regard.text.batching.batch import Rows
from regard.text.batching.loader import Plan, ShardLoader, plan
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.corpus import Corpus
from regard.text.formats import Fault, Reason
from regard.text.headings import labels_heading
from regard.text.pair import Pair
from regard.text.shards.cache import key_of, once
from regard.text.shards.held_out import Draw, HeldOut, given, kept, lost, text_alone
from regard.text.shards.pair_shards import Shards, ShardWriter, Tokenised, gathered
from regard.text.shards.prepare_pairs import Learn, Progress, learn_into
from regard.text.shards.reservoir import Reservoir
from regard.text.tokenizers.encoding import Encoder
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, Tokenizer, load_tokenizer

MOST_LABELS = 1000


@dataclass(frozen=True)
class PreparedLabels:
    """Labelled text made ready for training; each target is the number of its label."""

    tokenizer: Tokenizer
    labels: list[str]
    train: Shards
    valid: Shards
    notes: list[str]


def labelled_texts(corpus: Corpus) -> Iterator[tuple[int, Pair]]:
    """The corpus's pairs of text and label, without the heading that a table may begin with."""
    return _without_heading(corpus, corpus.pairs())


def all_labelled_texts(corpus: Corpus) -> Iterator[tuple[int, Pair]]:
    """Every text, though it or its label be empty, without the heading: for a score, which is of all of them."""
    return _without_heading(corpus, corpus.all_pairs())


def _without_heading(corpus: Corpus, pairs: Iterator[tuple[int, Pair]]) -> Iterator[tuple[int, Pair]]:
    headed = False
    for line, pair in pairs:
        if line == 1 and labels_heading(pair):
            headed = True
        else:
            yield line, pair
    if headed:
        corpus.skipped.add(Fault(Reason.HEADING, corpus.place(1)))


def prepare_labels(
    train: Corpus, valid: Corpus | None, config: TextConfig, folder: Path, seed: int, progress: Progress, learn: Learn
) -> PreparedLabels:
    """Learn the tokenizer from the texts and number the labels, into `folder`, or take up what is there."""
    key = key_of(train, valid, config, seed)
    notes = once(folder, key, lambda new, _: _write(train, valid, config, new, seed, progress, learn))
    labels = json.loads((folder / "labels.json").read_text())
    tokenizer = load_tokenizer(folder, config)
    return PreparedLabels(tokenizer, labels, Shards(folder / "train"), Shards(folder / "valid"), notes)


def _write(
    train: Corpus, valid: Corpus | None, config: TextConfig, folder: Path, seed: int, progress: Progress, learn: Learn
) -> list[str]:
    drawn, found = Reservoir[str](config.learn_from, random.Random(seed)), set[str]()
    draw = Draw(config, seed, text_alone)
    for pair in _pairs(train):
        drawn.offer(pair.source)
        draw.offer(pair)
        found.add(pair.target)
        if len(found) > MOST_LABELS:
            raise DataError(f"{train.name} has more than {MOST_LABELS:,} labels. Is its second column the label?")
    labels = sorted(found)
    if len(labels) < 2:
        raise DataError(f"{train.name} has no two different labels, only {labels}. Name the columns: TEXT,LABEL.")
    notes = [str(train.skipped)] if train.skipped.total else []
    if valid is None:
        apart, note = draw.chosen(train.name, partial(_pairs, train), partial(progress, "looking for copies"))
        notes.append(note)
    else:
        apart = given(partial(_pairs, valid), text_alone)
    tokenizer = learn_into(drawn.kept, config, folder, progress, learn, notes)
    storage.write_file(folder / "labels.json", json.dumps(labels, ensure_ascii=False).encode())
    writers = {side: ShardWriter(folder / side, tokenizer.size) for side in ("train", "valid")}
    with Encoder(tokenizer, folder, config, drawn.offered) as encoder:
        alike = _tokenise(train, valid, apart, labels, encoder, writers, progress)
    if alike:
        notes.append(lost(alike, "text") if valid is None else kept(alike, valid.name, "text"))
    return notes


def _pairs(corpus: Corpus) -> Iterator[Pair]:
    return (pair for _, pair in labelled_texts(corpus))


def _tokenise(
    train: Corpus,
    valid: Corpus | None,
    apart: HeldOut,
    labels: list[str],
    encoder: Encoder,
    writers: dict[str, ShardWriter],
    progress: Progress,
) -> int:
    """Write the shards; how many texts to train on are also among those to validate on."""
    numbers, alike = {label: number for number, label in enumerate(labels)}, 0
    for name, corpus in [("train", train)] + ([("valid", valid)] if valid else []):
        done = 0
        for chunk, encoded in encoder.chunks(labelled_texts(corpus), lambda row: (row[1].source,)):
            rows: dict[str, list[Tokenised]] = {side: [] for side in writers}
            for (line, pair), ids in zip(chunk, encoded.lists(), strict=True):
                if pair.target not in numbers:
                    place = corpus.place(line)
                    raise DataError(f"{place} has the label {pair.target!r}, which training never shows.")
                side = "valid" if name == "valid" or done in apart.numbers else "train"
                done += 1
                if side == "train" and apart.has_like(pair):
                    alike += 1
                    if apart.numbers:
                        continue
                rows[side].append(Tokenised(line, ids, [numbers[pair.target]], pair if side == "valid" else None))
            for side, writer in writers.items():
                writer.add(gathered(rows[side]))
            progress("tokenising", done)
    for writer in writers.values():
        writer.close()
    return alike


UNLABELLED = -100
"""In the place of a label that does not count; torch's cross-entropy passes over it."""


@dataclass(frozen=True)
class Labelled(Rows):
    """A batch: texts, each opened by BEGIN and closed by END, and the numbers of their labels."""

    labels_B: Tensor

    @property
    def tokens(self) -> int:
        """Labels to predict."""
        return len(self.numbers)

    def emptied(self) -> Self:
        """The same texts, whose labels do not count."""
        return replace(self, labels_B=torch.full_like(self.labels_B, UNLABELLED), numbers=[])


class LabelledLoader(ShardLoader[Labelled]):
    """Batches of labelled texts. A text longer than `longest` tokens is cut off there."""

    def __init__(self, shards: Shards, longest: int, batch_tokens: int, seed: int, share: Share = WHOLE) -> None:
        super().__init__(shards, batch_tokens, seed, share)
        self._lengths = np.minimum(shards.source_lengths.astype(np.int32), longest - 2) + 2

    def lengths(self, epoch: int) -> list[npt.NDArray[Any]]:
        return [self._lengths]

    def read(self, numbers: npt.NDArray[np.int64], epoch: int) -> Labelled:
        lengths = self._lengths[numbers].astype(np.int64)
        ids = np.full((len(numbers), int(lengths.max())), PAD, dtype=np.int64)
        labels = np.empty(len(numbers), dtype=np.int64)
        for row, number in enumerate(numbers):
            text, label = self.shards.ids(int(number))
            ids[row, 0], ids[row, lengths[row] - 1], labels[row] = BEGIN, END, label[0]
            ids[row, 1 : lengths[row] - 1] = text[: lengths[row] - 2]
        ids_BT, lengths_B, labels_B = (torch.from_numpy(part) for part in (ids, lengths, labels))
        return Labelled(ids_BT, lengths_B, numbers.tolist(), labels_B=labels_B)

    def _plan(self, epoch: int) -> Plan:
        lengths = self._lengths - 1  # `plan` counts an END of its own
        return plan(lengths, lengths, self.batch_tokens, self.seed, epoch)
