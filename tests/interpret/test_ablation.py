"""Heads switched off: the same as a copy of the model from which the head was cut by hand."""

import copy
import json
import math

import pytest
import torch

import regard
from conftest import small
from regard.decode.translator import Translator
from regard.errors import TraceError
from regard.interpret.ablation import knockouts, of_filler, of_labeller, of_writer
from regard.interpret.recording import trace_reading, trace_text
from regard.interpret.trace import Facts
from regard.layers.attention import MultiHead
from regard.models import build
from regard.models.base import Source
from regard.text.tokenizers.tokenizer import BEGIN, END, MASK, Listed

WORDS = Listed("words", [f"▁{letter}" for letter in "abcdefghijklmnop"])
MASKED_WORDS = Listed("words", ["<mask>", *(f"▁{letter}" for letter in "abcdefghijklmno")])
SOURCE, TARGET = "a b c d e f", "k l m n"
WRITERS = ["transformer", "universal", "lm", "memory"]


def translator(name):
    """A random model, made so that its attention matters."""
    model = build(small(name).model, WORDS.size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return Translator(model.eval(), WORDS)


def cut(model, module, head):
    """A copy of the model in which nothing of this head's context is joined."""
    place = next(name for name, part in model.named_modules() if part is module)
    without = copy.deepcopy(model)
    part = without.get_submodule(place)
    assert isinstance(part, MultiHead)
    share = part.width // part.heads
    with torch.no_grad():
        part.join.weight[:, head * share : (head + 1) * share] = 0
    return without


def deaf(model):
    """A copy of a model without heads, which looks at the source and learns nothing from it."""
    without = copy.deepcopy(model)
    for part in without.modules():
        if hasattr(part, "look"):
            part.look = lambda *asked, look=part.look: [answer * (n > 0) for n, answer in enumerate(look(*asked))]
    return without


def chances(model, source=SOURCE, target=TARGET):
    """Of every word at each position, by the model's own equations."""
    read, write = WORDS.encode([source, target])
    ids = torch.tensor([[*read, END]])
    with torch.inference_mode():
        hidden = model(Source(ids, torch.tensor([len(read) + 1])), torch.tensor([[BEGIN, *write]])).hidden_BTW
        return model.words(hidden[0]).softmax(-1)


def number_of(word):
    return WORDS.encode([word])[0][0]


def shown(number):
    return WORDS.pieces([number])[0].removeprefix("▁")


def module_of(watched, knocked):
    return watched.modules[knocked.kind, knocked.layer or 0]


@pytest.mark.parametrize("name", WRITERS)
def test_a_head_switched_off_is_a_head_cut_out(name):
    ours = translator(name)
    watched, found = ours.watched(SOURCE, TARGET), ours.knockouts(SOURCE, TARGET, word="m", max_length=5)
    m = number_of("m")
    assert found.word == "m" and found.probability == pytest.approx(float(chances(ours.model)[2, m]), rel=1e-5)
    assert found.translation == ours.translate(SOURCE, max_length=5)
    for knocked in found.heads:
        without = cut(ours.model, module_of(watched, knocked), knocked.head)
        theirs = chances(without)[2]
        assert knocked.probability == pytest.approx(float(theirs[m]), rel=1e-4)
        assert knocked.instead == shown(int(theirs.argmax()))
        assert knocked.translation == Translator(without, WORDS).translate(SOURCE, max_length=5)
        assert knocked.changes == (knocked.translation != found.translation)
    assert len({knocked.probability for knocked in found.heads}) == len(found.heads)


@pytest.mark.parametrize(
    ("name", "heads"), [("transformer", 12), ("lm", 4), ("memory", 6), ("conv", 1), ("luong", 1), ("seq2seq", 0)]
)
def test_every_head_is_switched_off_once(name, heads):
    ours = translator(name)
    found = ours.knockouts(SOURCE, TARGET, max_length=3).heads
    assert len(found) == len({(one.kind, one.layer, one.head) for one in found}) == heads
    assert all(one.layer is not None for one in found)


def test_where_one_head_serves_all_repetitions_it_is_switched_off_in_all_at_once():
    found = translator("universal").knockouts(SOURCE, TARGET, max_length=3).heads
    places = {(one.kind, one.layer, one.head) for one in found}
    assert places == {(kind, None, head) for kind in ("encoder", "decoder", "cross") for head in (0, 1)}
    assert len(found) == 6


@pytest.mark.parametrize("name", ["bahdanau", "luong", "conv"])
def test_a_model_without_heads_loses_the_whole_context(name):
    ours = translator(name)
    found, without = ours.knockouts(SOURCE, TARGET, word="l", max_length=5), deaf(ours.model)
    (knocked,) = found.heads
    expected = float(chances(without)[1, number_of("l")])
    assert knocked.probability == pytest.approx(expected, rel=1e-4) != found.probability
    assert knocked.translation == Translator(without, WORDS).translate(SOURCE, max_length=5)


def test_by_default_it_is_the_word_that_loses_most_over_all_heads():
    ours = translator("transformer")
    watched, found = ours.watched(SOURCE, TARGET), ours.knockouts(SOURCE, TARGET, max_length=3)
    written = WORDS.encode([TARGET])[0]
    fall = torch.zeros(len(written))
    for (kind, layer), module in watched.modules.items():
        for head in range(watched.trace.map(kind, layer + 1).heads):
            lost = chances(ours.model) - chances(cut(ours.model, module, head))
            fall += lost[range(len(written)), written]
    assert found.position == int(fall.argmax()) and found.word == TARGET.split()[found.position]


def ask(ours, row=None, target=TARGET):
    """What the translator asks, with the target's tokens shown as one likes."""
    read, write = WORDS.encode([SOURCE, target])
    source = Source(torch.tensor([[*read, END]]), torch.tensor([len(read) + 1]))
    row = row or ours.attention(SOURCE, target).rows["predicted"]
    return of_writer(ours.model, WORDS, row, source, [BEGIN, *write], [*write, END])


def test_a_word_in_pieces_is_as_likely_as_all_of_them_and_changes_in_the_first_that_does():
    ours = translator("transformer")
    watched = ours.watched(SOURCE, TARGET)
    row = watched.trace.rows["predicted"]
    one_word = row._replace(
        tokens=tuple(token._replace(word=7 if 1 <= n <= 2 else n) for n, token in enumerate(row.tokens))
    )
    found = knockouts(watched, ask(ours, one_word), word="lm")
    pieces = [number_of("l"), number_of("m")]
    assert found.position == 1 and found.probability == pytest.approx(
        math.prod(chances(ours.model)[[1, 2], pieces].tolist())
    )
    for knocked in found.heads:
        theirs = chances(cut(ours.model, module_of(watched, knocked), knocked.head))[1:3]
        assert knocked.probability == pytest.approx(math.prod(theirs[[0, 1], pieces].tolist()), rel=1e-4)
        first, second = (shown(int(position.argmax())) for position in theirs)
        assert knocked.instead == (f"l{second}" if first == "l" else first)
    assert knockouts(watched, ask(ours, one_word), word="m") == knockouts(watched, ask(ours, one_word), word=2) == found


def test_without_a_translation_the_word_says_what_changes():
    ours = translator("transformer")
    found = knockouts(ours.watched(SOURCE, TARGET), ask(ours), word=0)
    assert {knocked.translation for knocked in found.heads} == {None} and found.translation == TARGET
    assert [knocked.changes for knocked in found.heads] == [knocked.instead != "k" for knocked in found.heads]


@pytest.mark.parametrize("name", ["transformer", "universal", "memory", "bahdanau", "conv"])
def test_afterwards_the_model_is_what_it_was_to_the_last_bit(name):
    ours = translator(name)
    ours.model.train()
    before, weights = chances(ours.model), copy.deepcopy(ours.model.state_dict())
    ours.knockouts(SOURCE, TARGET, max_length=3)
    assert ours.model.training and torch.equal(chances(ours.model), before)
    assert all(torch.equal(weights[key], value) for key, value in ours.model.state_dict().items())

    def fails():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        knockouts(ours.watched(SOURCE, TARGET), ask(ours), translate=fails)
    assert torch.equal(chances(ours.model), before)


def test_a_text_that_a_language_model_reads_alone_is_asked_about_too():
    model = translator("lm").model
    ids = WORDS.encode([TARGET])[0]
    watched = trace_text(model, WORDS, Facts("lm"), ids, TARGET)
    nothing = Source(torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, dtype=torch.long))
    follows = number_of(watched.trace.rows["predicted"].tokens[-1].text)
    asked = of_writer(model, WORDS, watched.trace.rows["predicted"], nothing, [BEGIN, *ids], [*ids, follows])
    found = knockouts(watched, asked, word="n")
    assert found.position == 3 and found.translation == watched.trace.rows["predicted"].text
    for knocked in found.heads:
        without = cut(model, module_of(watched, knocked), knocked.head)
        with torch.inference_mode():
            theirs = without.words(without(nothing, torch.tensor([[BEGIN, *ids]])).hidden_BTW[0, 3]).softmax(-1)
        assert knocked.probability == pytest.approx(float(theirs[number_of("n")]), rel=1e-4)


