"""Beam search: keep the few best beginnings, extend each by every word, and keep the best of these again.

Scores are those of Wu et al. 2016 (GNMT), eq. 14: log-probability over a length penalty, plus a coverage penalty.
They count where hypotheses of different lengths meet, among the finished; live ones, all of one length, compare by
log-probability. A sentence is searched as if it were alone: nothing is decided for a whole batch.

Shape letters, besides those of the rules: N sentences still searched · K live hypotheses of each, R = N x K rows ·
C candidates for the next ones · E candidates that end.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.decode.active_vocabulary import Columns
from regard.decode.beam_candidates import Candidates, best_candidates
from regard.decode.constraints import Rules
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.logits import scorer
from regard.decode.prefill import opening
from regard.decode.search_record import Candidate, Fate, Record, Step
from regard.errors import ConfigError
from regard.models.base import Source, Writer
from regard.text.tokenizers.tokenizer import END

# A source position nobody looked at would cost infinitely much, and all hypotheses would be equally bad.
_LEAST_COVERAGE = 1e-6


@torch.inference_mode()
def beam_search(
    model: Writer,
    source: Source,
    config: DecodeConfig,
    prefixes: Sequence[Sequence[int]] = (),
    columns: Columns | None = None,
    record: Record | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence, best first (fewer, where no more can be written).

    A sentence is done when nothing live can still beat its `n_best`-th finished hypothesis, or when as many have
    finished as the beam is wide; so a beam of 1 is greedy. Only words that have `columns` are written, if there are any.
    Whoever wants to see the search gives a `record`.
    """
    rules = Rules(config, source, prefixes, model, columns)
    finished = _Finished(source, config)
    written_BT, total_B, state = opening(model, source, prefixes, attention=config.coverage_penalty > 0)
    live = _begin(source, written_BT, total_B)
    words = scorer(model, config.precision, len(total_B) * config.beam, columns)
    while len(live.sentence_N):
        hidden_RW, state = model.advance(live.written_RT[:, -1], state)
        if config.coverage_penalty:
            live = live._replace(coverage_RS=live.coverage_RS + _looked(state.attention_BS))
        # Twice as many as the beam: each row can end only once, so enough of them go on.
        candidates = best_candidates(
            words, rules, hidden_RW, live.total_NK, live.written_RT[:, 1:], live.sentence_N, 2 * config.beam
        )
        finished.collect(live, candidates)
        chosen = _unfinished(candidates, config.beam)
        # The shortest text a live hypothesis can become: begin, which is not counted, makes room for the next word.
        best_N, shortest = chosen.total_NC[:, 0], live.written_RT.shape[1] + 1
        going_N = finished.bar_B[live.sentence_N] < _highest(best_N, shortest, rules.limit_B[live.sentence_N], config)
        before, (live, row_R) = live, _advance(live, chosen, going_N)
        if record:
            record(_fates(before, candidates, live, finished))
        if len(row_R):
            state = state.reorder(row_R)
    return finished.best()


class _Live(NamedTuple):
    """Hypotheses that may still grow. A row whose total is -inf fills a beam that has too few of them."""

    sentence_N: Tensor
    total_NK: Tensor
    """Log-probability so far."""
    written_RT: Tensor
    """Begin, then the words."""
    coverage_RS: Tensor
    """Attention each source position has had so far, if coverage is asked for."""


def _begin(source: Source, written_BT: Tensor, total_B: Tensor) -> _Live:
    """One row for each sentence: before the first word, all of its beams would be the same."""
    device = source.ids_BS.device
    return _Live(
        sentence_N=torch.arange(len(total_B), device=device),
        total_NK=total_B[:, None],
        written_RT=written_BT,
        coverage_RS=torch.zeros(source.ids_BS.shape, device=device),
    )


def _looked(attention_RS: Tensor | None) -> Tensor:
    if attention_RS is None:
        raise ConfigError(
            "decode.coverage_penalty needs a model that says where it looks, and this one has no attention. "
            "Set decode.coverage_penalty=0."
        )
    return attention_RS.float()


def _unfinished(candidates: Candidates, beam: int) -> Candidates:
    """The best candidates that do not end, no more than the beam holds."""
    total_NC = candidates.total_NC.masked_fill(candidates.word_NC == END, -math.inf)
    top = total_NC.topk(min(beam, total_NC.shape[1]))
    row_NK, word_NK = (part.gather(1, top.indices) for part in (candidates.row_NC, candidates.word_NC))
    return Candidates(top.values, row_NK, word_NK)


def _highest(best_N: Tensor, shortest: int, limit_N: Tensor, config: DecodeConfig) -> Tensor:
    """No score that the best live hypothesis can still reach is above this.

    Its log-probability can only fall and coverage only costs, so the length decides. The penalty rises with the
    length or falls, as alpha has it; one of the two ends is the best.
    """
    longest_N = ((5 + limit_N + 1) / 6) ** config.length_penalty
    return torch.maximum(best_N / length_penalty(shortest, config.length_penalty), best_N / longest_N)


