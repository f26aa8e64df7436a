"""Writing without search: the likeliest word each time (greedy), or a word drawn at random (sampling)."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.decode.active_vocabulary import Columns
from regard.decode.beam_candidates import best_candidates
from regard.decode.constraints import Rules, log_probabilities
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.logits import Words, scorer
from regard.decode.prefill import opening
from regard.models.base import Source, Writer
from regard.text.tokenizers.tokenizer import END

# Likeliest words that mostly hold what top-p asks for.
_MOSTLY_ENOUGH = 64
# Samples drawn together: each takes memory for all that the model remembers of it.
_DRAWN_AT_A_TIME = 2048

Choose = Callable[[Rules, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(rules; the model's last layer; row numbers; words so far) -> a word for each row, and its log-probability."""


def greedy(
    model: Writer,
    source: Source,
    config: DecodeConfig,
    prefixes: Sequence[Sequence[int]] = (),
    columns: Columns | None = None,
) -> list[list[Hypothesis]]:
    """The likeliest word, each time: one hypothesis for each sentence."""
    words = scorer(model, config.precision, len(source.lengths_B), columns)

    def likeliest(rules: Rules, hidden_RW: Tensor, row_R: Tensor, written_RT: Tensor) -> tuple[Tensor, Tensor]:
        nothing_R1 = torch.zeros(len(row_R), 1, device=hidden_RW.device)
        best = best_candidates(words, rules, hidden_RW, nothing_R1, written_RT, row_R, count=1)
        return best.word_NC[:, 0], best.total_NC[:, 0]

    return _write(model, source, config, prefixes, columns, samples=1, choose=likeliest)


