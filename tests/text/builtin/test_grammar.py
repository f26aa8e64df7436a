"""The laws of the built-in corpus."""

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import islice
from random import Random

import pytest

from regard.errors import DataError
from regard.text.builtin import grammar, lexicon
from regard.text.builtin.grammar import LECTURE, ambiguous, corpus, sentences
from regard.text.pair import Pair

WORDS: dict[object, list[object]] = {name: [adjective] for name, adjective in lexicon.ADJECTIVES.items()}
for table in (*lexicon.TABLES, lexicon.PRONOUNS, lexicon.MONEY, lexicon.SHORE):
    for noun in table:
        WORDS.setdefault(noun.english, []).append(noun)
GENDER = {noun.english: noun.gender for table in lexicon.TABLES for noun in table}
SAMPLE = 5_000


@pytest.fixture(scope="module")
def train() -> list[Pair]:
    return corpus("train", SAMPLE)


@pytest.fixture(scope="module")
def riddles() -> list[Pair]:
    return ambiguous("test", 2_000)


@pytest.fixture(scope="module")
def about_it(riddles: list[Pair]) -> list[Pair]:
    """Those whose last word decides an "it", still two by two."""
    return [pair for pair in riddles if re.search(r"\bit\b", pair.source, re.I)]


def last_pronoun(french: str) -> str:
    return re.findall(r"\b(?:il|elle)\b", french, re.I)[-1].lower()


class Scripted(Random):
    """A chance that takes what is wanted wherever it is offered, and the first option elsewhere."""

    def __init__(self, *wanted: object) -> None:
        super().__init__(0)
        self.wanted = [word for want in wanted for word in WORDS.get(want, [want])]

    def choice(self, options):
        return self.sample(options, 1)[0]

    def sample(self, options, count):
        return sorted(options, key=lambda option: option not in self.wanted)[:count]


def scene(verb: lexicon.Verb, kind: str) -> lexicon.Scene:
    return next(each for each in lexicon.SCENES if each.verb is verb and each.patients[0].kind == kind)


def test_the_grammar_derives_the_lecture():
    tired_or_wide = grammar.riddle(Scripted("animal", "street", "tired", "wide", grammar.active))
    street_or_river = grammar.arrival(Scripted("I", "street", "river", lexicon.ARRIVE, lexicon.CROSS, "after"))
    readings = (*tired_or_wide.readings, *street_or_river.readings)
    assert tuple(grammar.finish(reading) for reading in readings) == LECTURE
    assert {grammar.split_of(tired_or_wide.frame), grammar.split_of(street_or_river.frame)} == {"test"}


def test_training_never_contains_the_lecture_even_in_part():
    for pair in islice(sentences("train", seed=1), 20_000):
        assert "animal didn't cross the street" not in pair.source
        assert "I arrived at the bank after crossing" not in pair.source
        assert pair not in LECTURE


def test_the_same_seed_gives_the_same_corpus_in_every_process():
    program = "from regard.text.builtin.grammar import *; print(corpus('train', 50, 3) + ambiguous('test', 20, 3))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": salt}, capture_output=True, check=True
        ).stdout
        for salt in ("1", "2")
    }
    assert outputs == {f"{corpus('train', 50, 3) + ambiguous('test', 20, 3)}{os.linesep}".encode()}
    assert corpus("train", 50, 3) != corpus("train", 50, 4)


def test_splits_are_disjoint_whatever_the_seed():
    seen = {split: {pair.source for pair in islice(sentences(split, 7), SAMPLE)} for split in grammar.SPLITS}
    seen["train"] |= {pair.source for pair in islice(sentences("train", 8), 4 * SAMPLE)}
    assert not seen["train"] & seen["valid"]
    assert not seen["train"] & seen["test"]
    assert not seen["valid"] & seen["test"]