def test_a_reader_is_asked_for_its_guess_at_the_mask():
    model = build(small("bert").model, MASKED_WORDS.size).eval()
    ids = [BEGIN, 5, MASK, 6, 7, MASK, END]
    watched = trace_reading(model, MASKED_WORDS, Facts("bert"), ids[1:-1], "a <mask> b c <mask>")

    def guess(model):
        with torch.inference_mode():
            hidden = model(torch.tensor([ids]), torch.tensor([len(ids)])).hidden_BTW
            return model.guess(hidden[0, 5]).softmax(-1)

    best = int(guess(model)[MASK + 1 :].argmax()) + MASK + 1
    with torch.inference_mode():
        found = knockouts(watched, of_filler(model, MASKED_WORDS, torch.tensor([ids])), word=5)
    assert (
        found.position == 5 and found.probability == pytest.approx(float(guess(model)[best])) and len(found.heads) == 4
    )
    assert found.word == MASKED_WORDS.pieces([best])[0].removeprefix("▁")
    for knocked in found.heads:
        without = cut(model, module_of(watched, knocked), knocked.head)
        assert knocked.probability == pytest.approx(float(guess(without)[best]), rel=1e-4) != found.probability


def test_a_labeller_is_asked_for_its_label():
    model = build(small("classifier").model, WORDS.size, 3).eval()
    ids, labels = torch.tensor([[BEGIN, 5, 6, 7, END]]), ["good", "bad", "dull"]
    watched = trace_reading(model, WORDS, Facts("classifier"), [5, 6, 7], "b c d")

    def label(model):
        with torch.inference_mode():
            return model.label(model(ids, torch.tensor([5])).hidden_BTW)[0].softmax(-1)

    best = int(label(model).argmax())
    with torch.inference_mode():
        found = knockouts(watched, of_labeller(model, labels, ids))
    assert (found.position, found.word) == (0, labels[best]) and len(found.heads) == 4
    for knocked in found.heads:
        theirs = label(cut(model, module_of(watched, knocked), knocked.head))
        assert knocked.probability == pytest.approx(float(theirs[best]), rel=1e-4) != found.probability
        assert knocked.instead == labels[int(theirs.argmax())] and knocked.changes == (knocked.instead != found.word)


