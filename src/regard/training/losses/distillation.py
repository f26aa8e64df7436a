"""Distillation word by word (Kim and Rush 2016): what else the teachers might have written, at every word of a text.

A teacher's probabilities for a pair never change, so it is asked once, and its likeliest words are remembered.
"""

from hashlib import blake2b

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.models.base import Source, Writer
from regard.text.batching.batch import Pairs
from regard.training.losses.cross_entropy import Carried, Loss, Objective, at_words, pairs_loss
from regard.training.losses.label_smoothing import smoothed_cross_entropy

LIKELY = 32
"""Words of which a teacher's probability is kept at each place; the rest has little, and counts as nothing."""
_REMEMBERED = 5_000_000  # places at most: about a gigabyte
_PIECE = 65_536  # of these places, in one tensor
_ROWS = 1024  # of which all probabilities are held at a time


class Teacher:
    """A model, or several as one, that says how likely the words of pairs are."""

    def __init__(self, model: Writer) -> None:
        self.model = model.eval()
        self._memory = _Memory()

    def likely(self, batch: Pairs) -> tuple[Tensor, Tensor]:
        """For each word of the batch's targets, row after row: the likeliest words in its place, and their probabilities."""
        keys = _keys(batch)
        found = {key: self._memory.recall(key) for key in keys if key in self._memory}
        # Of several processes each meets in every epoch pairs that another had before, so whole batches are seldom known.
        if new := {key: row for row, key in enumerate(keys) if key not in found}:
            unknown = batch.only(list(new.values()))
            lengths = (unknown.target_lengths_B - 1).tolist()
            parts = zip(*(torch.split(tensor, lengths) for tensor in self._asked(unknown)), strict=True)
            for key, part in zip(new, parts, strict=True):
                self._memory.keep(key, *part)
                found[key] = part
        words, probabilities = zip(*(found[key] for key in keys), strict=True)
        device = batch.target_BT.device
        with torch.autocast("cpu", enabled=False):  # which refuses half precision
            return torch.cat(words).to(device).long(), torch.cat(probabilities).to(device).float()

    @torch.no_grad()
    def _asked(self, batch: Pairs) -> tuple[Tensor, Tensor]:
        self.model.to(batch.target_BT.device)
        output = self.model(Source(batch.source_BS, batch.source_lengths_B), batch.target_BT[:, :-1])
        (hidden_NW,), _ = at_words(batch.target_BT[:, 1:], output.hidden_BTW)
        likely = []
        for hidden_RW in torch.split(hidden_NW, _ROWS):
            probability_RV = self.model.words(hidden_RW).float().softmax(-1)
            likely.append(probability_RV.topk(min(LIKELY, probability_RV.shape[1])))
        probability_NK = torch.cat([one.values for one in likely])
        probability_NK /= probability_NK.sum(1, keepdim=True)
        # Half the room, and more digits than a student can learn.
        return torch.cat([one.indices for one in likely]).int().cpu(), probability_NK.half().cpu()


class _Memory:
    """What a teacher said of each pair, in few large tensors: small ones for each pair would cut up the memory that is left."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Tensor, Tensor]] = []
        self._where: dict[bytes, tuple[int, slice]] = {}
        self._used = 0  # places of the last piece
        self._places = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._where

    def recall(self, key: bytes) -> tuple[Tensor, Tensor]:
        number, places = self._where[key]
        words, probabilities = self._pieces[number]
        return words[places], probabilities[places]

    def keep(self, key: bytes, words: Tensor, probabilities: Tensor) -> None:
        """Remember these, unless it is too much."""
        if self._places >= _REMEMBERED:
            return
        count = len(words)
        if not self._pieces or self._used + count > len(self._pieces[-1][0]):
            shape = max(_PIECE, count), *words.shape[1:]
            self._pieces.append((words.new_empty(shape), probabilities.new_empty(shape)))
            self._used = 0
        places = slice(self._used, self._used + count)
        for piece, part in zip(self._pieces[-1], (words, probabilities), strict=True):
            piece[places] = part
        self._where[key] = len(self._pieces) - 1, places
        self._used += count
        self._places += count


def taught(teacher: Teacher, share: float) -> Objective:
    """Cross-entropy whose right answers are, for a `share`, the teacher's probabilities; without, those of `pairs_loss`."""

    def objective(model: Writer, batch: Pairs, smoothing: float, carried: Carried = ()) -> Loss:
        if not (model.training and batch.numbers):  # none where another process has all of the batch
            return pairs_loss(model, batch, smoothing)
        likely_NK, probability_NK = teacher.likely(batch)
        output = model(Source(batch.source_BS, batch.source_lengths_B), batch.target_BT[:, :-1])
        (hidden_NW,), label_N = at_words(batch.target_BT[:, 1:], output.hidden_BTW)
        weight_VW = model.words.weight
        loss = smoothed_cross_entropy(hidden_NW, weight_VW, label_N, smoothing)
        loss = loss + share * exchange(hidden_NW, weight_VW, label_N, smoothing, likely_NK, probability_NK)
        return Loss(loss if output.extra_loss is None else loss + output.extra_loss)

    return objective


def exchange(
    hidden_NW: Tensor, weight_VW: Tensor, label_N: Tensor, smoothing: float, likely_NK: Tensor, probability_NK: Tensor
) -> Tensor:
    """What cross-entropy grows by if each smoothed label is exchanged for these probabilities; summed over tokens.

    Answers enter cross-entropy as a sum of scores, so theirs is the score of a sum of word vectors: nothing of it needs the
    scores over the whole vocabulary.
    """
    right_NW = (1 - smoothing) * weight_VW[label_N] + smoothing * weight_VW.mean(0)
    taught_NW = F.embedding_bag(likely_NK, weight_VW, mode="sum", per_sample_weights=probability_NK)
    return (hidden_NW.float() * (right_NW - taught_NW)).sum()


def _keys(batch: Pairs) -> list[bytes]:
    """What tells pairs apart: a short sum of their ids, as the same pair may be cut otherwise the next time."""
    sides = (batch.source_BS, batch.source_lengths_B), (batch.target_BT, batch.target_lengths_B)
    cut = [
        [row[:length].tobytes() for row, length in zip(ids.int().cpu().numpy(), lengths.tolist(), strict=True)]
        for ids, lengths in sides
    ]
    return [blake2b(source + b"|" + target, digest_size=16).digest() for source, target in zip(*cut, strict=True)]