def test_nine_frames_in_ten_are_for_training():
    rng = Random(0)
    frames = {production(rng).frame for _ in range(2_000) for production in grammar.PRODUCTIONS[:30]}
    shares = Counter(grammar.split_of(frame) for frame in frames)
    assert shares["train"] / len(frames) == pytest.approx(0.90, abs=0.02)
    assert shares["test"] / len(frames) == pytest.approx(0.05, abs=0.015)


def test_a_corpus_is_the_distinct_beginning_of_the_stream(train: list[Pair]):
    assert len({pair.source for pair in train}) == len(train) == SAMPLE
    stream = list(dict.fromkeys(islice(sentences("train"), SAMPLE)))
    assert stream == train[: len(stream)]


def test_one_english_sentence_has_one_french(train: list[Pair]):
    french: dict[str, str] = {}
    for pair in [*train, *islice(sentences("train", 5), SAMPLE)]:
        assert french.setdefault(pair.source, pair.target) == pair.target


@pytest.mark.parametrize("table", lexicon.TABLES, ids=lambda table: table[0].kind)
def test_each_kind_of_noun_has_as_many_masculines_as_feminines(table: tuple[lexicon.Noun, ...]):
    assert sum(noun.gender == "m" for noun in table) * 2 == len(table)


@pytest.mark.parametrize("scene", lexicon.SCENES, ids=lambda scene: f"{scene.verb.base}-{scene.patients[0].kind}")
def test_in_a_scene_a_trait_fits_one_noun_only(scene: lexicon.Scene):
    assert not set(scene.agent_traits) & set(scene.patient_traits)


def test_riddles_are_minimal_pairs_decided_by_the_last_word(riddles: list[Pair]):
    assert len(riddles) == 2_000 and len(set(riddles)) == 2_000
    for one, other in zip(riddles[::2], riddles[1::2], strict=True):
        assert one.source != other.source
        assert one.source.rsplit(" ", 1)[0] == other.source.rsplit(" ", 1)[0]
        if re.search(r"\bit\b", one.source, re.I):
            assert {last_pronoun(one.target), last_pronoun(other.target)} == {"il", "elle"}
        else:
            assert "banque" in one.target and "rive" in other.target


def test_who_ignores_the_last_word_is_right_half_the_time(riddles: list[Pair]):
    forms: dict[str, Counter[str]] = {}
    for pair in riddles:
        ruling = last_pronoun(pair.target) if re.search(r"\bit\b", pair.source, re.I) else "banque" in pair.target
        forms.setdefault(pair.source.rsplit(" ", 1)[0], Counter())[str(ruling)] += 1
    assert sum(max(count.values()) for count in forms.values()) == len(riddles) / 2


def test_neither_majority_nor_position_predicts_the_pronoun(about_it: list[Pair]):
    right: Counter[str] = Counter()
    for pair in about_it:
        truth = "m" if last_pronoun(pair.target) == "il" else "f"
        first, second = (GENDER[word] for word in re.findall(r"\w+", pair.source) if word in GENDER)
        right.update({"majority": truth == "m", "first noun": truth == first, "second noun": truth == second})
    for name, count in right.items():
        assert 0.45 < count / len(about_it) < 0.55, name


def test_no_last_adjective_tells_the_pronoun_by_itself():
    forms: dict[str, Counter[str]] = {}
    for pair in ambiguous("train", 10_000):
        if " it was" in pair.source and not pair.source.startswith("Since"):
            forms.setdefault(pair.source.rsplit(" ", 1)[1], Counter())[last_pronoun(pair.target)] += 1
    guessed = sum(max(count.values()) for count in forms.values())
    assert guessed / sum(count.total() for count in forms.values()) < 0.55


def test_most_training_sentences_are_riddles_and_a_quarter_is_plain(train: list[Pair]):
    plain = [pair for pair in train if not re.search(r"\b(it|bank)\b", pair.source, re.I)]
    assert 0.2 < len(plain) / len(train) < 0.35


