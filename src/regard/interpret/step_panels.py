"""What the eight steps of attention say of themselves: title, formula, shapes, and the line of this package that does it.

And the same computation as a script.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.interpret.trace import Detail
from regard.layers import attention, blocks
from regard.models import bert, conv, seq2seq


class Code(NamedTuple):
    """A line of this package."""

    where: str
    """Such as "layers/attention.py:36"."""
    line: str


Shown = tuple[tuple[str, str], ...]
"""Columns of numbers, or vectors: by what name, and what they are called in pages/assets/see/recompute.js."""


class Panel(NamedTuple):
    """One step, before any number."""

    title: str
    formula: str
    said: str
    shapes: str
    code: tuple[Code, ...]
    shown: Shown
    """What the page shows of its numbers, where that depends on the model."""


SCRIPT = """\
import numpy as np
words = {words}
q = np.array({q})  # {word} asks
K = np.array({K})
V = np.array({V})
scores = ({score}) * {scale}
scores[np.array({seen}) == 0] = -np.inf  # what may not be seen
weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
context = weights @ V
print(dict(zip(words, weights.round(4).tolist())), context.round(4), sep="\\n")
"""

Place = tuple[Callable[..., Any], str]
"""A function, and how one of its lines begins or what it contains."""

_LOOK = seq2seq.Recurrent.look
_RECURRENT: list[list[Place]] = [
    [(_LOOK, ".masked_fill(~state.real_BS")],
    [(_LOOK, ".softmax(-1)")],
    [(_LOOK, "context_BQW = weights_BQS")],
]
_SOFTMAX: list[list[Place]] = [
    [(attention.attend, ".masked_fill(~may_look")],
    [(attention.attend, ".softmax(-1)")],
]
_MIXED: Place = (attention.attend, 'torch.einsum("bhqk,bhkd->bhqd"')
_PRODUCT: Place = (attention.attend, 'torch.einsum("bhqd,bhkd->bhqk"')
_EMBEDDED: Place = (blocks.Embedding.forward, "word_BTW + place_BTW")
# By way of attention, the lines of the eight steps; a step that is left out there has none.
PLACES: dict[str, list[list[Place]]] = {
    "heads": [
        [_EMBEDDED],
        [(blocks.Residual.enter, "self.norm(x)")],
        [(attention.MultiHead.project_all, "self._by_heads(")],
        [_PRODUCT],
        [(attention.attend, "scores_BHQK * scale")],
        *_SOFTMAX,
        [
            _MIXED,
            (attention.MultiHead.forward, "self.join("),
            (blocks.Residual.leave, "self.dropout.add("),
            (blocks.Residual.leave, "self.norm(joined)"),
        ],
    ],
    "additive": [
        [_EMBEDDED],
        [(_LOOK, "self.score(query_BQW")],
        [(seq2seq.Additive.forward, "self.query(query_BQW)")],
        [(seq2seq.Additive.forward, "self.v(fit_BQSW)")],
        [],
        *_RECURRENT,
    ],
    "product": [
        [_EMBEDDED],
        [(_LOOK, "self.score(query_BQW")],
        [(seq2seq.Product.forward, "def forward")],
        [(seq2seq.Product.forward, "@ key_BSW.mT")],
        [],
        *_RECURRENT,
    ],
    "conv": [
        [(conv.Embedding.forward, "word_BTW + place_TW")],
        [(conv.DecoderLayer.forward, "self.convolution(")],
        [(conv.DecoderLayer.look, "self.query(h_BTW)")],
        [_PRODUCT],
        [(conv.DecoderLayer.look, "scale=1.0")],
        *_SOFTMAX,
        [_MIXED, (conv.DecoderLayer.forward, "+ context_BTW) * HALVE")],
    ],
    "lecture": [[], [], [], [_PRODUCT], [(attention.attend, "scores_BHQK * scale")], *_SOFTMAX, [_MIXED]],
}

# Step 3, by way of attention.
MADE = {
    "heads": (
        "q = W_q x + b_q,  k_j = W_k x_j + b_k,  v_j = W_v x_j + b_v",
        "Three products: what the word asks, what every word answers, what it gives.",
    ),
    "additive": (
        "q = W s,  k_j = U h_j,  v_j = h_j",
        "State and source words are brought to a common space; what is given is the source word's own vector h.",
    ),
    "product": ("q = s,  k_j = W h_j,  v_j = h_j", "The state itself asks; the score “dot” leaves out W."),
    "conv": (
        "q = W h + b + x,  k_j = z_j,  v_j = z_j + x_j",
        "Window and word ask together; z is the encoder's output, and x_j the embedding it came from.",
    ),
    "lecture": ("q = x W_q,  k_j = x_j W_k,  v_j = x_j W_v", "Three products with three small matrices."),
}


def way_of(detail: Detail) -> str:
    """Which way of attention it is: that of heads, or one of the earlier three."""
    if detail.fit_D is not None:
        return "additive"
    if detail.around is not None or detail.scale != 1:
        return "heads"
    # The two that take plain products are told apart by what they read: convolutions need positions.
    return "conv" if detail.embedding is not None and detail.embedding[1] is not None else "product"


def panels(detail: Detail, way: str) -> tuple[Panel, ...]:
    """The eight steps of this layer."""
    steps = zip(_before(detail, way) + _after(detail, way), PLACES[way], _shown(detail, way), strict=True)
    return tuple(Panel(*text, _code(detail, places), shown) for text, places, shown in steps)


def script(detail: Detail) -> str:
    """One word's weights and context in ten lines of NumPy; its numbers go where the braces are."""
    score = "K @ q" if detail.fit_D is None else "np.tanh(q + K) @ np.array({v})"
    return SCRIPT.replace("{score}", score if detail.bias_HQK is None else score + " + np.array({bias})")