def _advance(live: _Live, chosen: Candidates, going_N: Tensor) -> tuple[_Live, Tensor]:
    """The live hypotheses after this step, of the sentences that go on; and the rows they came from."""
    total_NK, row_NK, word_NK = (part[going_N] for part in chosen)
    # Best first, so that columns that no sentence fills stand at the end; no model need compute them.
    K = int(total_NK.isfinite().any(0).sum())
    row_R = row_NK[:, :K].flatten()
    word_R = word_NK[:, :K].flatten()
    written_RT = torch.cat([live.written_RT[row_R], word_R[:, None]], 1)
    return _Live(live.sentence_N[going_N], total_NK[:, :K], written_RT, live.coverage_RS[row_R]), row_R


def _fates(before: _Live, candidates: Candidates, after: _Live, finished: "_Finished") -> Step:
    """What became of each candidate of this step. What is live when a sentence is done goes no further: it is dropped."""
    K = after.total_NK.shape[1]
    kept = set(zip(after.sentence_N.repeat_interleave(K).tolist(), _texts(after), strict=True))
    texts = _texts(before)
    step: Step = {sentence: [] for sentence in before.sentence_N.tolist()}
    for sentence, *columns in zip(step, *(part.tolist() for part in candidates), strict=True):
        scores = finished.scores(sentence)
        for total, row, word in zip(*columns, strict=True):
            ids, score = (*texts[row], word), scores.get(texts[row]) if word == END else None
            going = word != END and (sentence, ids) in kept
            fate: Fate = "finished" if score is not None else "kept" if going else "dropped"
            if total > -math.inf:
                step[sentence].append(Candidate(ids, total, fate, score))
    return step


def _texts(live: _Live) -> list[tuple[int, ...]]:
    return [tuple(words) for words in live.written_RT[:, 1:].tolist()]


class _Finished:
    """Hypotheses that have ended, by sentence, and what a live one must beat."""

    def __init__(self, source: Source, config: DecodeConfig) -> None:
        S, device = source.ids_BS.shape[1], source.ids_BS.device
        self._config = config
        self._real_BS = torch.arange(S, device=device) < source.lengths_B[:, None]
        self._hypotheses: list[list[Hypothesis]] = [[] for _ in source.lengths_B]
        self.bar_B = torch.full(source.lengths_B.shape, -math.inf, device=device)
        """Score of the `n_best`-th; -inf before there is one, and inf when the beam is full."""

    def collect(self, live: _Live, candidates: Candidates) -> None:
        """Take in the candidates that end here."""
        ends_NC = (candidates.word_NC == END) & candidates.total_NC.isfinite()
        ends_NC[:, self._config.beam :] = False  # only those that the beam would hold
        n_E, c_E = ends_NC.nonzero(as_tuple=True)
        if not len(n_E):
            return
        sentence_E, row_E = live.sentence_N[n_E], candidates.row_NC[n_E, c_E]
        total_E = candidates.total_NC[n_E, c_E]
        # Begin is in this length and end is not yet, so it counts as the penalty counts.
        score_E = total_E / length_penalty(live.written_RT.shape[1], self._config.length_penalty)
        if self._config.coverage_penalty:
            uncovered_E = _coverage(live.coverage_RS[row_E], self._real_BS[sentence_E])
            score_E = score_E + self._config.coverage_penalty * uncovered_E
        sentences, written = sentence_E.tolist(), live.written_RT[row_E, 1:].tolist()
        for sentence, *hypothesis in zip(sentences, written, score_E.tolist(), total_E.tolist(), strict=True):
            self._hypotheses[sentence].append(Hypothesis(*hypothesis))
        for sentence in set(sentences):
            self.bar_B[sentence] = self._bar(self._hypotheses[sentence])

    def _bar(self, found: list[Hypothesis]) -> float:
        found.sort(key=lambda hypothesis: -hypothesis.score)
        if len(found) >= self._config.beam:
            return math.inf
        return found[self._config.n_best - 1].score if len(found) >= self._config.n_best else -math.inf

    def scores(self, sentence: int) -> dict[tuple[int, ...], float]:
        """By its words, the score of each of a sentence's finished hypotheses."""
        return {tuple(hypothesis.ids): hypothesis.score for hypothesis in self._hypotheses[sentence]}

    def best(self) -> list[list[Hypothesis]]:
        """The `n_best` of each sentence."""
        return [found[: self._config.n_best] for found in self._hypotheses]


def _coverage(coverage_ES: Tensor, real_ES: Tensor) -> Tensor:
    """0 if every source position had attention of 1 or more in all, below 0 for what is missing (GNMT, eq. 14)."""
    return coverage_ES.clamp(_LEAST_COVERAGE, 1.0).log().masked_fill(~real_ES, 0.0).sum(1)
