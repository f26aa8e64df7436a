"""Texts written from both ends: learned as two texts, searched as two models, chosen by the mean of both."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import regard
from conftest import QUICK, VOCABULARY, WRITERS, small, write_digits
from regard.cli.main import main
from regard.config import DecodeConfig
from regard.decode.both_ways import Backwards, search_both_ways
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.probability import judge
from regard.decode.sample import greedy
from regard.errors import ConfigError
from regard.models import build
from regard.models.interface import Source, Writer
from regard.text.batch import make_pairs, reversed_targets
from regard.text.tokenizer import BEGIN, END, PAD
from regard.training.loss import both_ways, pairs_loss
from toys import Toy, batch, every_text, log_softmax, random_toy, same

SENTENCES = batch([4, 5, 6], [6], [5, 5, 4, 6])
PAIRS = make_pairs([[5, 6, 7], [6, 7], [9]], [[8, 9], [9, 8, 7], []], [0, 1, 2])


def writer(name: str, **settings: Any) -> Writer:
    torch.manual_seed(1)
    model = build(small(name, **settings).model, VOCABULARY)
    assert isinstance(model, Writer)
    return model


def test_a_reversed_target_is_its_words_from_the_last_to_the_first() -> None:
    ours = reversed_targets(PAIRS.target_BT, PAIRS.target_lengths_B)
    assert ours.tolist() == [[END, 9, 8, END, PAD], [END, 7, 8, 9, END], [END, END, PAD, PAD, PAD]]


@pytest.mark.parametrize("name", WRITERS)
def test_every_model_has_the_mean_loss_and_gradient_of_two_texts(name: str) -> None:
    model = writer(name).train()
    both_ways(model, PAIRS, 0.1).total.backward()
    ours = {key: p.grad.clone() for key, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    back_BT = torch.tensor([[END, 9, 8, END, PAD], [END, 7, 8, 9, END], [END, END, PAD, PAD, PAD]])
    for target_BT in (PAIRS.target_BT, back_BT):
        there = type(PAIRS)(PAIRS.source_BS, PAIRS.source_lengths_B, target_BT, PAIRS.target_lengths_B, [0, 1, 2])
        (pairs_loss(model, there, 0.1).total / 2).backward()
    theirs = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
    assert ours.keys() == theirs.keys()
    for key, gradient in ours.items():
        assert_close(gradient, theirs[key], atol=1e-4, rtol=1e-3)


def test_validation_and_a_batch_without_text_are_as_ever() -> None:
    model = writer("transformer")
    assert float(both_ways(model.train(), PAIRS.emptied(), 0.1).total.detach()) == 0.0
    model.eval()
    assert both_ways(model, PAIRS, 0.0).total.equal(pairs_loss(model, PAIRS, 0.0).total)


@pytest.mark.parametrize("settings", [{}, {"positions": "relative", "span": 3}, {"offset": 30}])
def test_targets_that_share_a_source_are_read_as_if_each_had_its_own(settings: dict[str, Any]) -> None:
    model = writer("transformer", **settings).train()
    assert model.rows_share_source
    ahead_BT, back_BT = torch.randint(4, VOCABULARY, (2, 3, 5))
    source = Source(PAIRS.source_BS, PAIRS.source_lengths_B)

    def states(target_BT: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(2)  # where positions are counted from
        return model(source, target_BT).hidden_BTW

    together = states(torch.stack([ahead_BT, back_BT], 1).flatten(0, 1))
    assert_close(together[::2], states(ahead_BT), atol=1e-5, rtol=1e-4)
    assert_close(together[1::2], states(back_BT), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", WRITERS)
def test_backwards_a_model_reads_word_by_word_what_it_reads_whole_after_end(name: str) -> None:
    model = writer(name).eval()
    back, target_BT = Backwards(model), torch.tensor([[BEGIN, 5, 6, 7]] * 3)
    with torch.inference_mode():
        whole_BTV = model.words(model(SENTENCES, torch.tensor([[END, 5, 6, 7]] * 3)).hidden_BTW)
        assert_close(back.words(back(SENTENCES, target_BT).hidden_BTW), whole_BTV)
        state = back.start(SENTENCES)
        for position in range(4):
            logits_BV, state = back.step(target_BT[:, position], state)
            assert_close(logits_BV, whole_BTV[:, position], atol=1e-4, rtol=1e-4)
    assert [back.places(n) for n in (3, 30)] == [model.places(n) for n in (3, 30)]


def by_definition(toy: Toy, words: list[int], config: DecodeConfig) -> list[Hypothesis]:
    """All texts, each with the mean of what the toy says of it forwards and, after END, backwards."""
    found = []
    for text, _, ahead in every_text(toy, words, config):
        back = [END, *text[::-1], END]
        scores = [log_softmax(toy.scores((*words, END), tuple(back[:t])))[back[t]] for t in range(1, len(back))]
        mean = (ahead + float(sum(scores))) / 2
        found.append(Hypothesis(text, mean / length_penalty(len(text) + 1, config.length_penalty), mean))
    return sorted(found, key=lambda one: -one.score)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_wide_beam_finds_the_texts_that_are_best_by_the_mean_of_both_ways(penalty: float) -> None:
    toy = random_toy(5, end=0.5)
    config = DecodeConfig(max_length=3, beam=60, n_best=3, length_penalty=penalty, both_ways=True)
    ours = search_both_ways(toy, SENTENCES, config)
    for found, words in zip(ours, ([4, 5, 6], [6], [5, 5, 4, 6]), strict=True):
        assert same(found, by_definition(toy, words, config)[:3])


def test_of_what_either_search_finds_the_better_is_chosen() -> None:
    config, source = DecodeConfig(max_length=4, beam=1, n_best=1), batch([4, 5])
    from_the_end = []
    for seed in range(20):
        toy = random_toy(seed, end=0.5)
        scores = {tuple(one.ids): one.score for one in by_definition(toy, [4, 5], config)}
        ahead, back = (greedy(model, source, config)[0][0].ids for model in (toy, Backwards(toy)))
        ((found,),) = search_both_ways(toy, source, config)
        assert found.ids == max(ahead, back[::-1], key=lambda ids: scores[tuple(ids)])
        from_the_end.append(found.ids != ahead)
    assert any(from_the_end) and not all(from_the_end)


@pytest.mark.parametrize("name", ["transformer", "lm"])
def test_texts_begin_with_their_prefix_and_do_not_depend_on_the_texts_beside_them(name: str) -> None:
    model = writer(name).eval()
    config = DecodeConfig(max_length=5, beam=3, n_best=2, both_ways=True)
    prefixes = [[5], [], [4, 6]]
    together = search_both_ways(model, SENTENCES, config, prefixes)
    for row, (found, prefix) in enumerate(zip(together, prefixes, strict=True)):
        length = int(SENTENCES.lengths_B[row])
        alone = Source(SENTENCES.ids_BS[row : row + 1, :length], SENTENCES.lengths_B[row : row + 1])
        assert same(search_both_ways(model, alone, config, [prefix])[0], found)
        assert found and all(one.ids[: len(prefix)] == prefix for one in found)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits in words, learned both ways, and searched so unless something else is said."""
    folder = tmp_path_factory.mktemp("both")
    torch.set_num_threads(1)
    settings = {**QUICK, "train.steps": 600, "train.patience": 0, "train.both_ways": True, "decode.both_ways": True}
    regard.train(write_digits(folder, 400), folder / "model", settings=settings)
    return folder / "model"


