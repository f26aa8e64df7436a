"""The Transformer, encoder and decoder (Vaswani et al. 2017, "Attention Is All You Need", figure 1).

Departures from the paper, each a setting whose default is the paper's: layer norm before the sub-layers, learned or
relative positions, positions counted from a random number in training (Dehghani et al. 2019, section 3.2), ELU or GELU,
fewer decoder layers, embeddings not shared. Every linear layer but the last has a bias, as in the authors' code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from regard.config import TransformerConfig
from regard.layers import masks
from regard.layers.blocks import Embedding, xavier
from regard.layers.kv_cache import Memory, Past, sources_of
from regard.layers.positions import absolute
from regard.layers.transformer import BlockShape, DecoderBlock, EncoderBlock
from regard.models.base import Output, Source, State, Writer


class Transformer(Writer):
    """Reads a source with the encoder; writes a target, word by word, with the decoder."""

    def __init__(self, config: TransformerConfig, vocabulary: int) -> None:
        super().__init__()
        self.longest = config.longest if config.positions == "learned" else None
        self.offset = config.offset
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.words = nn.Linear(config.width, vocabulary, bias=False)
        xavier(self)
        self.source_embedding = _embedding(config, vocabulary)
        self.target_embedding = self.source_embedding if config.tie == "all" else _embedding(config, vocabulary)
        if config.tie != "none":
            self.words.weight = self.target_embedding.table.weight

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        seen: dict[str, Tensor] | None = {} if attention else None
        real_BS = masks.real(source.lengths_B, source.ids_BS.shape[1])
        first = self._first(source, target_BT)
        memory_BSW = self.encoder(self.source_embedding(source.ids_BS, first), real_BS, seen)
        hidden_BTW = self.decoder(self.target_embedding(target_BT, first), memory_BSW, real_BS, seen)
        return Output(hidden_BTW, seen or {})

    def blocks(self) -> list[nn.Module]:
        return [*self.encoder.layers, *self.decoder.layers]

    def start(self, source: Source, *, attention: bool = False) -> "TransformerState":
        real_BS = masks.real(source.lengths_B, source.ids_BS.shape[1])
        memory_BSW = self.encoder(self.source_embedding(source.ids_BS), real_BS, None)
        memories = [layer.remember(memory_BSW, real_BS) for layer in self.decoder.layers]
        pasts = [memory.no_past() for memory in memories]
        return TransformerState(pasts, memories, position=0, attention=attention)

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "TransformerState"]:
        assert isinstance(state, TransformerState), "a state belongs to the model that started it"
        x_BTW = self.target_embedding(last_B[:, None], first=state.position)
        pasts, looked = [], None
        for layer, past, memory in zip(self.decoder.layers, state.pasts, state.memories, strict=True):
            query, own = layer.project(x_BTW)
            pasts.append(past.followed_by(own))
            x_BTW, _, looked = layer.look(x_BTW, query, pasts[-1], memory, causal=False, weights=state.attention)
        hidden_BTW = self.decoder.norm(x_BTW)
        attention_BS = looked.mean(1).flatten(0, 1) if looked is not None else None
        after = replace(state, pasts=pasts, position=state.position + 1, attention_BS=attention_BS)
        return hidden_BTW[:, 0], after

    def _first(self, source: Source, target_BT: Tensor) -> int | Tensor:
        """Where texts begin: at position 0; in training, with an offset, each pair at one of its own, drawn at random.

        Both sides of a pair at the same one: else no word could be told by its position which source word is its own.
        """
        if not self.offset or not self.training:
            return 0
        length = max(source.ids_BS.shape[1], target_BT.shape[1])
        room = self.offset if self.longest is None else max(0, min(self.offset, self.longest - length))
        return torch.randint(room + 1, (len(source.ids_BS),), device=target_BT.device)


class Encoder(nn.Module):
    """Layers in which every source word looks at every source word."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = nn.ModuleList(EncoderBlock(BlockShape.of(config)) for _ in range(config.depth))
        self.layers = cast("Sequence[EncoderBlock]", layers)
        self.norm = _last_norm(config)

    def forward(self, x_BSW: Tensor, real_BS: Tensor | None, seen: dict[str, Tensor] | None) -> Tensor:
        for number, layer in enumerate(self.layers):
            x_BSW, weights = layer(x_BSW, real_BS, weights=seen is not None)
            if seen is not None:
                seen[f"encoder.{number}.self"] = weights
        return cast(Tensor, self.norm(x_BSW))


class Decoder(nn.Module):
    """Layers in which every target word looks at the target words before it and at the whole source."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        depth = config.decoder_depth or config.depth
        layers = nn.ModuleList(DecoderBlock(BlockShape.of(config)) for _ in range(depth))
        self.layers = cast("Sequence[DecoderBlock]", layers)
        self.norm = _last_norm(config)

    def forward(
        self, x_BTW: Tensor, memory_BSW: Tensor, real_BS: Tensor | None, seen: dict[str, Tensor] | None
    ) -> Tensor:
        for number, layer in enumerate(self.layers):
            x_BTW, to_self, to_source = layer(x_BTW, memory_BSW, real_BS, weights=seen is not None)
            if seen is not None:
                seen[f"decoder.{number}.self"] = to_self
                seen[f"decoder.{number}.source"] = to_source
        return cast(Tensor, self.norm(x_BTW))


@dataclass(frozen=True)
class TransformerState:
    """The past of every decoder layer, the source as each sees it, and how many words have been written.

    A source is kept once, for all rows that share it.
    """

    pasts: list[Past]
    memories: list[Memory]
    position: int
    attention: bool
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "TransformerState":
        source_N = sources_of(index_B, rows=len(self.pasts[0].key), sources=len(self.memories[0].key))
        return replace(
            self,
            pasts=[past.reorder(index_B) for past in self.pasts],
            memories=[memory.select(source_N) for memory in self.memories],
            attention_BS=self.attention_BS.index_select(0, index_B) if self.attention_BS is not None else None,
        )


def _embedding(config: TransformerConfig, vocabulary: int) -> Embedding:
    positions = absolute(config.positions, config.width, config.longest)
    return Embedding(vocabulary, config.width, config.dropout, positions)


def _last_norm(config: TransformerConfig) -> nn.Module:
    # With the norm before each sub-layer the sum itself is never normalised; one norm at the end does it.
    return nn.LayerNorm(config.width) if config.norm == "before" else nn.Identity()
