"""Sentences of running text, and the rows of one or two texts that BERT reads (Devlin et al. 2019, section A.2).

A "sentence" is any stretch of text that ends with a full stop or a line; rows are as many of them as fit. All of it
is places in one long row of ids, so that a text larger than memory costs only its sentences' ends.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.errors import DataError
from regard.text.tokenizers.tokenizer import BEGIN, BREAK, END, SPACE, Tokenizer

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

# So many rows are shorter than there is room for, so that the model meets short texts too (as in the authors' code).
_SHORTER = 0.1
_STOP = re.compile(r"[.!?…。！？]+[\"'”’»)\]]*")


class Marks(NamedTuple):
    """What each piece of a vocabulary tells of words and sentences, by its id."""

    space_V: Flags
    """It has a space before it."""
    sign_V: Flags
    """It is punctuation: not a letter or digit in it."""
    stop_V: Flags
    """A sentence ends with it, if a space follows."""
    line_V: Flags
    """It is a line break."""


def marks_of(tokenizer: Tokenizer) -> Marks:
    """Look at each piece once."""
    pieces = tokenizer.pieces(range(tokenizer.size))
    bare = [piece.replace(SPACE, "") for piece in pieces]
    return Marks(
        np.array([piece.startswith(SPACE) for piece in pieces]),
        np.array([bool(text) and not any(map(str.isalnum, text)) for text in bare]),
        np.array([_STOP.fullmatch(text) is not None for text in bare]),
        np.array([text in (BREAK, "\n") for text in bare]),
    )


def word_starts(ids: npt.NDArray[Any], marks: Marks) -> Flags:
    """Whether a word begins at each place: after a space, and where letters and punctuation meet."""
    sign = marks.sign_V[ids]
    starts: Flags = marks.space_V[ids]
    starts[1:] |= sign[1:] != sign[:-1]
    starts[:1] = True
    return starts


class Sentences(NamedTuple):
    """Where each sentence begins and ends in a row of ids, and the number of its document."""

    first: Numbers
    last: Numbers
    """One behind its last id."""
    document: Numbers

    def by_document(self) -> Iterator[tuple[int, int]]:
        """The number of each document's first sentence, and one behind its last."""
        edges = np.flatnonzero(np.diff(self.document)) + 1
        bounds = [0, *edges.tolist(), len(self.document)]
        return pairwise(bounds)


def find_sentences(ids: npt.NDArray[Any], marks: Marks) -> Sentences:
    """The sentences of documents that lie one after the other, each opened by BEGIN and closed by END."""
    border = (ids == BEGIN) | (ids == END)
    begins = ~border
    begins[1:] &= border[:-1] | marks.line_V[ids[:-1]] | (marks.stop_V[ids[:-1]] & marks.space_V[ids[1:]])
    first = np.flatnonzero(begins)
    edges = np.append(np.flatnonzero(begins | border), len(ids))
    last = edges[np.searchsorted(edges, first, side="right")]
    document = np.cumsum(ids == BEGIN)[first]
    return Sentences(first, last, document)


class Rows(NamedTuple):
    """Where each row's two texts begin and end in a row of ids. The second one is empty if there is but one."""

    first_R2: Numbers
    second_R2: Numbers
    follows_R: Numbers
    """1 if the second text follows the first, 0 if it comes from another document."""


def single_rows(sentences: Sentences, room: int, random: np.random.Generator) -> Rows:
    """Rows of one text: as many whole sentences of a document as fit into `room` ids; a longer sentence is cut."""
    spans = []
    for start, stop in sentences.by_document():
        ends = sentences.last[start:stop].tolist()
        place = int(sentences.first[start])
        while place < ends[-1]:
            most = place + _room(room, random)
            whole = bisect_right(ends, most)
            end = ends[whole - 1] if whole and ends[whole - 1] > place else most
            spans.append((place, end))
            place = end
    texts = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return Rows(texts, np.repeat(texts[:, 1:], 2, axis=1), np.ones(len(texts), dtype=np.int64))


def paired_rows(sentences: Sentences, room: int, random: np.random.Generator) -> Rows:
    """Rows of two texts that have `room` ids together. Half of the second ones follow the first, half do not.

    A sentence without another one after it in its row can be followed only by a stranger, so that there are somewhat
    fewer true followers where documents are short.
    """
    documents = list(sentences.by_document())
    if len(documents) < 2 or all(stop - start < 2 for start, stop in documents):
        raise DataError(
            f"Learning which text follows which needs several documents of several sentences, not {len(documents)}. "
            "Give more files, or text.document=paragraph if blank lines part them, or set model.next_sentence=false."
        )
    first, last = sentences.first.tolist(), sentences.last.tolist()
    found = []
    for number, (start, stop) in enumerate(documents):
        while start < stop:
            most = first[start] + _room(room, random)
            end = start + 1
            while end < stop and last[end - 1] < most:
                end += 1
            half = int(random.integers(start + 1, end)) if end > start + 1 else end
            follows = half < end and random.random() < 0.5
            if follows:
                second = (first[half], last[end - 1])
            else:
                # The sentences that would have followed are not lost: the next row begins with them.
                second, end = _elsewhere(sentences, documents, number, room, random), half
            found.append((*_trimmed((first[start], last[half - 1]), second, room, random), follows))
            start = end
    table = np.array(found, dtype=np.int64)
    return Rows(table[:, 0:2], table[:, 2:4], table[:, 4])


def _room(room: int, random: np.random.Generator) -> int:
    return int(random.integers(2, room + 1)) if random.random() < _SHORTER else room


def _elsewhere(
    sentences: Sentences, documents: list[tuple[int, int]], own: int, room: int, random: np.random.Generator
) -> tuple[int, int]:
    """Sentences from the midst of another document, to its end or as far as there is room."""
    other = int(random.integers(len(documents) - 1))
    start, stop = documents[other + (other >= own)]
    place = int(sentences.first[random.integers(start, stop)])
    return place, min(int(sentences.last[stop - 1]), place + room)


def _trimmed(
    one: tuple[int, int], two: tuple[int, int], room: int, random: np.random.Generator
) -> tuple[int, int, int, int]:
    """Both texts, the longer one shortened until they fit together, at its two ends by chance."""
    sizes = one[1] - one[0], two[1] - two[0]
    if sum(sizes) > room:
        small = min(*sizes, room // 2)
        sizes = (small, room - small) if sizes[0] <= sizes[1] else (room - small, small)
        one, two = (_shortened(text, size, random) for text, size in zip((one, two), sizes, strict=True))
    return *one, *two


def _shortened(text: tuple[int, int], size: int, random: np.random.Generator) -> tuple[int, int]:
    surplus = text[1] - text[0] - size
    first = text[0] + int(random.binomial(surplus, 0.5))
    return first, first + size
