"""Words to guess: batches of texts in which some words are hidden (Devlin et al. 2019, section 3.1 and appendix A).

Every choice is made by a generator that follows from (seed, epoch) for the rows and from (seed, epoch, row) for
the hidden words: each epoch hides other words, and a run that is taken up again goes on exactly as it would have.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.errors import ConfigError, DataError
from regard.text.batching.batch import Rows as Batch
from regard.text.batching.loader import Plan, plan
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.batching.sentence_pairs import (
    Marks,
    Rows,
    find_sentences,
    marks_of,
    paired_rows,
    single_rows,
    word_starts,
)
from regard.text.tokenizers.tokenizer import BEGIN, END, MASK, PAD, Tokenizer

Ids = npt.NDArray[np.int64]

# Of the words to guess: hidden behind the mask, and up to here hidden or replaced. The rest stay as they are.
_MASKED, _REPLACED = 0.8, 0.9


class Hidden(NamedTuple):
    """A row of ids with some of them hidden."""

    ids: Ids
    places: Ids
    """Where words are to be guessed, in order."""
    words: Ids
    """What stood there."""


def hide(
    ids: Ids, share: float, vocabulary: int, random: np.random.Generator, *, whole_words: Marks | None = None
) -> Hidden:
    """Choose `share` of a row's words, at least one: 80% become the mask, 10% any word, 10% stay as they are.

    Special ids are never chosen. With `whole_words`, a word's pieces are chosen together.
    """
    candidates = np.flatnonzero(ids > MASK)
    wanted = max(1, round(share * len(candidates)))
    if whole_words is None:
        places = np.sort(random.permutation(candidates)[:wanted])
    else:
        places = _whole_words(ids, candidates, whole_words, wanted, random)
    hidden, fate = ids.copy(), random.random(len(places))
    hidden[places[fate < _MASKED]] = MASK
    replaced = places[(fate >= _MASKED) & (fate < _REPLACED)]
    hidden[replaced] = random.integers(MASK + 1, vocabulary, len(replaced))
    return Hidden(hidden, places, ids[places])


def _whole_words(ids: Ids, candidates: Ids, marks: Marks, wanted: int, random: np.random.Generator) -> Ids:
    starts = word_starts(ids, marks)
    starts[1:] |= ids[:-1] <= MASK
    # Numbers of the words, counted over the whole row: each candidate knows to which one it belongs.
    word = np.cumsum(starts)[candidates]
    names, sizes = np.unique(word, return_counts=True)
    chosen: list[int] = []
    count = 0
    for n in random.permutation(len(names)):
        # A long word does not fit at the end; a shorter one may.
        if not chosen or count + sizes[n] <= wanted:
            chosen.append(int(names[n]))
            count += int(sizes[n])
        if count >= wanted:
            break
    return candidates[np.isin(word, chosen)]


@dataclass(frozen=True)
class Masked(Batch):
    """A batch: rows of BEGIN text END, or BEGIN text END text END, with some words hidden.

    `numbers` tell where in the corpus each row begins, in tokens.
    """

    segments_BT: Tensor
    """1 for the second text and its END, else 0."""
    guessed_N: Tensor
    """Where words are to be guessed: places in the batch as one row, so that hidden_BTW.flatten(0, 1)[guessed_N]."""
    words_N: Tensor
    """What stood there."""
    follows_B: Tensor
    """1 if the second text follows the first, else 0; 1 everywhere if rows have one text."""

    @property
    def tokens(self) -> int:
        """Words to guess."""
        return len(self.words_N)

    def emptied(self) -> Self:
        """The same rows, no word of which is to be guessed."""
        return replace(self, guessed_N=self.guessed_N[:0], words_N=self.words_N[:0], numbers=[])


class MaskedLoader:
    """Batches of masked rows, cut anew from running text in each epoch."""

    def __init__(
        self,
        ids: npt.NDArray[Any],
        tokenizer: Tokenizer,
        *,
        longest: int,
        batch_tokens: int,
        seed: int,
        share: float = 0.15,
        whole_words: bool = False,
        next_sentence: bool = True,
        our_share: Share = WHOLE,
    ) -> None:
        """`ids` are documents, each opened by BEGIN and closed by END; no row is longer than `longest`."""
        if tokenizer.mask is None:
            raise DataError("This tokenizer has no <mask>, so no word can be hidden. Learn another, in a new folder.")
        specials = 3 if next_sentence else 2
        if longest < specials + 2:
            raise ConfigError(f"text.longest {longest} leaves no room for text. Set it to {specials + 2} or more.")
        self.ids, self.vocabulary = ids, tokenizer.size
        self.room, self.batch_tokens, self.seed, self.share = longest - specials, batch_tokens, seed, share
        self.next_sentence, self.our_share = next_sentence, our_share
        self._marks = marks_of(tokenizer)
        self._whole_words = self._marks if whole_words else None
        self._sentences = find_sentences(ids, self._marks)
        if not len(self._sentences.first):
            raise DataError("The text has no words to learn from. Give more of it.")
        self._planned: tuple[int, Rows, Plan] | None = None

    def batches(self, epoch: int, first: int = 0) -> Iterator[Masked]:
        """An epoch's batches from number `first` on."""
        rows, planned = self._plan(epoch)
        for batch in range(first, len(planned)):
            numbers = planned.numbers(batch)
            ours = numbers[self.our_share.dealt(len(numbers), turn=batch)]
            yield self._read(rows, ours, epoch) if len(ours) else self._read(rows, numbers[:1], epoch).emptied()

    def count(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return len(self._plan(epoch)[1])

    def padding_share(self, epoch: int) -> float:
        """What share of all places an epoch's batches waste."""
        rows, planned = self._plan(epoch)
        lengths = self._lengths(rows)
        parts = [lengths[planned.numbers(batch)] for batch in range(len(planned))]
        return 1 - float(lengths.sum()) / sum(len(part) * int(part.max()) for part in parts)

    def places(self, numbers: list[int]) -> str:
        """Where in the text these rows begin, for a message."""
        shown = ", ".join(f"{number:,}" for number in numbers[:8])
        return f"the rows from tokens {shown}{' and others' if len(numbers) > 8 else ''} of the training text on"

    def _plan(self, epoch: int) -> tuple[Rows, Plan]:
        if self._planned is None or self._planned[0] != epoch:
            cut = paired_rows if self.next_sentence else single_rows
            rows = cut(self._sentences, self.room, _generator(self.seed, epoch, 0, 2))
            lengths = self._lengths(rows) - 1  # `plan` counts an END of its own
            self._planned = epoch, rows, plan(lengths, lengths, self.batch_tokens, self.seed, epoch)
        return self._planned[1], self._planned[2]

    def _lengths(self, rows: Rows) -> Ids:
        specials = 3 if self.next_sentence else 2
        lengths: Ids = np.diff(rows.first_R2)[:, 0] + np.diff(rows.second_R2)[:, 0] + specials
        return lengths

    def _read(self, rows: Rows, numbers: Ids, epoch: int) -> Masked:
        lengths = self._lengths(rows)[numbers]
        ids_BT = np.full((len(numbers), int(lengths.max())), PAD, dtype=np.int64)
        segments_BT = np.zeros_like(ids_BT)
        places, words = [], []
        for row, number in enumerate(numbers):
            whole, second = self._row(rows, int(number))
            random = _generator(self.seed, epoch, int(number), 1)
            hidden = hide(whole, self.share, self.vocabulary, random, whole_words=self._whole_words)
            ids_BT[row, : len(whole)] = hidden.ids
            segments_BT[row, second : len(whole)] = 1
            places.append(hidden.places + row * ids_BT.shape[1])
            words.append(hidden.words)
        return Masked(
            torch.from_numpy(ids_BT),
            torch.from_numpy(lengths),
            rows.first_R2[numbers, 0].tolist(),
            segments_BT=torch.from_numpy(segments_BT),
            guessed_N=torch.from_numpy(np.concatenate(places)),
            words_N=torch.from_numpy(np.concatenate(words)),
            follows_B=torch.from_numpy(rows.follows_R[numbers]),
        )

    def _row(self, rows: Rows, number: int) -> tuple[Ids, int]:
        """One row's ids, nothing hidden, and where its second text begins."""
        first, second = (self.ids[slice(*texts[number])].tolist() for texts in (rows.first_R2, rows.second_R2))
        ids = [BEGIN, *first, END, *second, END] if self.next_sentence else [BEGIN, *first, END]
        return np.array(ids, dtype=np.int64), len(first) + 2


def _generator(*choices: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(choices))
