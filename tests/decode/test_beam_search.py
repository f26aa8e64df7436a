"""Beam search against texts that can all be listed, against a search in plain Python, and by hand."""

import heapq
import math

import numpy as np
import pytest

from regard.config import DecodeConfig
from regard.decode.beam_search import beam_search
from regard.decode.hypothesis import Hypothesis
from regard.decode.sampling import greedy
from regard.errors import ConfigError
from regard.text.tokenizers.tokenizer import END
from toys import FIRST_WORD, batch, every_text, log_softmax, random_toy, same, table_toy

SENTENCES = [[4, 5], [6], [5, 5, 4, 6], [4], [6, 4, 5], [5, 4]]
A, B = 4, 5


def plain_search(toy, words, config):
    """The same search for one sentence, in loops and lists, stopping only when nothing is left."""
    source, live, finished = (*words, END), [(0.0, ())], []
    limit = config.max_length or len(words) + 50
    while live and len(finished) < config.beam:
        candidates = []
        for total, text in live:
            scores = log_softmax(toy.scores(source, text))
            may = [END, *range(FIRST_WORD, toy.vocabulary)] if len(text) < limit else [END]
            candidates += [
                (total + scores[word], text, word) for word in may if word != END or len(text) >= config.min_length
            ]
        candidates = heapq.nlargest(2 * config.beam, candidates)
        for total, text, word in candidates[: config.beam]:
            if word == END:
                finished.append(Hypothesis(list(text), total / ((6 + len(text)) / 6) ** config.length_penalty, total))
        live = [(total, (*text, word)) for total, text, word in candidates if word != END][: config.beam]
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)[: config.n_best]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0, -1.0])
@pytest.mark.parametrize(("shortest", "longest"), [(0, 4), (2, 4), (3, 3)])
def test_a_beam_wide_enough_finds_the_best_of_all_texts(seed, alpha, shortest, longest):
    toy = random_toy(seed)
    config = DecodeConfig(beam=2000, n_best=5, length_penalty=alpha, min_length=shortest, max_length=longest)
    found = beam_search(toy, batch([4, 5], [6]), config)
    for words, ours in zip([[4, 5], [6]], found, strict=True):
        assert same(ours, sorted(every_text(toy, words, config), key=lambda text: -text.score)[:5])


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 1.5])
@pytest.mark.parametrize("lengths", [{}, {"max_length": 7}, {"min_length": 3, "max_length": 9}])
def test_the_search_is_the_plain_one_for_every_sentence(beam, alpha, lengths):
    toy = random_toy(beam, end=0.5)
    config = DecodeConfig(beam=beam, n_best=min(beam, 2), length_penalty=alpha, **lengths)
    for words, found in zip(SENTENCES, beam_search(toy, batch(*SENTENCES), config), strict=True):
        assert same(found, plain_search(toy, words, config))


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy(seed):
    toy = random_toy(seed, vocabulary=12)
    config = DecodeConfig(beam=1, no_repeat=3, min_length=2)
    ours, theirs = (search(toy, batch(*SENTENCES), config, [[5], []] * 3) for search in (beam_search, greedy))
    assert all(same(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("settings", [{}, {"beam": 2, "no_repeat": 2}, {"n_best": 3, "coverage_penalty": 0.3}])
def test_a_sentence_is_translated_the_same_alone_and_in_any_batch(settings):
    toy, config = random_toy(6, end=0.5, attention=True), DecodeConfig(**settings)
    together = beam_search(toy, batch(*SENTENCES), config)
    backwards = beam_search(toy, batch(*reversed(SENTENCES)), config)[::-1]
    for sentence, ours, theirs in zip(SENTENCES, together, backwards, strict=True):
        assert same(ours, theirs) and same(ours, beam_search(toy, batch(sentence), config)[0])


def test_sentences_that_are_done_leave_the_batch():
    rows = []
    for sentence in SENTENCES:
        toy = random_toy(2, end=1.0)
        beam_search(toy, batch(sentence), DecodeConfig(beam=3))
        rows.append(toy.rows)
    together = random_toy(2, end=1.0)
    beam_search(together, batch(*SENTENCES), DecodeConfig(beam=3))
    steps = range(max(map(len, rows)))
    assert together.rows == [sum(alone[step] for alone in rows if len(alone) > step) for step in steps]
    assert together.rows[0] == len(SENTENCES) and together.rows[-1] <= 3


@pytest.mark.parametrize(("alpha", "steps"), [(0.0, 2), (6.0, 3), (-6.0, 2)])
def test_search_goes_on_only_while_a_longer_text_could_win(alpha, steps):
    # A ends with probability 0.6, B B with 0.36: the longer one wins only where length is forgiven generously.
    table = {(): {A: 0.6, B: 0.4}, (A,): {END: 1.0}, (B,): {B: 1.0}, (B, B): {END: 0.9, A: 0.1}}
    toy = table_toy(table, vocabulary=6)
    found = beam_search(toy, batch([4]), DecodeConfig(beam=2, max_length=4, length_penalty=alpha))
    assert len(toy.rows) == steps
    assert found[0][0].ids == ([B, B] if alpha == 6.0 else [A])


def test_where_length_costs_extra_the_next_end_is_still_waited_for():
    # Nothing at all has probability 0.4, A has 0.6, and at length 2 its score is 7/6 of log 0.6.
    toy = table_toy({(): {END: 0.4, A: 0.6}, (A,): {END: 1.0}}, vocabulary=6)
    found = beam_search(toy, batch([4]), DecodeConfig(beam=2, length_penalty=-1.0))[0]
    assert found[0].ids == [A] and found[0].score == pytest.approx(7 / 6 * math.log(0.6), abs=1e-4)


@pytest.mark.parametrize("prefix", [[], [5], [6, 6, 4], [4] * 8])
def test_every_hypothesis_begins_with_the_prefix_and_obeys_the_limits(prefix):
    config = DecodeConfig(beam=4, n_best=4, min_length=3, max_length=6, no_repeat=3)
    for found in beam_search(random_toy(1), batch([4], [5, 6]), config, [prefix, prefix]):
        assert found
        for ids, _, _ in found:
            grams = [tuple(ids[i : i + 3]) for i in range(max(len(prefix) - 2, 0), len(ids) - 2)]
            assert ids[: len(prefix)] == prefix and 3 <= len(ids) <= max(6, len(prefix))
            assert len(grams) == len(set(grams))


def test_fewer_hypotheses_come_back_where_no_more_can_be_written():
    config = DecodeConfig(beam=10, n_best=10, max_length=1)
    assert [len(found) for found in beam_search(random_toy(1), batch([4], [5]), config)] == [4, 4]


def coverage_toy():
    """A is a little likelier than B, but after it the model looks at the first word again, which it has seen."""
    table = {(): {A: 0.55, B: 0.45}, (A,): {END: 1.0}, (B,): {END: 1.0}}
    looks = {(): [0.5, 0.25, 0.25], (A,): [0.8, 0.1, 0.1], (B,): [0.0, 0.5, 0.5]}
    return table_toy(table, vocabulary=6, looks=looks)


@pytest.mark.parametrize(("beta", "first"), [(0.0, A), (0.2, A), (0.3, B)])
def test_the_coverage_penalty_worked_by_hand(beta, first):
    config = DecodeConfig(beam=2, n_best=2, length_penalty=0.0, coverage_penalty=beta)
    found = {h.ids[0]: h for h in beam_search(coverage_toy(), batch([4, 5], [4, 5]), config)[1]}
    # Attention sums to 1.3 (counted as 1), 0.35, 0.35 with A, and to 0.5, 0.75, 0.75 with B.
    assert found[A].score == pytest.approx(math.log(0.55) + beta * math.log(0.35 * 0.35), abs=1e-4)
    assert found[B].score == pytest.approx(math.log(0.45) + beta * math.log(0.5 * 0.75 * 0.75), abs=1e-4)
    assert next(iter(found)) == first


@pytest.mark.parametrize("seed", range(3))
def test_with_coverage_a_wide_beam_still_finds_the_best_of_all_texts(seed):
    toy = random_toy(seed, attention=True)
    config = DecodeConfig(beam=2000, n_best=4, coverage_penalty=0.5, max_length=4)
    found = beam_search(toy, batch([4, 5, 5], [6]), config)[1]
    assert same(found, sorted(every_text(toy, [6], config), key=lambda text: -text.score)[:4])


def test_coverage_of_a_model_without_attention_is_refused():
    with pytest.raises(ConfigError, match="no attention"):
        beam_search(random_toy(1), batch([4]), DecodeConfig(coverage_penalty=0.2))


def test_a_wider_beam_never_finds_a_less_likely_best_text_when_everything_fits():
    toy, config = random_toy(11), {"length_penalty": 0.0, "max_length": 3}
    best = [beam_search(toy, batch([4, 6]), DecodeConfig(beam=beam, **config))[0][0].score for beam in (1, 300, 3000)]
    assert best[0] <= best[1] + 1e-6 and np.isclose(best[1], best[2])
