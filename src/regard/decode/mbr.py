"""Minimum-Bayes-risk decoding: of many texts that a model might write, the one that is most like the others.

The likeliest text may be an odd one. What is like most of what the model would write is a safer choice (Eikema and Aziz
2020). How like two texts are is told by chrF (Popović 2015), as sacrebleu computes it; here for all pairs at once. No torch.

Shape letters: T texts · G n-grams.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from regard.decode.translation import Translation

_LONGEST = 6  # characters of an n-gram
_RECALL = 4  # beta squared: recall counts four times as much as precision

Floats = npt.NDArray[np.float64]


def by_consensus(candidates: Sequence[Translation], samples: Sequence[Translation]) -> list[Translation]:
    """Candidates and samples, each text once, with its mean chrF against all samples but itself; the highest first."""
    drawn = Counter(sample.text for sample in samples)
    texts = list(dict.fromkeys(one.text for one in (*candidates, *samples)))
    weight_TT = np.tile([float(drawn[text]) for text in texts], (len(texts), 1))
    own = [drawn[text] > 0 for text in texts]
    weight_TT[np.diag_indices(len(texts))] -= own
    mean_T = (similarities(texts) * weight_TT).sum(1) / np.maximum(1, weight_TT.sum(1))
    found = [Translation(text, float(mean)) for text, mean in zip(texts, mean_T, strict=True)]
    return sorted(found, key=lambda translation: -translation.score)


def similarities(texts: Sequence[str]) -> Floats:
    """chrF of each text (row) with each text as its reference (column), 0 to 100."""
    precision_TT, recall_TT, orders_TT = (np.zeros((len(texts), len(texts))) for _ in range(3))
    plain = ["".join(text.split()) for text in texts]
    for length in range(1, _LONGEST + 1):
        count_TG = _counts(plain, length)
        total_T = count_TG.sum(1)
        same_TT = np.array([np.minimum(count_G, count_TG).sum(1) for count_G in count_TG], dtype=np.float64)
        # An order counts for two texts that both have n-grams of this length.
        orders_TT += (total_T[:, None] > 0) & (total_T > 0)
        precision_TT += same_TT / np.maximum(1, total_T)[:, None]
        recall_TT += same_TT / np.maximum(1, total_T)
    precision_TT /= np.maximum(1, orders_TT)
    recall_TT /= np.maximum(1, orders_TT)
    both_TT = _RECALL * precision_TT + recall_TT
    return 100 * (1 + _RECALL) * precision_TT * recall_TT / np.where(both_TT > 0, both_TT, 1)


def _counts(texts: Sequence[str], length: int) -> npt.NDArray[np.int32]:
    """How often each text has each n-gram of this length that any of them has."""
    grams = [Counter(text[i : i + length] for i in range(len(text) - length + 1)) for text in texts]
    place = {gram: number for number, gram in enumerate(dict.fromkeys(gram for each in grams for gram in each))}
    count_TG = np.zeros((len(texts), len(place)), np.int32)
    for row_G, each in zip(count_TG, grams, strict=True):
        row_G[[place[gram] for gram in each]] = list(each.values())
    return count_TG