def test_no_french_sentence_forgets_to_elide_or_to_contract(train: list[Pair]):
    vowel = "[aeiouyhàâéèêîôû]"
    wrong = re.compile(rf"\b(?:(?:le|la|je|ne|de|que|jusque) {vowel}|(?:de|à) les?\b|si ils?\b|[ld]' )", re.I)
    needless = re.compile(rf"\b(?:l|j|n|d|qu|jusqu)'(?!{vowel})|\bs'(?!il)", re.I)
    for pair in [*train, *corpus("test", 1_000)]:
        assert not wrong.search(pair.target), pair.target
        assert not needless.search(pair.target.replace("ujourd'", "")), pair.target


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        ("le animal ne a pas vu la oie", "l'animal n'a pas vu l'oie"),
        ("parce que il était là, même si elle était loin", "parce qu'il était là, même si elle était loin"),
        ("même si il était loin de le pont", "même s'il était loin du pont"),
        ("près de le âne et de la avenue", "près de l'âne et de l'avenue"),
        ("jusque à le parc, avant de atteindre la rue", "jusqu'au parc, avant d'atteindre la rue"),
        ("je ai vu le homme à les portes de les jardins", "j'ai vu l'homme aux portes des jardins"),
    ],
)
def test_elision_and_contraction(raw: str, written: str):
    assert grammar.elide(raw) == written


def test_sentences_are_written_as_sentences(train: list[Pair]):
    for side in (side for pair in train for side in pair):
        assert re.fullmatch(r"[A-ZÀÉ][^.A-HJ-Z]*\.", side), side
        assert "  " not in side and " ," not in side and "’" not in side
        assert len(re.findall(r"\w+'|\w+|[^\w\s]", side)) <= 28


def test_every_french_word_comes_from_a_small_vocabulary(train: list[Pair]):
    for number in (0, 1):
        vocabulary = {word.lower() for pair in train for word in re.findall(r"\w+'|\w+", pair[number])}
        assert 140 < len(vocabulary) < 260


