"""What training makes smaller: label-smoothed cross-entropy, summed over tokens.

Summed, not averaged by sentence: else a word of a short sentence would weigh more than a word of a long one.
"""

from torch import Tensor

from regard.layers.fast import smoothed_cross_entropy
from regard.models.interface import Source, Writer
from regard.text.batch import Pairs


def total_loss(model: Writer, batch: Pairs, smoothing: float) -> Tensor:
    """The loss of a batch, summed over its target tokens, END included and padding not."""
    inputs_BT, labels_BT = batch.target_BT[:, :-1], batch.target_BT[:, 1:]
    output = model(Source(batch.source_BS, batch.source_lengths_B), inputs_BT)
    real_BT = labels_BT != 0
    loss = smoothed_cross_entropy(output.hidden_BTW[real_BT], model.words.weight, labels_BT[real_BT], smoothing)
    return loss if output.extra_loss is None else loss + output.extra_loss