def sample(
    model: Writer,
    source: Source,
    config: DecodeConfig,
    prefixes: Sequence[Sequence[int]] = (),
    columns: Columns | None = None,
) -> list[list[Hypothesis]]:
    """`n_best` independent draws for each sentence, best first.

    The words follow the model's probabilities after temperature, top-k and top-p, in this order; the reported
    log-probability is the model's own, before them.
    """
    positions = int(Rules(config, source, prefixes, model).limit_B.max()) + 1
    found: list[list[Hypothesis]] = [[] for _ in source.lengths_B]
    at_a_time = max(1, _DRAWN_AT_A_TIME // max(1, len(found)))
    for first in range(0, config.n_best, at_a_time):
        numbers = range(first, min(first + at_a_time, config.n_best))
        uniform_RT = _uniforms(source, config.seed, numbers, positions)
        words = scorer(model, config.precision, len(uniform_RT), columns)
        choose = partial(_drawn, config, words, uniform_RT, len(numbers))
        some = _write(model, source, config, prefixes, columns, samples=len(numbers), choose=choose)
        found = [before + more for before, more in zip(found, some, strict=True)]
    return [sorted(drawn, key=lambda hypothesis: -hypothesis.score) for drawn in found]


def _drawn(
    config: DecodeConfig,
    words: Words,
    uniform_RT: Tensor,
    samples: int,
    rules: Rules,
    hidden_RW: Tensor,
    row_R: Tensor,
    written_RT: Tensor,
) -> tuple[Tensor, Tensor]:
    """A word for each row, drawn as `config` says with the row's own random numbers, and its log-probability."""
    sentence_R = row_R // samples
    scores_RV = log_probabilities(rules.hide_(words(hidden_RW), sentence_R))
    rules.forbid_(scores_RV, written_RT, sentence_R)
    # In double precision, which not every device has; sampling is not what must be fast.
    probability_RV = (scores_RV.cpu().double() / config.temperature).softmax(-1)
    kept_RV = _likeliest(probability_RV, config.top_k, config.top_p)
    column_R = _draw(kept_RV, uniform_RT[row_R.cpu(), written_RT.shape[1]]).to(scores_RV.device)
    return rules.word(column_R), scores_RV.gather(1, column_R[:, None])[:, 0]


@torch.inference_mode()
def _write(
    model: Writer,
    source: Source,
    config: DecodeConfig,
    prefixes: Sequence[Sequence[int]],
    columns: Columns | None,
    samples: int,
    choose: Choose,
) -> list[list[Hypothesis]]:
    """Write every sentence `samples` times, in the order in which they end; a row that has ended leaves the batch."""
    B, device = len(source.lengths_B), source.ids_BS.device
    rules = Rules(config, source, prefixes, model, columns)
    written_RT, total_R, state = opening(model, source, prefixes)
    row_R = torch.arange(B * samples, device=device)
    if samples > 1:
        first_R = row_R // samples
        written_RT, total_R, state = written_RT[first_R], total_R[first_R], state.reorder(first_R)
    finished: list[list[Hypothesis]] = [[] for _ in range(B)]
    while len(row_R):
        hidden_RW, state = model.advance(written_RT[:, -1], state)
        word_R, score_R = choose(rules, hidden_RW, row_R, written_RT[:, 1:])
        total_R = total_R + score_R
        ends_R = word_R == END
        written_RT = torch.cat([written_RT, word_R[:, None]], 1)
        if bool(ends_R.any()):
            ended = (row_R[ends_R].tolist(), written_RT[ends_R, 1:-1].tolist(), total_R[ends_R].tolist())
            for row, ids, total in zip(*ended, strict=True):
                score = total / length_penalty(len(ids) + 1, config.length_penalty)
                finished[row // samples].append(Hypothesis(ids, score, total))
            going_R = (~ends_R).nonzero()[:, 0]
            row_R, written_RT, total_R = row_R[going_R], written_RT[going_R], total_R[going_R]
            if len(row_R):
                state = state.reorder(going_R)
    return finished


def _uniforms(source: Source, seed: int, numbers: range, positions: int) -> Tensor:
    """uniform_RT in [0, 1): a pure function of seed, the sentence's own ids, sample number and position.

    So a sentence's samples do not depend on what else is in the batch, nor on the machine.
    """
    rows = []
    for ids, length in zip(source.ids_BS.tolist(), source.lengths_B.tolist(), strict=True):
        for number in numbers:
            text = repr((seed, number, ids[:length])).encode()
            key = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")
            rows.append(np.random.Generator(np.random.Philox(key=key)).random(positions))
    return torch.from_numpy(np.stack(rows))


def _likeliest(probability_RV: Tensor, top_k: int, top_p: float) -> Tensor:
    """Zero for all but the `top_k` likeliest words, and of these for all but the fewest that hold `top_p` of them."""
    if top_k:
        kept = probability_RV.topk(min(top_k, probability_RV.shape[1]))
        probability_RV = torch.zeros_like(probability_RV).scatter(1, kept.indices, kept.values)
    if top_p < 1:
        least_R = _least_kept(probability_RV, top_p)
        probability_RV = probability_RV.masked_fill(probability_RV < least_R[:, None], 0.0)
    return probability_RV


def _least_kept(probability_RV: Tensor, top_p: float) -> Tensor:
    """The smallest of the fewest probabilities that hold `top_p` of each row. Few words do, mostly; only else all are sorted."""
    wanted_R = top_p * probability_RV.sum(1)
    ranked_RX = probability_RV.topk(min(_MOSTLY_ENOUGH, probability_RV.shape[1])).values
    least_R = _last_needed(ranked_RX, wanted_R)
    more_R = ranked_RX.sum(1) < wanted_R
    if bool(more_R.any()):
        # numpy sorts several times as fast as torch.
        ranked_RV = torch.from_numpy(np.sort(-probability_RV[more_R].numpy(), axis=1)).neg_()
        least_R[more_R] = _last_needed(ranked_RV, wanted_R[more_R])
    return least_R


def _last_needed(ranked_RX: Tensor, wanted_R: Tensor) -> Tensor:
    """Of numbers in falling order, the last before which their sum is not yet as large as wanted."""
    before_RX = ranked_RX.cumsum(1) - ranked_RX
    return ranked_RX.masked_fill(before_RX >= wanted_R[:, None], 1.0).amin(1)


def _draw(weight_RV: Tensor, uniform_R: Tensor) -> Tensor:
    """The word at which the running sum passes the uniform's share of the whole.

    The sum runs in the vocabulary's order, not by probability: words that are almost equally likely would change
    places with the rounding errors of another batch.
    """
    sum_RV = weight_RV.cumsum(1)
    whole_R = sum_RV[:, -1]
    # Rounding must not reach the whole: the word there may have no weight.
    share_R = torch.minimum(uniform_R * whole_R, whole_R.nextafter(torch.zeros_like(whole_R)))
    return torch.searchsorted(sum_RV, share_R[:, None], right=True)[:, 0]