@cache
def line_of(function: Callable[..., Any], part: str) -> Code:
    """The first line of a function that contains `part`, and where it stands now."""
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:  # installed without its source
        return Code(f"{function.__module__}.{function.__qualname__}", "")
    number = next(n for n, line in enumerate(lines) if part in line)
    path = Path(inspect.getfile(function)).relative_to(Path(__file__).parents[1])
    return Code(f"{path.as_posix()}:{first + number}", lines[number].strip())


def is_normalised(detail: Detail) -> bool:
    """Whether word and position are not only added but normalised then, as in BERT."""
    if detail.embedding is None:
        return False
    word, position, total = detail.embedding
    return bool(np.abs(word + (0 if position is None else position) - total).max(initial=0) > 1e-3)


def _code(detail: Detail, places: Sequence[Place]) -> tuple[Code, ...]:
    swapped: dict[Place, Place] = {}
    if is_normalised(detail):
        swapped[_EMBEDDED] = (bert.Embedding.forward, "self.norm(word_BTW")
    if detail.kind == "cross":
        swapped[attention.MultiHead.project_all, "self._by_heads("] = (attention.MultiHead.project_query, "F.linear(")
    found = [line_of(*swapped.get(place, place)) for place in places]
    if detail.around is not None and detail.around.norm_first and len(found) > 1:
        found.pop()  # it was normalised on entering
    return tuple(found)


def _shown(detail: Detail, way: str) -> list[Shown]:
    around, root = detail.around, f"√{detail.query_HQD.shape[2]}"
    entered: Shown = (("x", "came"),) if around is not None or way == "lecture" else ()
    if around is not None and around.norm_first:
        entered = (("x", "came"), ("norm(x)", "normed"))
    score = ("q · k" if detail.fit_D is None and detail.bias_HQK is None else "score", "raw")
    both = (f"softmax, divided by {root}", "not divided")
    if detail.scale == 1:
        both = ("softmax, not divided", f"divided by {root}")
    scaled = () if way == "additive" else (score, ("scaled", "scores"), (both[0], "used"), (both[1], "other"))
    softmax = (("score − largest", "lowered"), ("exp", "exps"), ("÷ sum = weight", "weights"))
    mixed: Shown = (("c, the sum", "context"),)
    if around is not None:
        mixed += (
            ("heads joined", "together"),
            ("y = W_o … + b_o", "joined"),
            ("x, what came in", "came"),
            ("out", "output"),
        )
    return [(), entered, (), (score,), scaled, (), softmax, mixed]


Text = tuple[str, str, str, str]


