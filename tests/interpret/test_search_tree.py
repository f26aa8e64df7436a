"""The tree of a beam search: the search is not disturbed, and every node is what the model's own probabilities make it."""

import itertools
import json
import math

import numpy as np
import pytest

import regard
from regard.config import DecodeConfig
from regard.decode.beam_search import beam_search
from regard.decode.hypothesis import length_penalty
from regard.decode.translator import Translator
from regard.errors import DataError
from regard.interpret.search_tree import grow
from regard.text.tokenizers.tokenizer import END, Listed
from toys import FIRST_WORD, batch, log_softmax, random_toy, table_toy

SENTENCES = [[4, 5], [6], [5, 5, 4, 6], [4]]
WORDS = Listed("words", ["▁a", "▁b", "▁c", "▁d"])
SETTINGS = [
    {},
    {"beam": 1},
    {"beam": 5, "n_best": 3},
    {"min_length": 3, "length_penalty": 1.5},
    {"coverage_penalty": 0.3},
]


def searched(toy, sentences, config, prefixes=()):
    steps = []
    return beam_search(toy, batch(*sentences), config, prefixes, record=steps.append), steps


def toy_of(seed):
    return random_toy(seed, vocabulary=WORDS.size, end=0.5, attention=True)


def words_of(tree, number):
    """The ids on the way to a node; the words of the toys spell their ids."""
    found = []
    while number > 0:
        found.insert(0, tree.nodes[number].text)
        number = tree.nodes[number].parent
    return tuple(END if text == "</s>" else FIRST_WORD + "abcd".index(text) for text in found)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_recording_changes_nothing(settings, seed):
    config = DecodeConfig(**settings)
    prefixes = [[5], [], [4, 4], []]
    found, steps = searched(toy_of(seed), SENTENCES, config, prefixes)
    assert found == beam_search(toy_of(seed), batch(*SENTENCES), config, prefixes)
    assert [len(step) for step in steps] == sorted((len(step) for step in steps), reverse=True) and len(steps[0]) == 4


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_every_node_is_its_parent_and_one_word_more(settings, seed):
    toy, config = toy_of(seed), DecodeConfig(**settings)
    _, steps = searched(toy, SENTENCES, config)
    for sentence, words in enumerate(SENTENCES):
        tree = grow(steps, WORDS, config, sentence)
        assert tree.nodes[0] == (-1, 0, "<s>", 0.0, 1.0, None, "begin")
        for number, node in enumerate(tree.nodes[1:], 1):
            *before, word = words_of(tree, number)
            own = log_softmax(toy.scores((*words, END), tuple(before)))[word]
            assert node.parent < number and node.step == tree.nodes[node.parent].step + 1 == len(before) + 1
            assert node.p == pytest.approx(math.exp(own), rel=1e-4)
            assert node.total == pytest.approx(tree.nodes[node.parent].total + own, abs=1e-4)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_is_the_best_of_all_that_can_follow_what_was_kept(settings, seed):
    toy, config = toy_of(seed), DecodeConfig(max_length=6, **settings)
    _, steps = searched(toy, SENTENCES, config)
    for sentence, words in enumerate(SENTENCES):
        tree = grow(steps, WORDS, config, sentence)
        live, last = [()], tree.nodes[-1].step
        for step, group in itertools.groupby(range(1, len(tree.nodes)), key=lambda n: tree.nodes[n].step):
            told = [(tree.nodes[n].state, words_of(tree, n)) for n in group]
            ends, goes_on = step > config.min_length, step <= 6
            may = [END] * ends + list(range(FIRST_WORD, WORDS.size)) * goes_on
            best = sorted(((*text, word) for text in live for word in may), key=lambda text: -total(toy, words, text))
            assert [text for _, text in told] == best[: 2 * config.beam]
            assert {t for state, t in told if state == "finished"} == {t for t in best[: config.beam] if t[-1] == END}
            live = [text for state, text in told if state == "kept"]
            assert live == [text for text in best[: 2 * config.beam] if text[-1] != END][: config.beam * (step < last)]


