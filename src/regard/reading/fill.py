"""A text with gaps in, the likeliest words for each gap out."""

from typing import NamedTuple, overload

import torch

from regard.errors import ConfigError, FolderError
from regard.models.bert import Bert
from regard.reading.reader import Progress, Read, TextReader
from regard.see.knockout import Knockouts, knockouts, of_filler
from regard.see.trace import Facts
from regard.see.tracing import Watched
from regard.text.tokenizer import MASK, MASKED, SPACE, Tokenizer


class Guess(NamedTuple):
    """A word that may have stood behind the mask."""

    word: str
    probability: float
    joined: bool
    """Whether it joins what stands before it without a space."""


Gap = list[Guess]
"""The guesses for one mask, the likeliest first."""


class Filler(TextReader):
    """Guesses the words behind <mask> (or [MASK]), each by itself, from the text on both sides."""

    model: Bert

    def __init__(
        self,
        model: Bert,
        tokenizer: Tokenizer,
        device: torch.device | str = "cpu",
        *,
        batch_tokens: int = 8192,
        guesses: bool = True,
        facts: Facts | None = None,
    ) -> None:
        """`guesses` is False for an imported model whose layer for guessing was left behind by who published it."""
        super().__init__(model, tokenizer, device, batch_tokens=batch_tokens, facts=facts)
        self.guesses = guesses and tokenizer.mask is not None

    @overload
    def fill(self, texts: str, *, top: int = 5, progress: Progress | None = None) -> list[Gap]: ...

    @overload
    def fill(self, texts: list[str], *, top: int = 5, progress: Progress | None = None) -> list[list[Gap]]: ...

    def fill(
        self, texts: str | list[str], *, top: int = 5, progress: Progress | None = None
    ) -> list[Gap] | list[list[Gap]]:
        """The `top` guesses for each mask of each text; for a text without a mask, none."""
        if not self.guesses:
            raise FolderError(
                "This model was imported without its layer for guessing words, so it can only embed (regard embed) "
                "or be fine-tuned. Import one that has it, such as a BertForMaskedLM or BertForPreTraining."
            )
        if top < 1:
            raise ConfigError(f"The {top} likeliest words are none. Ask for at least 1.")
        if isinstance(texts, str):
            return self.fill([texts], top=top, progress=progress)[0]
        found: list[list[Gap]] = [[] for _ in texts]

        def guess(read: Read) -> None:
            row_N, place_N = (read.ids_BT == MASK).nonzero(as_tuple=True)
            chance_NV = self.model.guess(read.hidden_BTW[row_N, place_N]).float().softmax(-1)
            chance_NV[:, : MASK + 1] = 0  # what is no word is no answer
            best = chance_NV.topk(min(top, chance_NV.shape[1] - MASK - 1))
            for row, ids, chances in zip(row_N.tolist(), best.indices.tolist(), best.values.tolist(), strict=True):
                found[read.numbers[row]].append(self._gap(ids, chances))

        self._read([text.replace("[MASK]", MASKED) for text in texts], guess, progress)
        return found

    def watched(self, text: str) -> Watched:
        return super().watched(text.replace("[MASK]", MASKED))

    def knockouts(self, text: str, word: str | int | None = None) -> Knockouts:
        """How likely the guess at a mask remains as each head is switched off in turn; by default at the mask hurt most."""
        watched, ids_1T = self.watched(text), self._ids(text.replace("[MASK]", MASKED))
        with torch.inference_mode():
            return knockouts(watched, of_filler(self.model, self.tokenizer, ids_1T), word)

    def _gap(self, ids: list[int], chances: list[float]) -> Gap:
        return [
            Guess(piece.replace(SPACE, " ").strip(" "), chance, not piece.startswith(SPACE))
            for piece, chance in zip(self.tokenizer.pieces(ids), chances, strict=True)
        ]
