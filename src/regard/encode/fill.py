"""A text with gaps in, the likeliest words for each gap out; by any engine. No torch."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple, overload

from regard.encode.embed import Ids, Progress, TextReader
from regard.errors import ConfigError, FolderError
from regard.text.arguments import texts_of, whole_number
from regard.text.tokenizers.tokenizer import MASKED, SPACE


class Guess(NamedTuple):
    """A word that may have stood behind the mask."""

    word: str
    probability: float
    joined: bool
    """Whether it joins what stands before it without a space."""


Gap = list[Guess]
"""The guesses for one mask, the likeliest first."""
Likeliest = list[tuple[int, float]]
"""Words and their probabilities, the likeliest first."""


class TextFiller(TextReader):
    """Guesses the words behind <mask> (or [MASK]), each by itself, from the text on both sides."""

    guesses: bool
    """False for an imported model whose layer for guessing was left behind by who published it."""

    @abstractmethod
    def _likeliest(self, rows: Sequence[Ids], top: int) -> list[list[Likeliest]]:
        """For each of some texts and each of its masks the `top` words, of those that are words."""

    @overload
    def fill(self, texts: str, *, top: int = 5, progress: Progress | None = None) -> list[Gap]: ...  # type: ignore[overload-overlap]

    @overload
    def fill(self, texts: Iterable[str], *, top: int = 5, progress: Progress | None = None) -> list[list[Gap]]: ...

    def fill(
        self, texts: str | Iterable[str], *, top: int = 5, progress: Progress | None = None
    ) -> list[Gap] | list[list[Gap]]:
        """The `top` guesses for each mask of each text, or of one text; for a text without a mask, none."""
        given = texts_of(texts, "texts")
        if not self.guesses:
            raise FolderError(
                "This model was imported without its layer for guessing words, so it can only embed (regard embed) "
                "or be fine-tuned. Import one that has it, such as a BertForMaskedLM or BertForPreTraining."
            )
        if whole_number(top, "top") < 1:
            raise ConfigError(f"The {top} likeliest words are none. Ask for at least 1.")
        found: list[list[Gap]] = [[] for _ in given.texts]
        for number, gaps in self._each(_marked(given.texts), lambda rows: self._likeliest(rows, top), progress):
            found[number] = [self._gap(likeliest) for likeliest in gaps]
        return given.answer(found)

    def _gap(self, likeliest: Likeliest) -> Gap:
        pieces = self.tokenizer.pieces([word for word, _ in likeliest])
        return [
            Guess(piece.replace(SPACE, " ").strip(" "), chance, not piece.startswith(SPACE))
            for piece, (_, chance) in zip(pieces, likeliest, strict=True)
        ]


def _marked(texts: Sequence[str]) -> list[str]:
    return [text.replace("[MASK]", MASKED) for text in texts]
