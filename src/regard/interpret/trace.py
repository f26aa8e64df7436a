"""What was seen: rows of tokens, and for each layer the weights with which every word looked at every other.

Plain numbers, no torch: a trace outlives the model it was taken from. It refuses weights that cannot be right.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.errors import TraceError

Weights = npt.NDArray[np.float32]

KINDS = {
    "encoder": "encoder self-attention",
    "decoder": "masked self-attention",
    "cross": "attention to the source",
    "local": "local self-attention",
    "compressed": "memory-compressed attention",
}
"""By name, what a kind of attention is called."""
CAUSAL = {"decoder", "local", "compressed"}
"""Kinds in which no word sees a later one."""
TOLERANCE = 1e-4
"""What a row of weights may miss one by; sums of a few hundred float32 numbers stay well below."""


class Token(NamedTuple):
    """A piece of text as a picture shows it."""

    text: str
    first: int
    """Where it stands in the text, in characters; a special token stands nowhere, and first = last."""
    last: int
    word: int
    """Pieces of one word have the same number."""
    special: bool = False
    unknown: bool = False
    continues: bool = False
    """It goes on with the word of the token before it."""
    masked: bool = False


class Row(NamedTuple):
    """A text, and the tokens it was cut into."""

    text: str
    tokens: tuple[Token, ...]

    def find(self, word: str) -> int:
        """The first token of the first word that is spelled like this, whatever its capitals."""
        wanted = word.casefold()
        for numbers in self.words():
            if wanted == "".join(self.tokens[number].text for number in numbers).casefold():
                return numbers[0]
            for number in numbers:
                if wanted == self.tokens[number].text.casefold():
                    return number
        raise TraceError(f"There is no word {word!r} in: {self.text}")

    def words(self) -> list[list[int]]:
        """The numbers of the tokens that make up each word, in order."""
        together = groupby(range(len(self.tokens)), key=lambda number: self.tokens[number].word)
        return [list(numbers) for _, numbers in together]


@dataclass(frozen=True)
class Map:
    """One layer's attention: for every head, how much every query looks at every key."""

    kind: str
    """One of KINDS."""
    layer: int
    """Counted from 0, over all layers of this side of the model."""
    queries: str
    """The name of the row that looks, and of the one that is looked at."""
    keys: str
    weights_HQK: Weights
    norms_HK: Weights | None = None
    """How long each key's value is: a large weight on a small value adds little."""

    def __post_init__(self) -> None:
        where = f"{KINDS[self.kind]}, layer {self.layer + 1}"
        if not np.isfinite(self.weights_HQK).all() or self.weights_HQK.min(initial=0.0) < 0:
            raise TraceError(f"Weights of {where} are not finite numbers from 0 up. Please report this.")
        worst = float(np.abs(self.weights_HQK.sum(-1) - 1).max(initial=0.0))
        if worst > TOLERANCE:
            raise TraceError(
                f"A row of weights of {where} does not sum to one but misses it by {worst:.2g}. Please report this."
            )
        if self.kind in ("decoder", "local") and np.triu(self.weights_HQK, 1).any():
            raise TraceError(
                f"In {where} a word looks at a later one, which masked attention cannot do. Please report this."
            )

    @property
    def heads(self) -> int:
        """How many."""
        return len(self.weights_HQK)


@dataclass(frozen=True)
class Detail:
    """What one layer's weights were made of and went into; see the steps of the computation."""

    kind: str
    layer: int
    query_HQD: Weights
    key_HKD: Weights
    value_HKD: Weights
    scores_HQK: Weights
    """Scaled, before the mask."""
    context_HQD: Weights
    seen_QK: npt.NDArray[np.bool_]
    """Who may look where."""
    scale: float
    bias_HQK: Weights | None = None
    """Added to the products before they are scaled: relative positions."""
    fit_D: Weights | None = None
    """For additive attention: the score is fit . tanh(query + key)."""
    embedding: tuple[Weights, Weights | None, Weights] | None = None
    """Of the queries: word, position, and their sum as the first layer gets it."""
    around: "Around | None" = None


@dataclass(frozen=True)
class Around:
    """How the heads' contexts are joined and added to what came in."""

    input_QW: Weights
    join_WW: Weights
    bias_W: Weights
    joined_QW: Weights
    output_QW: Weights
    norm_first: bool
    gain_W: Weights
    shift_W: Weights
    epsilon: float


class Facts(NamedTuple):
    """What there is to know about the model that was watched."""

    name: str
    parameters: int = 0
    folder: str = ""
    settings: tuple[str, ...] = ()
    """The settings that shape it, in words: "depth 3"."""


Guess = tuple[str, float]


