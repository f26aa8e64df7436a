"""The two blocks of the Transformer (Vaswani et al. 2017, figure 1), for every model that is built of them."""

from typing import NamedTuple, Protocol, Self

from torch import Tensor, nn

from regard.layers.attention import MultiHead
from regard.layers.blocks import FeedForward, Residual
from regard.layers.kv_cache import Memory, Past


class Settings(Protocol):
    """The settings of a model that is built of such blocks."""

    @property
    def width(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def inner(self) -> int: ...
    @property
    def dropout(self) -> float: ...
    @property
    def activation(self) -> str: ...
    @property
    def norm(self) -> str: ...
    @property
    def positions(self) -> str: ...
    @property
    def span(self) -> int: ...


class BlockShape(NamedTuple):
    """What a block is made of."""

    width: int
    heads: int
    inner: int
    dropout: float
    activation: str
    norm_first: bool
    span: int = 0
    """Of relative positions; 0 = none."""
    epsilon: float = 1e-5
    """Of the layer norms."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As a model's settings say."""
        return cls(
            settings.width,
            settings.heads,
            settings.inner,
            settings.dropout,
            settings.activation,
            norm_first=settings.norm == "before",
            span=settings.span if settings.positions == "relative" else 0,
        )

    def residual(self) -> Residual:
        """The connection around a sub-layer."""
        return Residual(self.width, self.dropout, norm_first=self.norm_first, epsilon=self.epsilon)


class EncoderBlock(nn.Module):
    """Every word looks at every word, then the feed-forward layer; each within a residual connection.

    It is also the block of a model without encoder: there words look back only, at the whole text or at a past.
    """

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.attention = MultiHead(shape.width, shape.heads, shape.span)
        self.feed_forward = FeedForward(shape.width, shape.inner, shape.activation)
        self.around_attention = shape.residual()
        self.around_feed_forward = shape.residual()

    def forward(
        self, x_BTW: Tensor, real_BT: Tensor | None = None, *, causal: bool = False, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Whole texts: the states after, and where they looked."""
        return self.look(x_BTW, *self.project(x_BTW), real_BT, causal=causal, weights=weights)

    def project(self, x_BTW: Tensor) -> tuple[Tensor, "Past"]:
        """What words ask, and what they show to other words."""
        query, key, value = self.attention.project_all(self.around_attention.enter(x_BTW))
        return query, Past(key, value)

    def look(
        self,
        x_BTW: Tensor,
        query: Tensor,
        past: "Past",
        real_BK: Tensor | None = None,
        *,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The states after, and where they looked; `query` and the end of `past` are what `project` made of x.

        With `causal`, padding stands at the end, where no earlier word can look, and needs no mask.
        """
        context, seen = self.attention(query, past.key, past.value, real_BK, causal=causal, weights=weights)
        x_BTW = self.around_attention.leave(x_BTW, context)
        inner = self.feed_forward(self.around_feed_forward.enter(x_BTW))
        return self.around_feed_forward.leave(x_BTW, inner), seen


class DecoderBlock(nn.Module):
    """Masked self-attention, attention to the source, then the feed-forward layer.

    No padding mask is needed on the target: padding stands at the end, where no earlier word can look.
    """

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.self_attention = MultiHead(shape.width, shape.heads, shape.span)
        self.source_attention = MultiHead(shape.width, shape.heads)
        self.feed_forward = FeedForward(shape.width, shape.inner, shape.activation)
        self.around_self = shape.residual()
        self.around_source = shape.residual()
        self.around_feed_forward = shape.residual()

    def forward(
        self, x_BTW: Tensor, memory_BSW: Tensor, real_BS: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Whole targets and sources: the states after, and where they looked."""
        memory = self.remember(memory_BSW, real_BS)
        return self.look(x_BTW, *self.project(x_BTW), memory, causal=True, weights=weights)

    def look(
        self, x_BTW: Tensor, query: Tensor, past: "Past", memory: "Memory", *, causal: bool, weights: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The states after, and where they looked; `query` and the end of `past` are what `project` made of x.

        Rows that share a source stand together, as many for each; they look at it as if they were one row's words.
        """
        context, to_self = self.self_attention(query, past.key, past.value, causal=causal, weights=weights)
        x_BTW = self.around_self.leave(x_BTW, context)
        shared = self.around_source.enter(x_BTW).reshape(len(memory.key), -1, x_BTW.shape[2])
        query = self.source_attention.project_query(shared)
        context, to_source = self.source_attention(query, memory.key, memory.value, memory.real_BS, weights=weights)
        x_BTW = self.around_source.leave(x_BTW, context.view_as(x_BTW))
        inner = self.feed_forward(self.around_feed_forward.enter(x_BTW))
        return self.around_feed_forward.leave(x_BTW, inner), to_self, to_source

    def project(self, x_BTW: Tensor) -> tuple[Tensor, "Past"]:
        """What target words ask, and what they show to words after them."""
        query, key, value = self.self_attention.project_all(self.around_self.enter(x_BTW))
        return query, Past(key, value)

    def remember(self, memory_BSW: Tensor, real_BS: Tensor | None) -> "Memory":
        """Project the source: when writing, once for a whole sentence."""
        return Memory(*self.source_attention.project_memory(memory_BSW), real_BS)
