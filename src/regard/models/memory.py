"""Decoder-only, with memory-compressed attention (Liu et al. 2018, "Generating Wikipedia by Summarizing Long Sequences").

Source and target stand in one row, and two kinds of layers take turns (the paper's LMLML): in a local one each word
looks around in its own block, in a compressed one at the whole text so far, of which every few words have been joined
into one key and one value. Neither ever holds a table of all words by all words, so that a row may have ten thousand.

Departures from the paper:
- The paper leaves open what the first words see of a compressed text, as a slot may be seen only when its last word
  has been read. Here the first word of a row is a slot by itself, seen by all, as in the authors' library
  (tensor2tensor). There the last word of a slot does not see it, here it does.
- Training learns to write the target, not also the source; END, then BEGIN, stand between them, no extra mark.
- The layer norm stands before each sub-layer unless set otherwise. There is no mixture of experts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import MemoryConfig
from regard.layers.attention import MultiHead
from regard.layers.blocks import Embedding, FeedForward, xavier
from regard.layers.kv_cache import Past
from regard.layers.positions import Sinusoidal
from regard.layers.prompt import join, targets_of
from regard.layers.transformer import BlockShape
from regard.models.base import LanguageModel, Output, Source, State

Pasts = tuple[Past, ...]
"""What one layer keeps of the words it has read; rows of different lengths are at different columns of it."""


class MemoryCompressed(LanguageModel):
    """Goes on with a text of any length."""

    longest_source = 100_000

    def __init__(self, config: MemoryConfig, vocabulary: int) -> None:
        super().__init__()
        layers = nn.ModuleList(Block(config, number) for number in range(config.depth))
        self.layers = cast("Sequence[Block]", layers)
        # With the norm before each sub-layer the sum itself is never normalised; one norm at the end does it.
        self.norm = nn.LayerNorm(config.width) if config.norm == "before" else nn.Identity()
        self.words = nn.Linear(config.width, vocabulary, bias=False)
        xavier(self)
        self.embedding = Embedding(vocabulary, config.width, config.dropout, Sinusoidal(config.width))
        if config.tie:
            self.words.weight = self.embedding.table.weight

    def forward(
        self, source: Source, target_BT: Tensor, *, attention: bool = False, carried: tuple[Tensor, ...] = ()
    ) -> Output:
        joined_BJ, place_BT = join(source.ids_BS, source.lengths_B, target_BT)
        x_BJW, seen = self.embedding(joined_BJ), {}
        for number, layer in enumerate(self.layers):
            x_BJW, weights = layer(x_BJW, weights=attention)
            if weights is not None:
                seen[f"decoder.{number}.{layer.attention.sees}"] = weights
        return Output(self.norm(targets_of(x_BJW, place_BT)), seen)

    def blocks(self) -> list[nn.Module]:
        return [*self.layers]

    def start(self, source: Source, *, attention: bool = False) -> "MemoryState":
        # One column of padding, after all that is read: so there is something to compute with also where there is none.
        x_BSW, pasts = self.embedding(F.pad(source.ids_BS, (0, 1))), []
        for layer in self.layers:
            query, own = layer.project(x_BSW)
            pasts.append(layer.attention.keep(own, source.lengths_B))
            context, _ = layer.attention.look(query, own, weights=False)
            x_BSW = layer.go_on(x_BSW, context)
        return MemoryState(pasts, source.lengths_B, longest=int(source.lengths_B.max()))

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "MemoryState"]:
        assert isinstance(state, MemoryState), "a state belongs to the model that started it"
        x_B1W, pasts = self.embedding(last_B[:, None], first=state.count_B), []
        for layer, past in zip(self.layers, state.pasts, strict=True):
            query, own = layer.project(x_B1W)
            context, past = layer.attention.go_on(query, own, past, state.count_B, state.longest)
            pasts.append(past)
            x_B1W = layer.go_on(x_B1W, context)
        after = replace(state, pasts=pasts, count_B=state.count_B + 1, longest=state.longest + 1)
        return self.norm(x_B1W)[:, 0], after


@dataclass(frozen=True)
class MemoryState:
    """What every layer keeps, and how many words each row has: source and target together."""

    pasts: list[Pasts]
    count_B: Tensor
    longest: int
    """At least the largest count."""
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "MemoryState":
        pasts = [tuple(past.reorder(index_B) for past in layer) for layer in self.pasts]
        return replace(self, pasts=pasts, count_B=self.count_B.index_select(0, index_B))


class Block(nn.Module):
    """Attention of one kind, then the feed-forward layer; each within a residual connection."""

    def __init__(self, config: MemoryConfig, number: int) -> None:
        super().__init__()
        shape = BlockShape(
            config.width, config.heads, config.inner, config.dropout, config.activation, config.norm == "before"
        )
        self.attention: Full
        if config.full:
            self.attention = Full(config.width, config.heads)
        elif number % 2 == 0:
            self.attention = Local(config.width, config.heads, config.block)
        else:
            self.attention = Compressed(config.width, config.heads, config.kernel)
        self.feed_forward = FeedForward(config.width, config.inner, config.activation)
        self.around_attention = shape.residual()
        self.around_feed_forward = shape.residual()

    def forward(self, x_BTW: Tensor, *, weights: bool) -> tuple[Tensor, Tensor | None]:
        """Whole texts: the states after, and where they looked."""
        context_BTW, seen = self.attention.look(*self.project(x_BTW), weights=weights)
        return self.go_on(x_BTW, context_BTW), seen

    def project(self, x_BTW: Tensor) -> tuple[Tensor, Past]:
        """What words ask, and what they show to words after them."""
        query, key, value = self.attention.project_all(self.around_attention.enter(x_BTW))
        return query, Past(key, value)

    def go_on(self, x_BTW: Tensor, context_BTW: Tensor) -> Tensor:
        """The rest of the block, once attention has given its context."""
        x_BTW = self.around_attention.leave(x_BTW, context_BTW)
        inner = self.feed_forward(self.around_feed_forward.enter(x_BTW))
        return self.around_feed_forward.leave(x_BTW, inner)


class Full(MultiHead):
    """Each word looks at all words up to itself."""

    sees = "self"

    def look(self, query_BHQD: Tensor, own: Past, *, weights: bool) -> tuple[Tensor, Tensor | None]:
        """The context of whole rows, and each word's weights over what it may see, if asked for."""
        return cast("tuple[Tensor, Tensor | None]", self(query_BHQD, *own, causal=True, weights=weights))

    def keep(self, own: Past, count_B: Tensor) -> Pasts:
        """What writing needs of rows that have been read, of which `count` words are real."""
        return (own,)

    def go_on(self, query_BH1D: Tensor, own: Past, pasts: Pasts, count_B: Tensor, longest: int) -> tuple[Tensor, Pasts]:
        """The context of one more word in each row, which has `count` words before it; and what to keep now."""
        past = put(pasts[0], count_B[:, None], own, columns=longest + 1)
        return self.see(query_BH1D, past, count_B), (past,)

    def see(self, query_BH1D: Tensor, past: Past, last_B: Tensor) -> Tensor:
        """The context of one word, which may look at its row's columns up to the `last` one."""
        may_look_BK = torch.arange(past.key.shape[2], device=last_B.device) <= last_B[:, None]
        context, _ = self(query_BH1D, *past, may_look_BK)
        return cast(Tensor, context)


