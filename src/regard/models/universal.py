"""The Universal Transformer (Dehghani et al. 2019, arXiv 1807.03819): one layer, repeated until each word has halted.

One encoder block and one decoder block, each applied again and again to its own result, so that depth costs no
parameters. Before each repetition every word is told where it stands and which repetition this is (section 2.1). With
halting (section 2.2), each word decides for itself after how many repetitions it is done: adaptive computation time
(Graves 2016, arXiv 1603.08983), word by word.

Departures from the paper:
- A halted word's state is copied unchanged, as the text says; the code of appendix C goes on changing what others see
  of it. Only so does a word's result not depend on how long its batch mates think, nor on words after it.
- The halting unit reads the state after a repetition, and the result is the weighted sum of the states, both as Graves
  writes; appendix C reads the state before it, and blends each state into the last.
- A word that reaches the last repetition stops there with what is left of its probability, as Graves writes, so that
  its weights always sum to one; appendix C drops what is left.
- Positions are counted from 0, as in the Transformer; the transition is the feed-forward layer, not the convolution.
- Positions may be relative instead (Shaw et al. 2018), known to attention; then only the repetition is added.
- The random number from which training may count positions instead (section 3.2) is drawn once for each pair of texts,
  for both sides and all repetitions; the authors' code draws one for a whole batch, and anew each time.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from regard.config import UniversalConfig
from regard.layers import masks
from regard.layers.blocks import Embedding, xavier
from regard.layers.kv_cache import Memory, Past, sources_of
from regard.layers.positions import Sinusoidal, vectors
from regard.layers.transformer import BlockShape, DecoderBlock, EncoderBlock
from regard.models.base import Output, Source, State, Writer

PADDING = 0  # The id that fills up a target: it takes no repetition and costs none.


class Universal(Writer):
    """Reads a source by one block and writes a target by another, each repeated as often as its words need."""

    def __init__(self, config: UniversalConfig, vocabulary: int) -> None:
        super().__init__()
        self.halting, self.price, self.offset = config.halting, config.ponder, config.offset
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.words = nn.Linear(config.width, vocabulary, bias=False)
        for part in (self.encoder.block, self.decoder.block, self.words):
            xavier(part)
        self.source_embedding = Embedding(vocabulary, config.width, config.dropout, positions=None)
        self.target_embedding = self.source_embedding
        if config.tie != "all":
            self.target_embedding = Embedding(vocabulary, config.width, config.dropout, positions=None)
        if config.tie != "none":
            self.words.weight = self.target_embedding.table.weight

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        seen: dict[str, Tensor] | None = {} if attention else None
        read, written = self._think(source, target_BT, seen)
        # Only training pays for thinking: a validation loss is the likelihood and nothing else.
        pays = self.training and self.halting
        cost = self.price * (read.ponder() + written.ponder()) if pays else None
        return Output(written.result_BTW, seen or {}, cost)

    def blocks(self) -> list[nn.Module]:
        # Not what they repeat: how often depends on the words, which differ from device to device.
        return [self.encoder, self.decoder]

    def start(self, source: Source, *, attention: bool = False) -> "UniversalState":
        real_BS = masks.real(source.lengths_B, source.ids_BS.shape[1])
        memory_BSW = self.encoder(self.source_embedding(source.ids_BS), real_BS, None).result_BTW
        seen_source = self.decoder.block.remember(memory_BSW, real_BS)
        return UniversalState(
            [seen_source.no_past()] * self.decoder.depth, seen_source, position=0, attention=attention
        )

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, "UniversalState"]:
        assert isinstance(state, UniversalState), "a state belongs to the model that started it"
        hidden_BTW, after = self.decoder.step(self.target_embedding(last_B[:, None]), state)
        return hidden_BTW[:, 0], after

    def steps(self, source: Source, target_BT: Tensor) -> tuple[Tensor, Tensor]:
        """How many repetitions each word took: of the source (B, S) and of the target (B, T); 0 for padding."""
        with torch.no_grad():
            read, written = self._think(source, target_BT, None)
        return read.steps_BT, written.steps_BT

    def report(self, source: Source, target_BT: Tensor) -> dict[str, Tensor]:
        if not self.halting:
            return {}
        names = ("encoder_steps_per_word", "decoder_steps_per_word")
        both = zip(names, self.steps(source, target_BT), strict=True)
        return {name: steps_BT[steps_BT > 0] for name, steps_BT in both}

    def _think(self, source: Source, target_BT: Tensor, seen: dict[str, Tensor] | None) -> tuple["Thought", "Thought"]:
        real_BS = masks.real(source.lengths_B, source.ids_BS.shape[1])
        first: int | Tensor = 0
        if self.offset and self.training:
            # The same for both sides: else no word could be told by its position which source word is its own.
            first = torch.randint(self.offset + 1, (len(target_BT),), device=target_BT.device)
        read = self.encoder(self.source_embedding(source.ids_BS), real_BS, seen, first)
        x_BTW, real_BT = self.target_embedding(target_BT), target_BT != PADDING
        return read, self.decoder(x_BTW, real_BT, read.result_BTW, real_BS, seen, first)


class Repeated(nn.Module):
    """What encoder and decoder share: coordinates before each repetition, halting after it, and the last norm."""

    def __init__(self, config: UniversalConfig) -> None:
        super().__init__()
        self.depth, self.threshold = config.depth, config.threshold
        self.told_where = config.positions == "sinusoidal"
        self.waves = Sinusoidal(config.width)
        self.halting = Halting(config.width, config.depth) if config.halting else None
        # With the norm before each sub-layer the sum itself is never normalised; one norm at the end does it.
        self.norm = nn.LayerNorm(config.width) if config.norm == "before" else nn.Identity()

    def place(self, x_BTW: Tensor, repetition: int, first: int | Tensor = 0) -> Tensor:
        """Add the coordinates of words that stand at positions first, first + 1, ... (section 2.1, P^t).

        Repetitions are counted from 0 here and from 1 in the paper. A tensor gives each row its own first. Of relative
        positions attention knows; then only the repetition is added.
        """
        time_1W: Tensor = self.waves(repetition + 1, repetition + 2)
        if not self.told_where:
            return x_BTW + time_1W
        return x_BTW + (vectors(self.waves, first, x_BTW.shape[1]) + time_1W)

    def settle(self, thought: "Thought", x_BTW: Tensor, repetition: int) -> "Thought":
        """Take the states that a repetition made; with halting, ask each word whether it is done."""
        if self.halting is None:
            steps_BT = thought.steps_BT + thought.running_BT
            return thought._replace(state_BTW=x_BTW, result_BTW=x_BTW, steps_BT=steps_BT)
        # The unit sees a state as the outside would: normalised.
        probability_BT = self.halting(self.norm(x_BTW))
        return halt(thought, x_BTW, probability_BT, self.threshold, last=repetition + 1 == self.depth)

    def finish(self, thought: "Thought") -> "Thought":
        """The result, ready to be read."""
        return thought._replace(result_BTW=self.norm(thought.result_BTW))


class Encoder(Repeated):
    """Every source word looks at every source word, again and again."""

    def __init__(self, config: UniversalConfig) -> None:
        super().__init__(config)
        self.block = EncoderBlock(BlockShape.of(config))

    def forward(
        self, x_BSW: Tensor, real_BS: Tensor | None, seen: dict[str, Tensor] | None, first: int | Tensor = 0
    ) -> "Thought":
        thought = begin(x_BSW, real_BS)
        for repetition in range(self.depth):
            if not thought.running_BT.any():
                break  # Who has halted is changed no more, so that nothing is lost.
            placed_BSW = self.place(thought.state_BTW, repetition, first)
            x_BSW, weights = self.block(placed_BSW, real_BS, weights=seen is not None)
            thought = self.settle(thought, x_BSW, repetition)
            if seen is not None:
                seen[f"encoder.{repetition}.self"] = weights
        return self.finish(thought)


class Decoder(Repeated):
    """Every target word looks at the target words before it and at the whole source, again and again."""

    def __init__(self, config: UniversalConfig) -> None:
        super().__init__(config)
        self.block = DecoderBlock(BlockShape.of(config))

    def forward(
        self,
        x_BTW: Tensor,
        real_BT: Tensor,
        memory_BSW: Tensor,
        real_BS: Tensor | None,
        seen: dict[str, Tensor] | None,
        first: int | Tensor = 0,
    ) -> "Thought":
        thought, memory = begin(x_BTW, real_BT), self.block.remember(memory_BSW, real_BS)
        for repetition in range(self.depth):
            if not thought.running_BT.any():
                break
            placed_BTW = self.place(thought.state_BTW, repetition, first)
            query, past = self.block.project(placed_BTW)
            x_BTW, to_self, to_source = self.block.look(
                placed_BTW, query, past, memory, causal=True, weights=seen is not None
            )
            thought = self.settle(thought, x_BTW, repetition)
            if seen is not None:
                seen[f"decoder.{repetition}.self"] = cast(Tensor, to_self)
                seen[f"decoder.{repetition}.source"] = cast(Tensor, to_source)
        return self.finish(thought)

    def step(self, x_BTW: Tensor, state: "UniversalState") -> tuple[Tensor, "UniversalState"]:
        """One word further. At each repetition it looks at what the words before it were at that repetition."""
        thought, pasts, looked_BS = begin(x_BTW, None), [], None
        for repetition, past in enumerate(state.pasts):
            placed_BTW = self.place(thought.state_BTW, repetition, first=state.position)
            query, own = self.block.project(placed_BTW)
            pasts.append(past.followed_by(own))
            if not thought.running_BT.any():
                continue  # All have halted, but a later word may think longer and look at them.
            x_BTW, _, to_source = self.block.look(
                placed_BTW, query, pasts[-1], state.memory, causal=False, weights=state.attention
            )
            if to_source is not None:
                now_BS = to_source.mean(1).flatten(0, 1)
                looked_BS = now_BS if looked_BS is None else torch.where(thought.running_BT, now_BS, looked_BS)
            thought = self.settle(thought, x_BTW, repetition)
        after = replace(state, pasts=pasts, position=state.position + 1, attention_BS=looked_BS)
        return self.finish(thought).result_BTW, after


class Halting(nn.Module):
    """The probability that a word is done, from its state: a sigmoid unit (Graves 2016, section 2)."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.unit = nn.Linear(width, 1)
        # At first every word takes all repetitions (if the threshold is high), each with weight 1 / depth. What a repetition
        # is good for shows only in one that was made, so that a word that began with few would never learn to take
        # more; the cost of pondering then takes away what is of no use.
        nn.init.zeros_(self.unit.weight)
        nn.init.constant_(self.unit.bias, -math.log(max(1, depth - 1)))

    def forward(self, x_BTW: Tensor) -> Tensor:
        # In float32: a threshold so near to one lies within the rounding of bfloat16.
        with torch.autocast(x_BTW.device.type, enabled=False):
            probability_BT1 = self.unit(x_BTW.float()).sigmoid()
        return cast(Tensor, probability_BT1[..., 0])


