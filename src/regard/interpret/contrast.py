"""Two sentences that differ in little, and the heads that notice: whose attention moves from one word to another.

"... because it was too tired" and "... too wide": some head looks at the animal in the one and at the street in the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from regard.errors import TraceError
from regard.interpret.trace import Map, Row, Trace


@dataclass(frozen=True)
class Move:
    """How a word's attention, in one head, moves from `one` to `other` between two sentences, a and b."""

    kind: str
    layer: int
    """Counted from 0, as the head."""
    head: int
    one: str
    other: str
    query_a: int
    """The first token of the word that looks, in its row."""
    query_b: int
    text_a: str
    """The word that looks; where the source is looked at from the target, the word that is about to be written."""
    text_b: str
    a_one: float
    a_other: float
    b_one: float
    b_other: float

    @property
    def move(self) -> float:
        """From -1 to 1: the share of attention that goes over from `one` to `other`."""
        return ((self.b_other - self.b_one) - (self.a_other - self.a_one)) / 2

    def sentence(self) -> str:
        """The same in words."""
        where = _PLACES[self.kind].format(self.layer + 1) + f", head {self.head + 1}"
        who = f"*{self.text_a}*" if self.text_a == self.text_b else f"*{self.text_a}* / *{self.text_b}*"
        looks = f"the decoder, about to write {who}, looks" if self.kind == "cross" else f"{who} looks"
        one, other = (self.one, self.a_one, self.b_one), (self.other, self.a_other, self.b_other)
        first, second = (max(one, other, key=lambda noun: noun[place]) for place in (1, 2))
        if first == second and min(first[1:]) >= FAINT:
            less = other if first == one else one
            return (
                f"In {where}, {looks} at *{first[0]}* in both sentences ({first[1]:.2f}, then {first[2]:.2f}) rather than "
                f"at *{less[0]}* ({less[1]:.2f}, then {less[2]:.2f})."
            )
        at_first, at_second = (
            f"at *{name}*" if weight >= FAINT else f"at neither *{self.one}* nor *{self.other}*"
            for name, weight in ((first[0], first[1]), (second[0], second[2]))
        )
        return (
            f"In {where}, {looks} {at_first} in the first sentence ({first[1]:.2f}) "
            f"and {at_second} in the second ({second[2]:.2f})."
        )


FAINT = 0.1
"""Below this, nobody would say that a word looks at another."""
_PLACES = {
    "encoder": "encoder layer {}",
    "decoder": "decoder layer {}",
    "cross": "attention to the source, layer {}",
    "local": "local layer {}",
    "compressed": "compressed layer {}",
}


def contrast(a: Trace, b: Trace, one: str | int, other: str | int) -> list[Move]:
    """Every kind, layer, head and word that looks, those first whose attention moves most between two words.

    The words are given by their spelling, and looked for wherever something is looked at; or by the number of their
    token in what the first sentence's model reads. Words that look are paired by what the two sentences share before and
    after the difference; within it by their place, if it has as many words in both.
    """
    theirs = {(shown.kind, shown.layer): shown for shown in b.maps}
    moves: list[Move] = []
    for shown in a.maps:
        pair = theirs.get((shown.kind, shown.layer))
        if pair and (pair.heads, pair.keys) == (shown.heads, shown.keys):
            rows = a.rows[shown.keys], b.rows[shown.keys]
            key_one, key_other = _key(*rows, shown, one), _key(*rows, shown, other)
            if key_one and key_other:
                moves += _moves(_side(a, shown), _side(b, pair), key_one, key_other)
    if not moves:
        raise TraceError(
            f"Nothing looks at both {one!r} and {other!r} in both sentences. Give two words that both sentences have."
        )
    return sorted(moves, key=lambda move: -abs(move.move))


class _Word(NamedTuple):
    text: str
    tokens: list[int]
    """Where its pieces stand in the row."""


class _Side(NamedTuple):
    """One of the two sentences: a map, and the words that look in it."""

    shown: Map
    words: list[_Word]

    def weight(self, head: int, word: _Word, key: _Word) -> float:
        """What the word's pieces, in the mean, give to all pieces of the key."""
        return float(self.shown.weights_HQK[head][word.tokens][:, key.tokens].sum(1).mean())


def _side(trace: Trace, shown: Map) -> _Side:
    """In attention to the source a word is named, and cut, as it is written."""
    named = "predicted" if shown.kind == "cross" and "predicted" in trace.rows else shown.queries
    return _Side(shown, _words(trace.rows[named]))


def _words(row: Row) -> list[_Word]:
    return [_Word("".join(row.tokens[n].text for n in tokens), tokens) for tokens in row.words()]


def _key(row_a: Row, row_b: Row, shown: Map, word: str | int) -> tuple[_Word, _Word] | None:
    """A word that is looked at, in both rows; None where it is not to be seen."""
    words_a, words_b = _words(row_a), _words(row_b)
    if isinstance(word, int):
        pairs = _paired(words_a, words_b) if shown.keys in ("source", "text") else iter(())
        return next(((mine, theirs) for mine, theirs in pairs if word in mine.tokens), None)
    try:
        place_a, place_b = row_a.find(word), row_b.find(word)
    except TraceError:
        return None
    return (
        next(mine for mine in words_a if place_a in mine.tokens),
        next(theirs for theirs in words_b if place_b in theirs.tokens),
    )


def _paired(words_a: list[_Word], words_b: list[_Word]) -> Iterator[tuple[_Word, _Word]]:
    """Words before the difference, words in it if equally many, words after it."""
    least = min(len(words_a), len(words_b))
    same = [mine.text == theirs.text for mine, theirs in zip(words_a, words_b, strict=False)]
    before = next((n for n in range(least) if not same[n]), least)
    after = 0
    while after < least - before and words_a[-1 - after].text == words_b[-1 - after].text:
        after += 1
    if len(words_a) == len(words_b):
        yield from zip(words_a, words_b, strict=True)
    else:
        yield from zip(words_a[:before], words_b[:before], strict=True)
        yield from zip(words_a[len(words_a) - after :], words_b[len(words_b) - after :], strict=True)


def _moves(a: _Side, b: _Side, one: tuple[_Word, _Word], other: tuple[_Word, _Word]) -> Iterator[Move]:
    for mine, theirs in _paired(a.words, b.words):
        for head in range(a.shown.heads):
            yield Move(
                a.shown.kind,
                a.shown.layer,
                head,
                one[0].text,
                other[0].text,
                mine.tokens[0],
                theirs.tokens[0],
                mine.text,
                theirs.text,
                a.weight(head, mine, one[0]),
                a.weight(head, mine, other[0]),
                b.weight(head, theirs, one[1]),
                b.weight(head, theirs, other[1]),
            )
