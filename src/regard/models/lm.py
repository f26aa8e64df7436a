"""The Transformer's decoder alone, as a language model (Radford et al. 2018 and 2019: GPT and GPT-2; Liu et al. 2018).

Every word looks at itself and at all words before it, and predicts the next one; in training all words at once. A source,
if there is one, is simply the text's beginning: the target goes on after it in the same row, counted on from it.

When writing, each layer keeps the keys and values of all words so far. The sources of a batch differ in length, so what
was read is moved to the right until all rows end in the same column. Then a new word is a new column for every row, the
distance between two columns is that between two words, and only the columns left free in front have to be hidden.

The defaults are the smallest GPT-2. Departures: word vectors are multiplied by sqrt(width) on their way in, and weights
begin in Glorot's range, the same for all, both as in our other models (small ones learned more slowly from GPT-2's normal
of 0.02, less for what joins the residual sum); there is no dropout on attention weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import LmConfig
from regard.layers.blocks import Embedding, xavier
from regard.layers.kv_cache import Past
from regard.layers.positions import absolute
from regard.layers.prompt import join, targets_of
from regard.layers.transformer import BlockShape, EncoderBlock
from regard.models.base import LanguageModel, Output, Source, State

PADDING = 0  # The id that fills up a row.


class Lm(LanguageModel):
    """Goes on with a text, word by word, looking at all of it."""

    def __init__(self, config: LmConfig, vocabulary: int) -> None:
        super().__init__()
        self.longest = config.longest if config.positions == "learned" else None
        layers = nn.ModuleList(EncoderBlock(BlockShape.of(config)) for _ in range(config.depth))
        self.layers = cast("Sequence[EncoderBlock]", layers)
        # With the norm before each sub-layer the sum itself is never normalised; one norm at the end does it.
        self.norm = nn.LayerNorm(config.width) if config.norm == "before" else nn.Identity()
        self.words = nn.Linear(config.width, vocabulary, bias=False)
        xavier(self)
        positions = absolute(config.positions, config.width, config.longest)
        self.embedding = Embedding(vocabulary, config.width, config.dropout, positions)
        if config.tie:
            self.words.weight = self.embedding.table.weight

    def forward(
        self, source: Source, target_BT: Tensor, *, attention: bool = False, carried: tuple[Tensor, ...] = ()
    ) -> Output:
        """Attention is that of the joined row, source and target: "decoder.3.self" -> weights_BHJJ."""
        joined_BJ, place_BT = join(source.ids_BS, source.lengths_B, target_BT)
        size, seen = joined_BJ.shape[1], {}
        if source.ids_BS.shape[1]:
            joined_BJ = joined_BJ[:, : _end(joined_BJ)]
        x_BJW = self.embedding(joined_BJ)
        for number, layer in enumerate(self.layers):
            x_BJW, weights = layer(x_BJW, causal=True, weights=attention)
            if weights is not None:
                seen[f"decoder.{number}.self"] = weights
        hidden_BJW = F.pad(self.norm(x_BJW), (0, 0, 0, size - x_BJW.shape[1]))
        return Output(targets_of(hidden_BJW, place_BT), seen)

    def blocks(self) -> list[nn.Module]:
        return [*self.layers]

    def start(self, source: Source, *, attention: bool = False) -> "LmState":
        columns, lengths_B = source.ids_BS.shape[1], source.lengths_B
        pasts: list[Past] = []
        if columns:
            x_BSW = self.embedding(source.ids_BS)
            for layer in self.layers:
                query, past = layer.project(x_BSW)
                x_BSW, _ = layer.look(x_BSW, query, past, causal=True)
                pasts.append(past)
        if bool((lengths_B == columns).all()):
            return LmState(pasts, None, lengths_B)
        free_B = columns - lengths_B
        real_BK = torch.arange(columns, device=free_B.device) >= free_B[:, None]
        return LmState([past.moved_right(free_B) for past in pasts], real_BK, lengths_B)

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "LmState"]:
        assert isinstance(state, LmState), "a state belongs to the model that started it"
        x_B1W = self.embedding(last_B[:, None], first=state.position_B)
        real_BK = F.pad(state.real_BK, (0, 1), value=True) if state.real_BK is not None else None
        pasts: list[Past] = []
        for number, layer in enumerate(self.layers):
            query, own = layer.project(x_B1W)
            pasts.append(state.pasts[number].followed_by(own) if state.pasts else own)
            x_B1W, _ = layer.look(x_B1W, query, pasts[-1], real_BK)
        hidden_B1W = self.norm(x_B1W)
        return hidden_B1W[:, 0], LmState(pasts, real_BK, state.position_B + 1)


@dataclass(frozen=True)
class LmState:
    """What every layer has seen of the text so far, and how many words that is in each row."""

    pasts: list[Past]
    """Every row ends in the last column; empty before the first word."""
    real_BK: Tensor | None
    """Which columns hold words; None if all do."""
    position_B: Tensor
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "LmState":
        return replace(
            self,
            pasts=[past.reorder(index_B) for past in self.pasts],
            real_BK=self.real_BK.index_select(0, index_B) if self.real_BK is not None else None,
            position_B=self.position_B.index_select(0, index_B),
        )


def _end(joined_BJ: Tensor) -> int:
    """Where the longest row ends: the longest source and the longest target need not stand in the same row.

    Columns after it hold no word; they would cost time, and learned positions may not reach so far.
    """
    return int((joined_BJ != PADDING).any(0).nonzero()[-1]) + 1