@dataclass(frozen=True)
class Trace:
    """Everything that was seen of one text, or of one text and its translation."""

    facts: Facts
    rows: dict[str, Row]
    """By name: "source", "target" (what the decoder reads) and "predicted" (what it writes there); or "text"."""
    maps: tuple[Map, ...]
    """Empty for a model that has no attention."""
    difference: float = 0.0
    """The largest difference between the states with weights shown and those of the fused kernel."""
    predictions: tuple[tuple[Guess, ...], ...] = ()
    """For each position of "predicted", the likeliest words."""
    halted: dict[str, list[int]] = field(default_factory=dict)
    """For a Universal Transformer, how many repetitions each token took, by row."""
    details: tuple[Detail, ...] = ()

    def __post_init__(self) -> None:
        for shown in self.maps:
            size = len(self.rows[shown.queries].tokens), len(self.rows[shown.keys].tokens)
            if shown.weights_HQK.shape[1:] != size:
                raise TraceError(
                    f"{shown.weights_HQK.shape[1:]} weights do not fit {size[0]} tokens that look and {size[1]} that "
                    f"are looked at ({KINDS[shown.kind]}, layer {shown.layer + 1}). Please report this."
                )

    @property
    def kinds(self) -> list[str]:
        """The kinds of attention there are, in the order in which they happen."""
        return list(dict.fromkeys(shown.kind for shown in self.maps))

    def map(self, kind: str | None = None, layer: int | None = None) -> Map:
        """One layer's attention; by default that of the last kind and its last layer. Layers count from 1."""
        kind = kind or (self.kinds[-1] if self.maps else "")
        found = {shown.layer + 1: shown for shown in self.maps if shown.kind == kind}
        if not found:
            what = f"It has: {', '.join(self.kinds)}." if self.maps else "This model has no attention at all."
            raise TraceError(f"{self.facts.name} has no attention of the kind {kind!r}. {what}")
        number = max(found) if layer is None else layer
        if number not in found:
            raise TraceError(f"There is no layer {layer} of {KINDS[kind]}. There are: {', '.join(map(str, found))}.")
        return found[number]

    def layers(self, kind: str) -> Iterator[Map]:
        """All layers of a kind."""
        return (shown for shown in self.maps if shown.kind == kind)

    def label(self, shown: Map) -> str:
        """A layer in both ways of counting: what it looks at is the output of the one before."""
        side = "encoder" if shown.kind == "encoder" else "decoder"
        of = max(other.layer for other in self.maps if (other.kind == "encoder") == (side == "encoder")) + 1
        what = "repetition" if self.halted else "layer"
        return f"{what} {shown.layer} → {shown.layer + 1} ({side} {what} {shown.layer + 1} of {of})"

    # -------------------------------------------------------------------------------------------- as a picture, or text

    def svg(
        self,
        kind: str | None = None,
        layer: int | None = None,
        head: int | str | None = None,
        word: str = "",
        *,
        pieces: bool = False,
        written: bool | None = None,
        theme: str = "auto",
    ) -> str:
        """The Heads picture: the larger the weight, the thicker the line. Heads and layers count from 1; None = all heads' mean.

        `head` can also be "max" or "rollout". With `word`, only what this word looks at, the largest weights in numbers.
        `pieces` keeps pieces of words apart. `written` names the positions of a translation by the word they write, as is the
        default for attention to the source. `theme` is "light", "dark", or "auto", which is as the reader has set it.
        """
        from regard.interpret.svg import heads_figure
        from regard.interpret.views import show

        return heads_figure(show(self, kind, layer, head, pieces=pieces, written=written), word, theme)

    def text(
        self,
        kind: str | None = None,
        layer: int | None = None,
        head: int | str | None = None,
        *,
        pieces: bool = False,
        written: bool | None = None,
    ) -> str:
        """The weights for a terminal, in one line a word: bench ← Bank .71 einer .12. What is shown is chosen as in `svg`."""
        from regard.interpret.terminal import compact
        from regard.interpret.views import show

        return compact(show(self, kind, layer, head, pieces=pieces, written=written))

    def csv(self) -> str:
        """All weights, one in a line."""
        from regard.interpret.weights_csv import weights_csv

        return weights_csv(self)

    def html(self) -> str:
        """The attention page: one file, nothing else needed."""
        from regard.interpret.page_data import page_of

        return page_of([self])

    def save(self, path: str | Path, **chosen: Any) -> None:
        """Write the page (.html), a picture (.svg), all weights (.csv) or the text (.txt), by the name's ending.

        `chosen` is what `svg` or `text` shall show (kind, layer, head and so on); the page and the table hold everything.
        """
        from regard.interpret.export import save

        save(self, Path(path), **chosen)

    def __repr__(self) -> str:
        return self.text() if self.maps else f"{self.facts.name} has no attention: there is nothing to draw."

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows: the page in a frame of its own; where that is not to be had, a picture; else text."""
        from regard.interpret.export import notebook

        return notebook(self)
