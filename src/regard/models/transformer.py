"""The Transformer, encoder and decoder (Vaswani et al. 2017, "Attention Is All You Need", figure 1).

Departures from the paper, each a setting whose default is the paper's: layer norm before the sub-layers, learned or
relative positions, ELU or GELU, fewer decoder layers, embeddings not shared. Every linear layer but the last has a
bias, as in the authors' code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from regard.config import TransformerConfig
from regard.layers import masks
from regard.layers.attention import MultiHead
from regard.layers.blocks import Embedding, FeedForward, Residual, xavier
from regard.layers.positions import Learned, Sinusoidal
from regard.models.interface import Output, Source, State, Writer


class Transformer(Writer):
    """Reads a source with the encoder; writes a target, word by word, with the decoder."""

    def __init__(self, config: TransformerConfig, vocabulary: int) -> None:
        super().__init__()
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
        memory_BSW = self.encoder(self.source_embedding(source.ids_BS), real_BS, seen)
        hidden_BTW = self.decoder(self.target_embedding(target_BT), memory_BSW, real_BS, seen)
        return Output(hidden_BTW, seen or {})

    def start(self, source: Source, *, attention: bool = False) -> "TransformerState":
        real_BS = masks.real(source.lengths_B, source.ids_BS.shape[1])
        memory_BSW = self.encoder(self.source_embedding(source.ids_BS), real_BS, None)
        past = [layer.start(memory_BSW) for layer in self.decoder.layers]
        return TransformerState(past, real_BS, position=0, attention=attention)

    def step(self, last_B: Tensor, state: State) -> tuple[Tensor, "TransformerState"]:
        assert isinstance(state, TransformerState), "a state belongs to the model that started it"
        x_BTW = self.target_embedding(last_B[:, None], first=state.position)
        past, looked = [], None
        for layer, layer_past in zip(self.decoder.layers, state.past, strict=True):
            x_BTW, layer_past, looked = layer.step(x_BTW, layer_past, state.real_BS, weights=state.attention)
            past.append(layer_past)
        hidden_BTW = self.decoder.norm(x_BTW)
        attention_BS = looked[:, :, 0].mean(1) if looked is not None else None
        return self.words(hidden_BTW[:, 0]), replace(
            state, past=past, position=state.position + 1, attention_BS=attention_BS
        )


class Encoder(nn.Module):
    """Layers in which every source word looks at every source word."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.depth))
        self.layers = cast("Sequence[EncoderLayer]", layers)
        self.norm = _last_norm(config)

    def forward(self, x_BSW: Tensor, real_BS: Tensor | None, seen: dict[str, Tensor] | None) -> Tensor:
        for number, layer in enumerate(self.layers):
            x_BSW, weights = layer(x_BSW, real_BS, weights=seen is not None)
            if seen is not None:
                seen[f"encoder.{number}.self"] = weights
        return cast(Tensor, self.norm(x_BSW))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward; each within a residual connection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = MultiHead(config.width, config.heads, _span(config))
        self.feed_forward = FeedForward(config.width, config.inner, config.activation)
        self.around_attention = _residual(config)
        self.around_feed_forward = _residual(config)

    def forward(self, x_BSW: Tensor, real_BS: Tensor | None, *, weights: bool) -> tuple[Tensor, Tensor | None]:
        query, key, value = self.attention.project_all(self.around_attention.enter(x_BSW))
        context, seen = self.attention(query, key, value, real_BS, weights=weights)
        x_BSW = self.around_attention.leave(x_BSW, context)
        inner = self.feed_forward(self.around_feed_forward.enter(x_BSW))
        return self.around_feed_forward.leave(x_BSW, inner), seen


