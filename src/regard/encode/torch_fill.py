"""Hidden words guessed by a torch model, and what its heads are good for."""

from collections.abc import Sequence

import torch

from regard.encode.embed import Ids
from regard.encode.fill import Likeliest, TextFiller
from regard.encode.torch_encoder import ModelReader
from regard.interpret.ablation import Knockouts, knockouts, of_filler
from regard.interpret.recording import Watched
from regard.interpret.trace import Facts
from regard.models.bert import Bert
from regard.text.arguments import text_of, word_of
from regard.text.tokenizers.tokenizer import MASK, MASKED, Tokenizer


class Filler(ModelReader, TextFiller):
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

    def watched(self, text: str) -> Watched:
        return super().watched(text_of(text, "text").replace("[MASK]", MASKED))

    def knockouts(self, text: str, word: str | int | None = None) -> Knockouts:
        """How likely the guess at a mask remains as each head is switched off in turn; by default at the mask hurt most."""
        text, word = text_of(text, "text").replace("[MASK]", MASKED), word_of(word)
        watched, ids_1T = self.watched(text), self._ids(text)
        with torch.inference_mode():
            return knockouts(watched, of_filler(self.model, self.tokenizer, ids_1T), word)

    def _likeliest(self, rows: Sequence[Ids], top: int) -> list[list[Likeliest]]:
        found: list[list[Likeliest]] = [[] for _ in rows]
        with self._reading(rows) as read:
            row_N, place_N = (read.ids_BT == MASK).nonzero(as_tuple=True)
            chance_NV = self.model.guess(read.hidden_BTW[row_N, place_N]).float().softmax(-1)
            chance_NV[:, : MASK + 1] = 0  # what is no word is no answer
            best = chance_NV.topk(min(top, chance_NV.shape[1] - MASK - 1))
            for row, ids, chances in zip(row_N.tolist(), best.indices.tolist(), best.values.tolist(), strict=True):
                found[row].append(list(zip(ids, chances, strict=True)))
        return found
