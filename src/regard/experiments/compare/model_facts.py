"""What is known of each model before it is trained: its kind, how far a signal travels in it, and where it learns well.

The longest path between two words is the number of steps, one after another, through which what one word says must pass
to reach the other, in a text of n words (Vaswani et al. 2017, section 4 and table 1). It is stated twice: between two
words of one text, and between a word of the source and the word that is being written.

- A recurrent network passes everything on from word to word: O(n).
- A stack of plain convolutions over k words reaches k - 1 words farther with each layer: O(n/k).
- Attention looks at every word directly: O(1).
"""

from typing import Any, NamedTuple

CONSTANT, LINEAR, WINDOWED = "O(1)", "O(n)", "O(n/k)"

Settings = dict[str, dict[str, Any]]


class Kind(NamedTuple):
    """A family of models, and what all of them have in common."""

    family: str
    within: str
    """Longest path between two words of the same text."""
    across: str
    """Longest path from a source word to the word that is being written."""
    settings: Settings
    """Where such a model learns well in a few minutes, if the user does not say otherwise."""


# One rate does not suit all. On the built-in corpus, recurrent networks learned best at 2e-3 and gated convolutions at 4e-3
# to 8e-3. The published Transformer, with the norm after each sub-layer, starts late at such rates unless its warm-up is
# longer than a few minutes allow; with the norm before, it starts at once.
_SLOW: Settings = {"train": {"rate": 2e-3}}
_FAST: Settings = {"train": {"rate": 5e-3}}
_NORM: Settings = {"train": {"rate": 2e-3}, "model": {"norm": "before"}}

KINDS = {
    "rnn": Kind("recurrent", LINEAR, LINEAR, _SLOW),
    "lstm": Kind("recurrent", LINEAR, LINEAR, _SLOW),
    "gru": Kind("recurrent", LINEAR, LINEAR, _SLOW),
    "seq2seq": Kind("recurrent encoder and decoder", LINEAR, LINEAR, _SLOW),
    "bahdanau": Kind("recurrent with attention", LINEAR, CONSTANT, _SLOW),
    "luong": Kind("recurrent with attention", LINEAR, CONSTANT, _SLOW),
    "conv": Kind("convolution with attention", WINDOWED, CONSTANT, _FAST),
    "transformer": Kind("attention", CONSTANT, CONSTANT, _NORM),
    "universal": Kind("attention", CONSTANT, CONSTANT, _NORM),
    "lm": Kind("attention, decoder alone", CONSTANT, CONSTANT, _SLOW),
    "memory": Kind("attention, decoder alone", CONSTANT, CONSTANT, _SLOW),
}
