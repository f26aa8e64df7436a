"""What a head is good for: it is switched off, and the model is asked again how likely its own words are.

A weight says where a head looks; only this says whether it matters. Switched off means that the head's context is zero;
everything else goes on as it is. One pass for each head answers for all words at once.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.errors import TraceError
from regard.interpret.recording import Watched
from regard.interpret.tokens import row_of
from regard.interpret.trace import Row
from regard.layers import recorder
from regard.models.base import Source, Writer
from regard.models.bert import Bert, Classifier
from regard.text.tokenizers.tokenizer import MASK, Tokenizer


@dataclass(frozen=True)
class Knockout:
    """One head switched off."""

    kind: str
    layer: int | None
    """Counted from 0; None where one and the same head serves all layers (Universal Transformer)."""
    head: int
    probability: float
    """Of the word, now."""
    instead: str
    """What the model would write there now; the word itself, if that has not changed."""
    translation: str | None
    """What it writes now if it is free to; None if nobody asked."""
    changes: bool
    """Whether the translation changes or, where nobody asked for it, the word."""


@dataclass(frozen=True)
class Knockouts:
    """Every head switched off in turn, and what becomes of one word."""

    position: int
    """Where the word begins in the row of tokens that are written (or, for a reader, read)."""
    word: str
    probability: float
    """With all heads."""
    translation: str
    """With all heads; or the text as it was read, if nobody asked for a translation."""
    heads: tuple[Knockout, ...]

    def data(self) -> dict[str, Any]:
        """As the attention page reads it."""
        return dataclasses.asdict(self)


class Asked(NamedTuple):
    """What a model is asked again and again: how likely each of its words is, given the words before it."""

    chances: Callable[[], Tensor]
    """-> chances_TV, of every word at each position; or of every label, at one."""
    written: Sequence[int]
    """Whose probability counts at each position."""
    words: Sequence[Sequence[int]]
    """The positions that make up each word that can be chosen."""
    before: Sequence[int]
    """For each position, how many tokens stand before it in the row that is shown."""
    spelled: Callable[[Sequence[int]], str]


def of_writer(
    model: Writer, tokenizer: Tokenizer, row: Row, source: Source, reads: Sequence[int], writes: Sequence[int]
) -> Asked:
    """Of the words it writes, each after those it reads; `row` shows them, perhaps after the tokens of a source."""
    read_1T = torch.tensor([list(reads)], device=source.ids_BS.device)
    first = len(row.tokens) - len(writes)
    written = row._replace(tokens=row.tokens[first:])
    groups = written.words()
    words = [group for group in groups if not written.tokens[group[0]].special]
    return Asked(
        lambda: model.words(model(source, read_1T).hidden_BTW[0]).float().softmax(-1),
        writes,
        words or groups,  # a text without words has an end
        range(first, len(row.tokens)),
        lambda ids: _spelled(tokenizer, ids),
    )


def of_filler(model: Bert, tokenizer: Tokenizer, ids_1T: Tensor) -> Asked:
    """Of what it guesses at each mask."""
    places = (ids_1T[0] == MASK).nonzero()[:, 0].tolist()
    lengths_1 = torch.tensor([ids_1T.shape[1]], device=ids_1T.device)

    def chances() -> Tensor:
        chance_NV = model.guess(model(ids_1T, lengths_1).hidden_BTW[0, places]).float().softmax(-1)
        chance_NV[:, : MASK + 1] = 0  # what is no word is no answer
        return chance_NV

    guessed = chances().argmax(-1).tolist()
    return Asked(chances, guessed, [[n] for n in range(len(places))], places, lambda ids: _spelled(tokenizer, ids))


def of_labeller(model: Classifier, labels: Sequence[str], ids_1T: Tensor) -> Asked:
    """Of the label, which is read off the first token."""
    lengths_1 = torch.tensor([ids_1T.shape[1]], device=ids_1T.device)

    def chances() -> Tensor:
        return model.label(model(ids_1T, lengths_1).hidden_BTW).float().softmax(-1)

    return Asked(chances, chances().argmax(-1).tolist(), [[0]], [0], lambda ids: "".join(labels[i] for i in ids))


@torch.inference_mode()
def knockouts(
    watched: Watched, asked: Asked, word: str | int | None = None, translate: Callable[[], str] | None = None
) -> Knockouts:
    """Switch off each head of what was watched in turn.

    The word is chosen by its spelling or its token's number in the row; by default it is the one that is hurt most, over
    all heads. `translate` tells what the model writes by itself.
    """
    if not asked.words:
        raise TraceError("There is no <mask> in the text, so there is no word to be guessed. Put one in.")
    rows = watched.trace.rows
    whole = _answer(asked)
    translation = translate() if translate else rows["predicted" if "predicted" in rows else "text"].text
    found: list[tuple[_Head, _Answer, str | None]] = []
    for head in _heads(watched):
        with recorder.silenced(head.module, head.head, head.heads):
            found.append((head, _answer(asked), translate() if translate else None))
    number = _hurt_most(asked, whole, [answer for _, answer, _ in found]) if word is None else _find(asked, word)
    chosen = asked.words[number]
    name = asked.spelled([asked.written[position] for position in chosen])
    heads = []
    for head, answer, told in found:
        instead = _instead(asked, chosen, answer)
        changes = told != translation if translate else instead != name
        heads.append(Knockout(head.kind, head.layer, head.head, answer.chance(chosen), instead, told, changes))
    return Knockouts(asked.before[chosen[0]], name, whole.chance(chosen), translation, tuple(heads))


class _Head(NamedTuple):
    kind: str
    layer: int | None
    head: int
    heads: int
    module: nn.Module


class _Answer(NamedTuple):
    chances: list[float]
    """Of what is written at each position."""
    likeliest: list[int]

    def chance(self, positions: Sequence[int]) -> float:
        """Of a word, all of its pieces: each has its probability given those before it."""
        return math.prod(self.chances[position] for position in positions)


def _heads(watched: Watched) -> Iterator[_Head]:
    """Each head of the model once, even if it is seen in several layers."""
    layers: dict[nn.Module, list[tuple[str, int]]] = {}
    for place, module in watched.modules.items():
        layers.setdefault(module, []).append(place)
    for module, places in layers.items():
        kind, layer = places[0]
        heads = watched.trace.map(kind, layer + 1).heads
        for head in range(heads):
            yield _Head(kind, layer if len(places) == 1 else None, head, heads, module)


def _answer(asked: Asked) -> _Answer:
    chances_TV = asked.chances()
    written_T1 = torch.tensor([[i] for i in asked.written], device=chances_TV.device)
    return _Answer(chances_TV.gather(1, written_T1)[:, 0].tolist(), chances_TV.argmax(-1).tolist())


def _hurt_most(asked: Asked, whole: _Answer, answers: Sequence[_Answer]) -> int:
    def fall(number: int) -> float:
        chosen = asked.words[number]
        return sum(whole.chance(chosen) - answer.chance(chosen) for answer in answers)

    return max(range(len(asked.words)), key=fall)


def _find(asked: Asked, word: str | int) -> int:
    """The number of the first word that is spelled like this or has this token."""
    names = []
    for number, positions in enumerate(asked.words):
        names.append(asked.spelled([asked.written[position] for position in positions]))
        pieces = [asked.spelled([asked.written[position]]) for position in positions]
        if isinstance(word, int):
            if word in [asked.before[position] for position in positions]:
                return number
        elif word.casefold() in [name.casefold() for name in (names[-1], *pieces)]:
            return number
    what = f"token {word}" if isinstance(word, int) else repr(word)
    raise TraceError(f"The model did not write {what}. Choose one of: {' '.join(names)}")


def _instead(asked: Asked, positions: Sequence[int], answer: _Answer) -> str:
    """The word as far as the model agrees with it, and the first piece in which it does not."""
    ids = []
    for position in positions:
        ids.append(answer.likeliest[position])
        if ids[-1] != asked.written[position]:
            break
    return asked.spelled(ids)


def _spelled(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return "".join(token.text for token in row_of(tokenizer, ids).tokens)
