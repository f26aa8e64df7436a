"""Writing without search: the likeliest word each time (greedy), or a word drawn at random (sampling)."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.rules import Rules, log_probabilities
from regard.models.interface import Source, Writer
from regard.text.tokenizer import BEGIN, END

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""(log-probabilities of the words a row may write, -inf for others; row numbers; position) -> one word each."""


def greedy(
    model: Writer, source: Source, config: DecodeConfig, prefixes: Sequence[Sequence[int]] = ()
) -> list[list[Hypothesis]]:
    """The likeliest word, each time: one hypothesis for each sentence."""

    def likeliest(scores_RV: Tensor, row_R: Tensor, position: int) -> Tensor:
        return scores_RV.argmax(-1)

    return _write(model, source, config, prefixes, samples=1, choose=likeliest)


def sample(
    model: Writer, source: Source, config: DecodeConfig, prefixes: Sequence[Sequence[int]] = ()
) -> list[list[Hypothesis]]:
    """`n_best` independent draws for each sentence, best first.

    The words follow the model's probabilities after temperature, top-k and top-p, in this order; the reported
    log-probability is the model's own, before them.
    """
    positions = int(Rules(config, source, prefixes, model).limit_B.max()) + 1
    uniform_RT = _uniforms(source, config, positions)

    def draw(scores_RV: Tensor, row_R: Tensor, position: int) -> Tensor:
        # In double precision, which not every device has; sampling is not what must be fast.
        probability_RV = (scores_RV.cpu().double() / config.temperature).softmax(-1)
        kept_RV = _likeliest(probability_RV, config.top_k, config.top_p)
        return _draw(kept_RV, uniform_RT[row_R.cpu(), position]).to(scores_RV.device)

    return _write(model, source, config, prefixes, samples=config.n_best, choose=draw)


@torch.inference_mode()
def _write(
    model: Writer,
    source: Source,
    config: DecodeConfig,
    prefixes: Sequence[Sequence[int]],
    samples: int,
    choose: Choose,
) -> list[list[Hypothesis]]:
    """Write every sentence `samples` times; a row that has ended leaves the batch."""
    B, device = len(source.lengths_B), source.ids_BS.device
    rules = Rules(config, source, prefixes, model)
    state = model.start(source)
    row_R = torch.arange(B * samples, device=device)
    if samples > 1:
        state = state.reorder(row_R // samples)
    written_RT = torch.full((len(row_R), 1), BEGIN, device=device)
    total_R = torch.zeros(len(row_R), device=device)
    finished: list[list[Hypothesis]] = [[] for _ in range(B)]
    while len(row_R):
        logits_RV, state = model.step(written_RT[:, -1], state)
        scores_RV = rules.forbid_(log_probabilities(logits_RV), written_RT[:, 1:], row_R // samples)
        word_R = choose(scores_RV, row_R, written_RT.shape[1] - 1)
        total_R = total_R + scores_RV.gather(1, word_R[:, None])[:, 0]
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
    return [sorted(found, key=lambda hypothesis: -hypothesis.score) for found in finished]


def _uniforms(source: Source, config: DecodeConfig, positions: int) -> Tensor:
    """uniform_RT in [0, 1): a pure function of seed, the sentence's own ids, sample number and position.

    So a sentence's samples do not depend on what else is in the batch, nor on the machine.
    """
    rows = []
    for ids, length in zip(source.ids_BS.tolist(), source.lengths_B.tolist(), strict=True):
        for number in range(config.n_best):
            text = repr((config.seed, number, ids[:length])).encode()
            key = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")
            rows.append(np.random.Generator(np.random.Philox(key=key)).random(positions))
    return torch.from_numpy(np.stack(rows))


def _likeliest(probability_RV: Tensor, top_k: int, top_p: float) -> Tensor:
    """Zero for all but the `top_k` likeliest words, and of these for all but the fewest that hold `top_p` of them."""
    if top_k:
        kept = probability_RV.topk(min(top_k, probability_RV.shape[1]))
        probability_RV = torch.zeros_like(probability_RV).scatter(1, kept.indices, kept.values)
    if top_p < 1:
        # numpy sorts several times as fast as torch.
        ranked_RV = torch.from_numpy(np.sort(-probability_RV.numpy(), axis=1)).neg_()
        sum_RV = ranked_RV.cumsum(1)
        enough_RV = sum_RV - ranked_RV >= top_p * sum_RV[:, -1:]
        least_R = ranked_RV.masked_fill_(enough_RV, 1.0).amin(1)
        probability_RV = probability_RV.masked_fill(probability_RV < least_R[:, None], 0.0)
    return probability_RV


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
