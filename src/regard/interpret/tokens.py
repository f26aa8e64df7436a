"""Ids -> the tokens a picture shows: each with its place in the text and the word it belongs to."""

import unicodedata
from collections.abc import Iterator, Sequence

from regard.interpret.trace import Row, Token
from regard.text.tokenizers.tokenizer import BREAK, MASKED, SPACE, SPECIALS, UNKNOWN, Tokenizer


def row_of(tokenizer: Tokenizer, ids: Sequence[int], text: str | None = None) -> Row:
    """The tokens of these ids, special ones included; `text` is what they were cut from, else it is put together.

    Where a tokenizer has changed the text (capitals, accents), pieces are found by their letters; one that is not found
    has no place of its own: it begins and ends where the one before ended.
    """
    pieces = tokenizer.pieces(ids)
    text = tokenizer.decode(ids) if text is None else text
    folded, origin = _fold(text)
    tokens: list[Token] = []
    place, word = 0, -1
    for i, piece in zip(ids, pieces, strict=True):
        special = piece in SPECIALS and i != UNKNOWN
        shown = piece if special else piece.replace(SPACE, " ").strip(" ") or "␠"
        bare, _ = _fold("" if special or i == UNKNOWN else piece.replace(SPACE, " ").strip())
        # After an unknown word, only a space tells where the next one begins.
        spaced = bool(tokens) and tokens[-1].unknown and piece.startswith(SPACE) and f" {bare}" in folded[place:]
        found = folded.find(f" {bare}", place) + 1 if spaced else folded.find(bare, place) if bare else place
        # Far away it is another word that only looks alike.
        found = place if found < 0 or found - place > 40 + len(bare) else found
        last = found + len(bare) if bare and folded.startswith(bare, found) else found
        alone = special or i == UNKNOWN or not tokens or tokens[-1].special or tokens[-1].unknown
        begins = alone or _begins_word(piece, tokens[-1].text)
        word += begins
        tokens.append(
            Token(
                shown.replace(BREAK, "⏎").replace("\n", "⏎"),
                origin[found] if last > found else origin[place],
                origin[last - 1] + 1 if last > found else origin[place],
                word,
                special=special,
                unknown=i == UNKNOWN,
                continues=not begins,
                masked=piece == MASKED,
            )
        )
        place = last
    return Row(text, tuple(_with_unknown(text, tokens)))


def _with_unknown(text: str, tokens: list[Token]) -> Iterator[Token]:
    """An unknown word is what stands between its neighbours; several in a row share it."""
    for number, token in enumerate(tokens):
        if not token.unknown:
            yield token
            continue
        known = [other for other in tokens[number + 1 :] if other.first < other.last]
        between = text[token.first : known[0].first if known else len(text)]
        first = token.first + len(between) - len(between.lstrip())
        stands = between.strip()
        yield token._replace(text=stands or token.text, first=first, last=first + len(stands))


def _begins_word(piece: str, before: str) -> bool:
    """After a space, and where letters and signs meet: a comma is a word of its own, "didn't" is three."""
    if piece.startswith((SPACE, BREAK, "\n", MASKED)):
        return True
    return piece[:1].isalnum() != before[-1:].isalnum()


def _fold(text: str) -> tuple[str, list[int]]:
    """The text as a tokenizer may have changed it: small letters without accents; and where each came from."""
    folded, origin = [], []
    for place, character in enumerate(text):
        for part in unicodedata.normalize("NFKD", character.lower()):
            if not unicodedata.combining(part):
                folded.append(part)
                origin.append(place)
    return "".join(folded), [*origin, len(text)]