BECAUSE, AS_NOT, THOUGH, BUT, AND = lexicon.TAILS
DERIVATIONS = [
    (
        (grammar.riddle, AS_NOT, scene(lexicon.CROSS, "water"), "goose", "stream", "wide"),
        "The goose crossed the stream because it wasn't wide.",
        "L'oie a traversé le ruisseau parce qu'il n'était pas large.",
    ),
    (
        (grammar.riddle, THOUGH, scene(lexicon.CROSS, "area"), grammar.passive, "mouse", "park", "muddy"),
        "The park was crossed by the mouse even though it was very muddy.",
        "Le parc a été traversé par la souris même s'il était très boueux.",
    ),
    (
        (grammar.riddle, BUT, scene(lexicon.TAKE, "way"), grammar.passive, "truck", "road", "heavy", "bulky", "steep"),
        "The road wasn't taken by the truck because it was too bulky, but it wasn't steep.",
        "La route n'a pas été prise par le camion parce qu'il était trop encombrant, mais elle n'était pas raide.",
    ),
    (
        (grammar.riddle, AND, scene(lexicon.FIT, "container"), "clock", "basket", "bulky", "small"),
        "The clock didn't fit in the basket because it was too big and because it was too small.",
        "L'horloge n'est pas entrée dans le panier parce qu'elle était trop grosse et parce qu'il était trop petit.",
    ),
    (
        (grammar.riddle, BECAUSE, scene(lexicon.CROSS, "water"), True, "dog", "river", "deep"),
        "The dog didn't cross the river to reach the bank because it was too deep.",
        "Le chien n'a pas traversé la rivière pour atteindre la rive parce qu'elle était trop profonde.",
    ),
    (
        (grammar.riddle, BECAUSE, True, "hen", "boulevard", "crowded"),
        "The hen didn't cross the boulevard to reach the bank because it was too crowded.",
        "La poule n'a pas traversé le boulevard pour atteindre la banque parce qu'il était trop encombré.",
    ),
    (
        (grammar.foretold, scene(lexicon.CARRY, "container"), "cow", "barrel", "ladder", "heavy"),
        "Since it was too heavy, the cow didn't carry the ladder.",
        "Comme elle était trop lourde, la vache n'a pas porté l'échelle.",
    ),
    (
        (grammar.foretold, scene(lexicon.FOLLOW, "way"), True, "turtle", "path", "lazy"),
        "Since it was too lazy, the turtle didn't follow the path.",
        "Comme elle était trop paresseuse, la tortue n'a pas suivi le chemin.",
    ),
    (
        (grammar.arrival, "they", lexicon.RETURN, lexicon.CROSS, "before", "pond"),
        "They returned to the bank before crossing the pond.",
        "Ils sont retournés à la rive avant de traverser la mare.",
    ),
    (
        (grammar.departure, "she", ("before", lexicon.REACH), lexicon.FOLLOW, "stream"),
        "Before reaching the bank, she followed the stream.",
        "Avant d'atteindre la rive, elle a suivi le ruisseau.",
    ),
    (
        (grammar.errand, "I", lexicon.RUN, lexicon.PROTECT, "boat"),
        "I ran to the bank to protect the boat.",
        "J'ai couru jusqu'à la rive pour protéger la barque.",
    ),
    (
        (grammar.scenery, "man", "dark", lexicon.FIND, "fisherman"),
        "The bank was dark when the man found the fisherman.",
        "La rive était sombre quand l'homme a trouvé le pêcheur.",
    ),
    (
        (grammar.event, scene(lexicon.PULL, "container"), "goose", "box", "white", True),
        "The white goose didn't pull the white box.",
        "L'oie blanche n'a pas tiré la boîte blanche.",
    ),
    (
        (grammar.event, scene(lexicon.CARRY, "container"), grammar.passive, "donkey", "ladder", "pretty"),
        "The pretty ladder was carried by the pretty donkey.",
        "La jolie échelle a été portée par le joli âne.",
    ),
    (
        (grammar.journey, "girl", lexicon.ARRIVE, "garden", True),
        "The girl didn't arrive at the garden.",
        "La fille n'est pas arrivée au jardin.",
    ),
    (
        (grammar.timed(grammar.journey), lexicon.OPENERS[1], "we", lexicon.WAIT, "bridge"),
        "Today, we waited near the bridge.",
        "Aujourd'hui, nous avons attendu près du pont.",
    ),
    (
        (grammar.plan, "I", True, scene(lexicon.CROSS, "water"), "pond"),
        "I am not going to cross the pond.",
        "Je ne vais pas traverser la mare.",
    ),
    (
        (grammar.portrait, "double", scene(lexicon.FOLLOW, "way"), "cow", "tired", "lazy"),
        "The cow was tired and lazy.",
        "La vache était fatiguée et paresseuse.",
    ),
    ((grammar.portrait, "negative", "rabbit", "hungry"), "The rabbit wasn't hungry.", "Le lapin n'était pas affamé."),
]


@pytest.mark.parametrize(("derivation", "english", "french"), DERIVATIONS)
def test_each_construction_is_translated_right(derivation: tuple, english: str, french: str):
    production, *wanted = derivation
    assert grammar.finish(production(Scripted(*wanted)).readings[-1]) == Pair(english, french)


@pytest.mark.parametrize("call", [corpus, ambiguous])
def test_wrong_arguments_are_refused(call):
    with pytest.raises(DataError, match="unknown split 'dev'"):
        call("dev", 1)
    with pytest.raises(DataError, match="-1"):
        call("train", -1)
    with pytest.raises(DataError, match="unknown split"):
        sentences("Train")
    assert call("train", 0) == []


def test_an_odd_count_of_riddles_is_rounded_up():
    assert len(ambiguous("valid", 3)) == 4


def test_asking_for_more_than_there_is_fails_instead_of_hanging(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(grammar, "PATIENCE", 5)
    with pytest.raises(DataError, match="gave out"):
        ambiguous("test", 10_000)