def test_what_cannot_be_asked_is_refused_in_words():
    ours = translator("transformer")
    with pytest.raises(TraceError, match=r"did not write 'z'\. Choose one of: k l m n"):
        ours.knockouts(SOURCE, TARGET, word="z", max_length=3)
    with pytest.raises(TraceError, match="token 4"):
        ours.knockouts(SOURCE, TARGET, word=4, max_length=3)
    model = build(small("bert").model, MASKED_WORDS.size).eval()
    watched = trace_reading(model, MASKED_WORDS, Facts("bert"), [5, 6], "a b")
    with pytest.raises(TraceError, match="no <mask>"):
        knockouts(watched, of_filler(model, MASKED_WORDS, torch.tensor([[BEGIN, 5, 6, END]])))


def test_as_json_it_is_what_the_page_reads(trained):
    data = json.loads(json.dumps(regard.load(trained).knockouts("3 1 4").data()))
    assert data.keys() == {"position", "word", "probability", "translation", "heads"}
    assert data["translation"] == "three one four" and data["word"] == data["translation"].split()[data["position"]]
    for head in data["heads"]:
        assert head.keys() == {"kind", "layer", "head", "probability", "instead", "translation", "changes"}
    assert min(head["probability"] for head in data["heads"]) < data["probability"] <= 1