class Decoder(nn.Module):
    """Layers in which every target word looks at the target words before it and at the whole source."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_depth or config.depth))
        self.layers = cast("Sequence[DecoderLayer]", layers)
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


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the source, then feed-forward.

    No padding mask is needed on the target: padding stands at the end, where no earlier word can look.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = MultiHead(config.width, config.heads, _span(config))
        self.source_attention = MultiHead(config.width, config.heads)
        self.feed_forward = FeedForward(config.width, config.inner, config.activation)
        self.around_self = _residual(config)
        self.around_source = _residual(config)
        self.around_feed_forward = _residual(config)

    def forward(
        self, x_BTW: Tensor, memory_BSW: Tensor, real_BS: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        query, key, value = self.self_attention.project_all(self.around_self.enter(x_BTW))
        context, to_self = self.self_attention(query, key, value, causal=True, weights=weights)
        x_BTW = self.around_self.leave(x_BTW, context)
        source_key, source_value = self.source_attention.project_memory(memory_BSW)
        x_BTW, to_source = self._look_at_source(x_BTW, source_key, source_value, real_BS, weights=weights)
        return x_BTW, to_self, to_source

    def start(self, memory_BSW: Tensor) -> "Past":
        """Project the source once; the target has no past yet."""
        source_key, source_value = self.source_attention.project_memory(memory_BSW)
        nothing = source_key[:, :, :0]
        return Past(nothing, nothing, source_key, source_value)

    def step(
        self, x_BTW: Tensor, past: "Past", real_BS: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, "Past", Tensor | None]:
        """One word further: its key and value join the past, and it looks at all of that."""
        query, key, value = self.self_attention.project_all(self.around_self.enter(x_BTW))
        past = past._replace(key=torch.cat([past.key, key], 2), value=torch.cat([past.value, value], 2))
        context, _ = self.self_attention(query, past.key, past.value)
        x_BTW = self.around_self.leave(x_BTW, context)
        x_BTW, seen = self._look_at_source(x_BTW, past.source_key, past.source_value, real_BS, weights=weights)
        return x_BTW, past, seen

    def _look_at_source(
        self, x_BTW: Tensor, key: Tensor, value: Tensor, real_BS: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        query = self.source_attention.project_query(self.around_source.enter(x_BTW))
        context, seen = self.source_attention(query, key, value, real_BS, weights=weights)
        x_BTW = self.around_source.leave(x_BTW, context)
        inner = self.feed_forward(self.around_feed_forward.enter(x_BTW))
        return self.around_feed_forward.leave(x_BTW, inner), seen


class Past(NamedTuple):
    """What one decoder layer remembers: keys and values of the target so far and of the source, by heads."""

    key: Tensor
    value: Tensor
    source_key: Tensor
    source_value: Tensor


@dataclass(frozen=True)
class TransformerState:
    """The past of every decoder layer, and how many words have been written."""

    past: list[Past]
    real_BS: Tensor | None
    position: int
    attention: bool
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "TransformerState":
        return replace(
            self,
            past=[Past(*(part.index_select(0, index_B) for part in past)) for past in self.past],
            real_BS=self.real_BS.index_select(0, index_B) if self.real_BS is not None else None,
            attention_BS=self.attention_BS.index_select(0, index_B) if self.attention_BS is not None else None,
        )


def _embedding(config: TransformerConfig, vocabulary: int) -> Embedding:
    positions: Sinusoidal | Learned | None = None
    if config.positions == "sinusoidal":
        positions = Sinusoidal(config.width)
    elif config.positions == "learned":
        positions = Learned(config.width, config.longest)
    return Embedding(vocabulary, config.width, config.dropout, positions)


def _span(config: TransformerConfig) -> int:
    return config.span if config.positions == "relative" else 0


def _residual(config: TransformerConfig) -> Residual:
    return Residual(config.width, config.dropout, norm_first=config.norm == "before")


def _last_norm(config: TransformerConfig) -> nn.Module:
    # With the norm before each sub-layer the sum itself is never normalised; one norm at the end does it.
    return nn.LayerNorm(config.width) if config.norm == "before" else nn.Identity()