class Local(Full):
    """Each word looks at the words of its own block, up to itself (the paper's local attention)."""

    sees = "local"

    def __init__(self, width: int, heads: int, block: int) -> None:
        super().__init__(width, heads)
        self.block = block

    def look(self, query_BHQD: Tensor, own: Past, *, weights: bool) -> tuple[Tensor, Tensor | None]:
        batch, heads, length, _ = query_BHQD.shape
        block = min(self.block, length)
        blocks = -(-length // block)
        # Every block becomes a row of its own, in a larger batch.
        padded = (F.pad(x, (0, 0, 0, blocks * block - length)) for x in (query_BHQD, *own))
        query, key, value = (x.reshape(batch, heads, blocks, block, -1).transpose(1, 2).flatten(0, 1) for x in padded)
        context, seen = self(query, key, value, causal=True, weights=weights)
        if seen is not None:
            all_words = seen.new_zeros(batch, heads, blocks, block, blocks, block)
            all_words.diagonal(dim1=2, dim2=4).copy_(seen.view(batch, blocks, heads, block, block).movedim(1, -1))
            seen = all_words.flatten(4, 5).flatten(2, 3)[:, :, :length, :length]
        return context.view(batch, -1, self.width)[:, :length], seen

    def keep(self, own: Past, count_B: Tensor) -> Pasts:
        return (part(own, count_B - count_B % self.block, min(self.block, own.key.shape[2])),)

    def go_on(self, query_BH1D: Tensor, own: Past, pasts: Pasts, count_B: Tensor, longest: int) -> tuple[Tensor, Pasts]:
        column_B = count_B % self.block
        past = put(pasts[0], column_B[:, None], own, columns=min(self.block, longest + 1))
        return self.see(query_BH1D, past, column_B), (past,)


class Compressed(Full):
    """Each word looks at slots of `kernel` words, joined by a strided convolution, that are full when it is read.

    Slot 0 is the first word by itself; then word i sees the slots up to (i + 1) // kernel.
    """

    sees = "compressed"

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__(width, heads)
        self.kernel = kernel
        # As the windows do not overlap, a convolution is one product for each of them.
        self.join_keys = nn.Linear(kernel * width, width)
        self.join_values = nn.Linear(kernel * width, width)

    def look(self, query_BHQD: Tensor, own: Past, *, weights: bool) -> tuple[Tensor, Tensor | None]:
        batch, heads, length, _ = query_BHQD.shape
        key, value = first(own).followed_by(self.compress(own))
        slots = key.shape[2]
        # With one place left empty before the first word, each next `kernel` places see one slot more. So the first of
        # them all, the second of them all, and so on, are rows of plain causal attention, which needs no mask.
        query = F.pad(query_BHQD, (0, 0, 1, slots * self.kernel - length - 1))
        query = query.reshape(batch, heads, slots, self.kernel, -1).movedim(3, 1).flatten(0, 1)
        key, value = key.repeat_interleave(self.kernel, 0), value.repeat_interleave(self.kernel, 0)
        context, seen = self(query, key, value, causal=True, weights=weights)
        if seen is not None:
            seen = seen.view(batch, self.kernel, heads, slots, slots).movedim(1, 3).flatten(2, 3)[:, :, 1 : length + 1]
        context = context.view(batch, self.kernel, slots, self.width).transpose(1, 2).flatten(1, 2)
        return context[:, 1 : length + 1], seen

    def keep(self, own: Past, count_B: Tensor) -> Pasts:
        tail = part(own, count_B - count_B % self.kernel, self.kernel)
        return first(own).followed_by(self.compress(own)), tail

    def go_on(self, query_BH1D: Tensor, own: Past, pasts: Pasts, count_B: Tensor, longest: int) -> tuple[Tensor, Pasts]:
        slots, tail = pasts
        tail = put(tail, (count_B % self.kernel)[:, None], own, columns=self.kernel)
        # A slot that is not yet full is written too, but not seen, and is written anew with the next word.
        slot, column_B = self.compress(tail), 1 + count_B // self.kernel
        begins_B = count_B == 0
        both = choose(begins_B, own, slot).followed_by(slot)
        column_B2 = torch.stack([column_B.masked_fill(begins_B, 0), column_B], 1)
        slots = put(slots, column_B2, both, columns=2 + longest // self.kernel)
        return self.see(query_BH1D, slots, (count_B + 1) // self.kernel), (slots, tail)

    def compress(self, own: Past) -> Past:
        """One key and one value for each `kernel` words; those left over have none."""
        return Past(self._compress(own.key, self.join_keys), self._compress(own.value, self.join_values))

    def _compress(self, x_BHTD: Tensor, convolution: nn.Linear) -> Tensor:
        batch, heads, length, size = x_BHTD.shape
        slots = length // self.kernel
        windows = x_BHTD[:, :, : slots * self.kernel].transpose(1, 2).reshape(batch, slots, self.kernel * self.width)
        return cast(Tensor, convolution(windows)).view(batch, slots, heads, size).transpose(1, 2)


def first(past: Past) -> Past:
    """The first word of each row."""
    return Past(past.key[:, :, :1], past.value[:, :, :1])


def part(past: Past, first_B: Tensor, size: int) -> Past:
    """`size` words of each row, from its own first one on; zeros where the row has ended."""
    column_BK = first_B[:, None] + torch.arange(size, device=first_B.device)
    key, value = (F.pad(x, (0, 0, 0, size)) for x in past)
    index = column_BK[:, None, :, None].expand(-1, key.shape[1], -1, key.shape[3])
    return Past(key.gather(2, index), value.gather(2, index))


def put(past: Past, column_BN: Tensor, own: Past, columns: int) -> Past:
    """N words written into each row at columns of its own; there are `columns` at least."""
    more = max(0, columns - past.key.shape[2])
    index = column_BN[:, None, :, None].expand(-1, own.key.shape[1], -1, own.key.shape[3])
    key, value = (F.pad(old, (0, 0, 0, more)).scatter(2, index, new) for old, new in zip(past, own, strict=True))
    return Past(key, value)


def choose(which_B: Tensor, yes: Past, no: Past) -> Past:
    """One or the other in each row."""
    which = which_B[:, None, None, None]
    return Past(torch.where(which, yes.key, no.key), torch.where(which, yes.value, no.value))
