"""What training makes smaller, for each kind of batch: cross-entropy, summed over tokens.

Summed, not averaged by sentence: else a word of a short sentence would weigh more than a word of a long one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.models.base import LanguageModel, Output, Source, Writer
from regard.text.batching.batch import Batch, Batches, Pairs
from regard.text.batching.passages import Passages
from regard.text.tokenizers.tokenizer import PAD
from regard.training.losses.label_smoothing import smoothed_cross_entropy
from regard.training.losses.rdrop import agreement_loss

Carried = tuple[Tensor, ...]


class Loss(NamedTuple):
    """The loss of one batch."""

    total: Tensor
    """Summed over the batch's tokens."""
    carried: Carried = ()
    """What the model remembers for the next batch, if that goes on where this one ends."""


Objective = Callable[[Any, Any, float, Carried], Loss]
"""(model, batch, smoothing, what the batch before carried) -> its loss."""


def pairs_loss(model: Writer, batch: Pairs, smoothing: float, carried: Carried = ()) -> Loss:
    """Of every target word given the source and the words before it; END is a word, padding is not."""
    output = model(Source(batch.source_BS, batch.source_lengths_B), batch.target_BT[:, :-1])
    return Loss(_of_words(model, output, batch.target_BT[:, 1:], smoothing))


def twice(alpha: float) -> Objective:
    """The same with R-Drop: in training, each pair is read twice, and what dropout makes of it must agree."""

    def objective(model: Writer, batch: Pairs, smoothing: float, carried: Carried = ()) -> Loss:
        if not model.training:
            return pairs_loss(model, batch, smoothing)
        # Side by side, so that every row of either half has a dropout of its own.
        source_BS, lengths_B = torch.cat([batch.source_BS] * 2), torch.cat([batch.source_lengths_B] * 2)
        output = model(Source(source_BS, lengths_B), torch.cat([batch.target_BT[:, :-1]] * 2))
        labels_BT = batch.target_BT[:, 1:]
        (first_NW, second_NW), label_N = at_words(labels_BT, *output.hidden_BTW.chunk(2))
        loss = agreement_loss(first_NW, second_NW, model.words.weight, label_N, smoothing, alpha)
        return Loss(loss if output.extra_loss is None else loss + output.extra_loss / 2)

    return objective


def passages_loss(model: LanguageModel, batch: Passages, smoothing: float, carried: Carried = ()) -> Loss:
    """Of every word given the words before it in its passage, and what was carried into it."""
    rows, device = len(batch.ids_BT), batch.ids_BT.device
    nothing = Source(batch.ids_BT[:, :0], torch.zeros(rows, dtype=torch.long, device=device))
    before = carried if model.carries and not batch.fresh else ()
    output = model(nothing, batch.ids_BT[:, :-1], carried=before)
    return Loss(_of_words(model, output, batch.ids_BT[:, 1:], smoothing), output.carried)


@torch.no_grad()
def whole_loss(
    objective: Objective, model: nn.Module, batches: Batches[Batch], device: torch.device
) -> tuple[float, int]:
    """The loss of all batches, one after the other and without smoothing, and how many tokens they have."""
    total, tokens = 0.0, 0
    carried: Carried = ()
    for batch in batches.batches(epoch=0):
        loss, carried = objective(model, batch.to(device), 0.0, carried)
        total += float(loss)
        tokens += batch.tokens
    return total, tokens


def at_words(labels_BT: Tensor, *by_place: Tensor) -> tuple[list[Tensor], Tensor]:
    """Of each tensor the places that hold a word, row after row, and the words: the rest is neither scored nor paid for."""
    word_N = (labels_BT != PAD).flatten().nonzero()[:, 0]
    return [place.flatten(0, 1).index_select(0, word_N) for place in by_place], labels_BT.flatten()[word_N]


def _of_words(model: Writer, output: Output, labels_BT: Tensor, smoothing: float) -> Tensor:
    (hidden_NW,), label_N = at_words(labels_BT, output.hidden_BTW)
    loss = smoothed_cross_entropy(hidden_NW, model.words.weight, label_N, smoothing)
    return loss if output.extra_loss is None else loss + output.extra_loss
