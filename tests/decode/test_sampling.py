"""Greedy writing and sampling."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch

from regard.config import DecodeConfig
from regard.decode.sampling import _draw, _likeliest, greedy, sample
from regard.text.tokenizers.tokenizer import END
from toys import batch, log_softmax, random_toy, same

SENTENCES = [[4, 5], [6], [5, 5, 4, 6], [4], [6, 4, 5]]


def first_words(toy, words, draws, **settings):
    """How often each word came first."""
    config = DecodeConfig(sample=True, n_best=draws, min_length=1, max_length=1, **settings)
    return Counter(found.ids[0] for found in sample(toy, batch(words), config)[0])


def first_probabilities(toy, words, temperature=1.0):
    """What they should be: only words, no end, at the first position."""
    weights = np.exp(toy.scores((*words, END), ()) / temperature)
    weights[:4] = 0
    return weights / weights.sum()


@pytest.mark.parametrize("words", SENTENCES)
def test_greedy_writes_the_likeliest_word_each_time(words):
    toy, written, total = random_toy(1), [], 0.0
    found = greedy(toy, batch(words), DecodeConfig(max_length=9, length_penalty=0.5))[0]
    while not written or written[-1] != END:
        scores = log_softmax(toy.scores((*words, END), tuple(written)))
        may = [END, 4, 5, 6] if len(written) < 9 else [END]
        written.append(max(may, key=lambda word: scores[word]))
        total += scores[written[-1]]
    assert found[0].ids == written[:-1] and len(found) == 1
    assert found[0].log_probability == pytest.approx(total, abs=1e-4)
    assert found[0].score == pytest.approx(total / ((5 + len(written)) / 6) ** 0.5, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_follow_the_models_probabilities(temperature):
    toy, draws = random_toy(3, vocabulary=10), 4000
    counts = first_words(toy, [4, 5], draws, temperature=temperature)
    expected = draws * first_probabilities(toy, [4, 5], temperature)[4:]
    chi_square = sum((counts[word] - e) ** 2 / e for word, e in enumerate(expected, 4))
    assert chi_square < 20.5  # five degrees of freedom: one seed in a thousand is above


def test_top_k_leaves_the_k_likeliest_words():
    toy = random_toy(4, vocabulary=12)
    ranked = np.argsort(-first_probabilities(toy, [4]))
    assert set(first_words(toy, [4], 600, top_k=3)) == set(ranked[:3].tolist())
    assert set(first_words(toy, [4], 5, top_k=1)) == {int(ranked[0])}


@pytest.mark.parametrize("top_p", [0.01, 0.3, 0.6, 0.9])
def test_top_p_leaves_the_fewest_words_that_hold_it(top_p):
    toy = random_toy(5, vocabulary=9)
    probabilities = first_probabilities(toy, [4])
    ranked = np.argsort(-probabilities)
    fewest = int(np.searchsorted(probabilities[ranked].cumsum(), top_p)) + 1
    assert set(first_words(toy, [4], 1000, top_p=top_p)) == set(ranked[:fewest].tolist())


def test_top_p_is_the_same_where_few_words_hold_it_and_where_many_do():
    flat, steep = torch.rand(4, 500).double().softmax(1), (9 * torch.randn(4, 500)).double().softmax(1)
    probabilities = torch.cat([flat, steep])
    for row, kept in zip(probabilities, _likeliest(probabilities, 0, 0.7), strict=True):
        ranked = row.sort(descending=True).values
        fewest = int((ranked.cumsum(0) < 0.7).sum()) + 1
        assert int((kept > 0).sum()) == fewest and torch.equal(kept[kept > 0], row[kept > 0])
        assert float(kept.sum()) >= 0.7 > float(kept.sum() - ranked[fewest - 1])


def test_top_p_counts_within_what_top_k_left():
    toy = random_toy(5, vocabulary=9)
    ranked = np.argsort(-first_probabilities(toy, [4]))
    left = first_probabilities(toy, [4])[ranked[:3]]
    fewest = int(np.searchsorted(left.cumsum() / left.sum(), 0.7)) + 1
    assert set(first_words(toy, [4], 600, top_k=3, top_p=0.7)) == set(ranked[:fewest].tolist())


@pytest.mark.parametrize("search", [greedy, sample])
def test_a_sentence_is_written_the_same_alone_and_in_any_batch(search):
    toy, config = random_toy(6), DecodeConfig(sample=True, n_best=3, no_repeat=3)
    together = search(toy, batch(*SENTENCES), config)
    backwards = search(toy, batch(*reversed(SENTENCES)), config)[::-1]
    for sentence, ours, theirs in zip(SENTENCES, together, backwards, strict=True):
        assert same(ours, theirs) and same(ours, search(toy, batch(sentence), config)[0])


def test_the_seed_decides_and_more_samples_keep_the_first():
    def texts(**settings):
        found = sample(random_toy(7), batch([4, 5, 6]), DecodeConfig(sample=True, max_length=12, **settings))[0]
        return {tuple(hypothesis.ids) for hypothesis in found}

    assert texts(seed=1, n_best=5) == texts(seed=1, n_best=5) != texts(seed=2, n_best=5)
    assert texts(seed=1, n_best=5) < texts(seed=1, n_best=20)


def test_how_many_are_drawn_together_changes_nothing(monkeypatch):
    def drawn():
        return sample(random_toy(7), batch(*SENTENCES), DecodeConfig(sample=True, n_best=7, max_length=12))

    together = drawn()
    for at_a_time in (1, 15):
        monkeypatch.setattr("regard.decode.sampling._DRAWN_AT_A_TIME", at_a_time)
        assert drawn() == together


def test_samples_come_best_first_with_the_models_own_probability():
    toy = random_toy(8)
    config = DecodeConfig(sample=True, n_best=8, temperature=2.0, top_k=4)
    found = sample(toy, batch([5]), config)[0]
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    for ids, _, log_probability in found:
        steps = [log_softmax(toy.scores((5, END), tuple(ids[:t]))) for t in range(len(ids) + 1)]
        assert log_probability == pytest.approx(sum(s[w] for s, w in zip(steps, [*ids, END], strict=True)), abs=1e-3)


def test_rows_that_have_ended_leave_the_batch():
    toy = random_toy(9, end=1.0)
    found = sample(toy, batch(*SENTENCES), DecodeConfig(sample=True, n_best=4))
    lengths = [len(hypothesis.ids) + 1 for hypotheses in found for hypothesis in hypotheses]
    assert toy.rows == [sum(length > step for length in lengths) for step in range(max(lengths))]


def test_prefix_lengths_and_repeats_are_obeyed_in_every_sample():
    config = DecodeConfig(sample=True, n_best=30, min_length=4, max_length=6, no_repeat=2)
    prefixes = [[6, 6], [5]]
    for prefix, found in zip(prefixes, sample(random_toy(10), batch([4], [5, 6]), config, prefixes), strict=True):
        for ids, _, _ in found:
            grams = list(pairwise(ids))
            assert ids[: len(prefix)] == prefix and 4 <= len(ids) <= 6 and len(grams) == len(set(grams))


@pytest.mark.parametrize(("uniform", "word"), [(0.0, 1), (1 - 2**-53, 3)])
def test_the_extreme_draws_still_give_words_that_may_be_written(uniform, word):
    weight_RV = torch.tensor([[0.0, 0.2, 0.0, 0.7 / 3, 0.0]], dtype=torch.float64)
    assert _draw(weight_RV, torch.tensor([uniform], dtype=torch.float64)).tolist() == [word]
