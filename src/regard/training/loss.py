"""What training makes smaller: label-smoothed cross-entropy, summed over tokens.

Summed, not averaged by sentence: else a word of a short sentence would weigh more than a word of a long one.
"""

from torch import Tensor

from regard.layers.fast import smoothed_cross_entropy
from regard.models.interface import Source, Writer
from regard.text.batch import Pairs
from regard.text.tokenizer import PAD


def total_loss(model: Writer, batch: Pairs, smoothing: float) -> Tensor:
    """The loss of a batch, summed over its target tokens, END included and padding not."""
    inputs_BT, labels_BT = batch.target_BT[:, :-1], batch.target_BT[:, 1:]
    output = model(Source(batch.source_BS, batch.source_lengths_B), inputs_BT)
    # Only places that hold a word: the rest is neither scored nor paid for.
    word_N = (labels_BT != PAD).flatten().nonzero()[:, 0]
    hidden_NW = output.hidden_BTW.flatten(0, 1).index_select(0, word_N)
    loss = smoothed_cross_entropy(hidden_NW, model.words.weight, labels_BT.flatten()[word_N], smoothing)
    return loss if output.extra_loss is None else loss + output.extra_loss