def test_a_trained_model_writes_the_same_from_either_end(learned: Path) -> None:
    model = regard.load(learned)
    texts = ["1 2 3", "4 1", "", "9 9 1"]
    assert model.translate(texts) == ["one two three", "four one", "", "nine nine one"]
    source = batch(model.tokenizer.encode(["4 1"])[0])
    backwards = model.tokenizer.encode(["one four"])[0]
    (right,) = judge(Backwards(model.model), source, torch.tensor([[BEGIN, *backwards, END]]))
    ((score, tokens),) = model.log_probabilities(["4 1"], ["four one"])
    assert right.log_probability > -0.7 and tokens == 3
    ((best,),) = model.n_best(["4 1"])
    assert best.score == pytest.approx((score + right.log_probability) / 2 / length_penalty(3, 0.6), abs=1e-4)


def test_the_command_line_turns_it_on_and_off(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for told in ([], ["--both-ways"], ["--no-both-ways"]):
        assert main(["translate", str(learned), "1 2", "--scores", *told]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]
    assert all(line.endswith("one two\n") for line in printed)
    together = ["--with", str(learned), "--both-ways"]
    assert main(["translate", str(learned), "1 2", "--scores", *together]) == 0
    assert capsys.readouterr().out == printed[0]


def test_drawing_at_random_goes_forwards(learned: Path) -> None:
    model = regard.load(learned)
    one, other = (model.n_best(["1 2 3"], sample=True, n_best=3, both_ways=both) for both in (True, False))
    assert one == other


def test_what_cannot_be_is_refused(learned: Path, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did not learn it"):
        regard.load(trained).translate("1 2", both_ways=True)
    with pytest.raises(ConfigError, match="did not learn it"):
        regard.load([learned, trained]).translate("1 2")
    with pytest.raises(ConfigError, match=r"decode\.both_ways=True"):
        regard.load(learned, engine="ctranslate2")
    for setting in ({"coverage_penalty": 0.2}, {"shortlist": 50}):
        with pytest.raises(ConfigError, match="Leave one of them out"):
            regard.load(learned).translate("1 2", **setting)
    (tmp_path / "book.txt").write_text("It was a dark night.\n" * 20)
    for data, told, settings in (
        (tmp_path / "book.txt", "learn from pairs", {"train.both_ways": True}),
        (write_digits(tmp_path, 20), "different losses", {"train.both_ways": True, "train.rdrop": 5}),
        (write_digits(tmp_path, 20), "Set train.both_ways=true", {"decode.both_ways": True}),
    ):
        with pytest.raises(ConfigError, match=told):
            regard.train(data, tmp_path / "model", model="lm", settings=settings)