class Thought(NamedTuple):
    """How far each word has come after some repetitions. Padding never runs; its result means nothing."""

    state_BTW: Tensor
    """What other words see: the last state, copied once a word has halted."""
    result_BTW: Tensor
    """The states so far, each times its weight; without halting, the last state."""
    running_BT: Tensor
    spent_BT: Tensor
    """The weights so far, summed; one when a word has halted."""
    steps_BT: Tensor
    remainder_BT: Tensor
    """The weight of the repetition at which a word halted."""

    def ponder(self) -> Tensor:
        """Graves 2016, section 2.1: repetitions and remainder, summed over words.

        The count has no gradient; the remainder has, and falls as earlier repetitions claim more.
        """
        return (self.steps_BT + self.remainder_BT).sum()


def begin(x_BTW: Tensor, real_BT: Tensor | None) -> Thought:
    """Before the first repetition; every word is running, if it is one."""
    none_BT = x_BTW.new_zeros(x_BTW.shape[:2], dtype=torch.float32)
    running_BT = none_BT == 0 if real_BT is None else real_BT
    return Thought(x_BTW, torch.zeros_like(x_BTW), running_BT, none_BT, none_BT.long(), none_BT)


def halt(thought: Thought, x_BTW: Tensor, probability_BT: Tensor, threshold: float, *, last: bool) -> Thought:
    """Take one more repetition into account, for the words still running (Graves 2016, section 2).

    A word stops when its probabilities reach the threshold (1 - epsilon in the paper), or at the last repetition. It
    then gives the state of this repetition all that is left, so that its weights sum to one.

    The words that have stopped keep state and result to the bit. Whether one stops is a comparison: a word within
    rounding of the threshold may come out differently when its sums are computed in another order.
    """
    left_BT = 1 - thought.spent_BT
    stops_BT = thought.running_BT & (last or thought.spent_BT + probability_BT >= threshold)
    weight_BT = torch.where(stops_BT, left_BT, probability_BT) * thought.running_BT
    return Thought(
        state_BTW=torch.where(thought.running_BT[..., None], x_BTW, thought.state_BTW),
        result_BTW=thought.result_BTW + weight_BT[..., None] * x_BTW,
        running_BT=thought.running_BT & ~stops_BT,
        spent_BT=thought.spent_BT + weight_BT,
        steps_BT=thought.steps_BT + thought.running_BT,
        remainder_BT=torch.where(stops_BT, left_BT, thought.remainder_BT),
    )


@dataclass(frozen=True)
class UniversalState:
    """The past of every repetition, also of those that no word has needed yet, and the source."""

    pasts: list[Past]
    memory: Memory
    position: int
    attention: bool
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "UniversalState":
        source_N = sources_of(index_B, rows=len(self.pasts[0].key), sources=len(self.memory.key))
        return replace(
            self,
            pasts=[past.reorder(index_B) for past in self.pasts],
            memory=self.memory.select(source_N),
            attention_BS=self.attention_BS.index_select(0, index_B) if self.attention_BS is not None else None,
        )