def total(toy, words, text):
    return sum(log_softmax(toy.scores((*words, END), text[:t]))[text[t]] for t in range(len(text)))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_results_spell_out_the_score_of_each_finished_text(settings, seed):
    toy, config = toy_of(seed), DecodeConfig(**settings)
    found, steps = searched(toy, SENTENCES, config)
    for sentence, words in enumerate(SENTENCES):
        tree = grow(steps, WORDS, config, sentence)
        assert [n.node for n in tree.results if n.chosen] == [n.node for n in tree.results][: config.n_best]
        chosen = [(result.text, result.score, result.total) for result in tree.results if result.chosen]
        assert chosen == [(WORDS.decode(ids), score, total) for ids, score, total in found[sentence]]
        assert {result.node for result in tree.results} == {n for n, x in enumerate(tree.nodes) if x.score is not None}
        for result in tree.results:
            text = words_of(tree, result.node)
            assert result.text == WORDS.decode(text[:-1]) and result.length == len(text)
            assert result.penalty == length_penalty(len(text), config.length_penalty)
            assert result.score == pytest.approx(result.total / result.penalty + result.coverage, abs=1e-5)
            seen = np.sum([toy.looks((*words, END), text[:t]) for t in range(len(text))], axis=0)
            lacking = sum(math.log(min(max(looked, 1e-6), 1.0)) for looked in seen)
            assert result.coverage == pytest.approx(config.coverage_penalty * lacking, abs=1e-4)


def test_a_search_worked_by_hand():
    """a (.6) ends (.7) or goes on with b (.3); b (.4) ends for sure. The beam is 2, so all four are looked at."""
    table = {(): {4: 0.6, 5: 0.4}, (4,): {END: 0.7, 5: 0.3}}
    tree = Translator(table_toy(table, WORDS.size), WORDS).search_tree("a", beam=2, length_penalty=1.0)
    likely = [(n.parent, n.text, round(n.p, 3), n.state) for n in tree.nodes if n.p > 1e-9]
    assert likely[:3] == [(-1, "<s>", 1.0, "begin"), (0, "a", 0.6, "kept"), (0, "b", 0.4, "kept")]
    assert likely[3:] == [(1, "</s>", 0.7, "finished"), (2, "</s>", 1.0, "finished"), (1, "b", 0.3, "dropped")]
    first, second = tree.results
    assert (first.text, first.length, first.chosen) == ("a", 2, True) and first.penalty == pytest.approx(7 / 6)
    assert first.score == pytest.approx(math.log(0.42) * 6 / 7) and second.score == pytest.approx(math.log(0.4) * 6 / 7)
    assert (second.text, second.chosen) == ("b", False)


def test_where_few_words_may_follow_only_these_are_told():
    config = DecodeConfig(beam=3, no_repeat=1)
    _, steps = searched(random_toy(1), [[4], [5]], config, [[4, 5], []])
    third = [(told.ids, told.state) for told in steps[2][0]]
    assert sorted(third) == [((4, 5, END), "finished"), ((4, 5, 6), "kept")]


def test_a_sentence_has_the_same_tree_alone_and_in_a_batch():
    config = DecodeConfig(beam=3)
    _, together = searched(toy_of(1), SENTENCES, config)
    for sentence, words in enumerate(SENTENCES):
        _, alone = searched(toy_of(1), [words], config)
        ours, theirs = grow(together, WORDS, config, sentence), grow(alone, WORDS, config)
        assert [n._replace(total=0, p=0, score=0) for n in ours.nodes] == [
            n._replace(total=0, p=0, score=0) for n in theirs.nodes
        ]
        np.testing.assert_allclose([n.total for n in ours.nodes], [n.total for n in theirs.nodes], rtol=1e-5)


@pytest.mark.parametrize("settings", [{"beam": 5}, {"beam": 2, "length_penalty": 0.0}, {"beam": 3, "prefix": "nine"}])
def test_the_chosen_one_is_the_translation(trained, settings):
    ours = regard.load(trained)
    tree = ours.search_tree("3 1 4", **settings)
    (best,) = (result for result in tree.results if result.chosen)
    assert best.text == ours.translate("3 1 4", **settings)
    assert all(sum(node.step == step for node in tree.nodes) <= 2 * tree.size for step in range(1, best.length + 1))


def test_as_json_it_is_what_the_page_reads(trained):
    data = json.loads(json.dumps(regard.load(trained).search_tree("3 1 4", beam=5).data()))
    assert (data["size"], data["alpha"], data["beta"]) == (5, 0.6, 0.0)
    assert all(node.keys() == {"parent", "step", "text", "total", "p", "score", "state"} for node in data["nodes"])
    assert {"node", "text", "total", "length", "penalty", "coverage", "score", "chosen"} == data["results"][0].keys()
    assert data["nodes"][data["results"][0]["node"]]["state"] == "finished"


def test_there_is_no_search_for_nothing():
    with pytest.raises(DataError, match="empty text"):
        Translator(toy_of(1), WORDS).search_tree("  ")