def _before(detail: Detail, way: str) -> list[Text]:
    """Steps 1 to 3: where query, keys and values come from."""
    (heads, queries, size), keys = detail.query_HQD.shape, detail.key_HKD.shape[1]
    width = detail.embedding[2].shape[1] if detail.embedding is not None else heads * size
    added = detail.embedding is not None and detail.embedding[1] is not None
    formula = "x = word + position" if added else "x = word"
    said = "Every word of the vocabulary has a vector that was learned; the vector of its place in the text is added."
    if is_normalised(detail):
        formula = "x = LayerNorm(word + position + segment)"
    elif not added:
        said = "Every word of the vocabulary has a vector that was learned. No position is added to it here."
    if detail.embedding is None:
        formula, said = "", "These vectors were not kept for this text."
    if way == "lecture":
        formula = "x"
        said = "The lecture begins with vectors as they are: three inputs of four numbers each."
    state: dict[str, tuple[str, str]] = {
        "heads": (
            "x",
            "What the layer reads: in the first layer the vector of step 1, later what the layer below left.",
        ),
        "additive": ("s", "What asks is the state of the decoder's top layer before it reads this word."),
        "product": ("s", "What asks is the state of the decoder's top layer after it has read this word."),
        "conv": (
            "h = GLU(W [x …] + b)",
            "What asks is a window of the words written so far, through a gated convolution.",
        ),
        "lecture": ("x", "There is one layer, and it reads the inputs themselves."),
    }
    if detail.around is not None and detail.around.norm_first:
        state["heads"] = ("x̂ = LayerNorm(x)", state["heads"][1] + " It is normalised on entering.")
    other = " Keys and values are made from the other text: the encoder's output." if detail.kind == "cross" else ""
    shapes = f"q [{size}],  K [{keys} × {size}],  V [{keys} × {detail.value_HKD.shape[2]}]" + (
        f", one of {heads} heads of a width of {heads * size}" if heads > 1 else ""
    )
    return [
        ("Words become vectors", formula, said, f"[{queries} × {width}]"),
        ("What comes into the layer", *state[way], f"[{width}]"),
        ("Query, keys and values", MADE[way][0], MADE[way][1] + other, shapes),
    ]


def _after(detail: Detail, way: str) -> list[Text]:
    """Steps 4 to 8: from scores to what leaves the layer."""
    heads, _, size = detail.query_HQD.shape
    keys, given = detail.value_HKD.shape[1:]
    scores = ("s_j = q · k_j", "The more query and key point the same way, the larger their product.")
    if way == "additive":
        scores = (
            "s_j = v · tanh(q + k_j)",
            "A small network, with the learned vector v, says how well query and key fit.",
        )
    elif detail.bias_HQK is not None:
        scores = ("s_j = q · k_j + q · r_(j−i)", scores[1] + " A learned vector r for the distance is asked as well.")
    root = f"√{size} = {math.sqrt(size):.3f}"
    scale = (
        f"s_j ← s_j / √{size}",
        f"Products of long vectors are large, and softmax would see only the largest. So they are divided by {root}.",
    )
    if way == "additive":
        scale = ("s_j ← s_j", "Nothing is divided: tanh keeps each term between −1 and 1 already.")
    elif detail.scale == 1:
        scale = ("s_j ← s_j", f"Nothing is divided here. The Transformer would divide by {root}: both are shown.")
    hidden = int((~detail.seen_QK).sum())
    mask = "Nothing is hidden here: every word may be looked at, and nothing is padded."
    if hidden:
        mask = "A word that comes later is not known yet: its score becomes −∞, its weight exactly 0."
    text: list[Text] = [
        ("Scores", *scores, f"[{size}] · [{keys} × {size}] → [{keys}]"),
        ("Scale", *scale, f"[{keys}]"),
        ("Mask", "s_j ← −∞ where j may not be seen", mask, f"[{keys}]"),
        (
            "Softmax",
            "α_j = exp(s_j) / Σ_i exp(s_i)",
            "Weights from 0 to 1, and 1 in all. The largest score is taken off first: it changes nothing, and nothing overflows.",
            f"[{keys}]",
        ),
    ]
    return [*text, _mixed(detail, f"[{keys}] · [{keys} × {given}] → [{given}]", way, heads)]


def _mixed(detail: Detail, shapes: str, way: str, heads: int) -> Text:
    around = detail.around
    said = "The values, mixed by the weights, are what the word has found."
    if around is None:
        after = {"conv": " It is added to the layer's own state.", "lecture": " That is the output."}
        return (
            "Weighted sum",
            "c = Σ_j α_j v_j",
            said + after.get(way, " The decoder reads it together with its state."),
            shapes,
        )
    out = "x + y" if around.norm_first else "LayerNorm(x + y)"
    width = len(around.bias_W)
    return (
        "Weighted sum, heads joined",
        f"c = Σ_j α_j v_j,  y = W_o [c_1 … c_{heads}] + b_o,  out = {out}",
        said + f" The {heads} heads' findings are laid side by side, mixed by W_o, and added to what came in.",
        f"{shapes},  [{width} × {width}] · [{width}] → [{width}]",
    )
