"""The built-in corpus: a grammar that speaks English and French at once, without a file.

Each production returns the same sentence in both languages. What makes the corpus worth translating is that
two English words cannot be translated where they stand:

- *it* is "il" or "elle" after the gender of the noun it means, and which noun it means is told by an adjective
  further on: the animal is tired, the street is wide.
- *bank* is "banque" or "rive", and a street, a river, a cheque or a boat at the end of the sentence tells which.

Such sentences are made in minimal pairs, alike but for the deciding word, so that whoever ignores that word is
right exactly half the time. The rest is plain prose. A sentence belongs to the split (train, valid, test) on
which the hash of its *frame* falls, the frame being what is left of it without the deciding words: both halves
of a minimal pair fall together, and no frame of one split is ever seen in another.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import NamedTuple

from regard.errors import DataError
from regard.text.builtin import lexicon as lex
from regard.text.builtin.lexicon import Adjective, Noun, Scene, Tail, Verb
from regard.text.pair import Pair

LECTURE: tuple[Pair, ...] = (
    Pair(
        "The animal didn't cross the street because it was too tired.",
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    ),
    Pair(
        "The animal didn't cross the street because it was too wide.",
        "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
    ),
    Pair(
        "I arrived at the bank after crossing the street.",
        "Je suis arrivé à la banque après avoir traversé la rue.",
    ),
    Pair(
        "I arrived at the bank after crossing the river.",
        "Je suis arrivé à la rive après avoir traversé la rivière.",
    ),
)

SPLITS = ("train", "valid", "test")
LECTURE_FRAMES = (
    "the animal didn't cross the street",
    ", the animal didn't cross the",  # where the noun decides
    "I arrived at the bank after crossing the",
)
PATIENCE = 5_000  # fruitless draws in a row after which the grammar is held to be exhausted


class Draft(NamedTuple):
    """What a production returns: one sentence, or a minimal pair, in words not yet elided."""

    frame: str
    readings: tuple[Pair, ...]
    ambiguous: bool = False


Production = Callable[[Random], Draft]

# ---------------------------------------------------------------------------------------------- the two languages

_ELISION = re.compile(r"\b(l)[ea] (?=[aeiouyhàâéèêîôû])|\b(j|n|d|qu|jusqu)e (?=[aeiouyhàâéèêîôû])|\b(s)i (?=ils?\b)")
_CONTRACTION = re.compile(r"\b(de|à) (les?) ")
_CONTRACTED = {("de", "le"): "du ", ("de", "les"): "des ", ("à", "le"): "au ", ("à", "les"): "aux "}


def elide(french: str) -> str:
    """Join French words as they are written: le animal, l'animal; que il, qu'il; de le pont, du pont."""
    elided = _ELISION.sub(lambda match: f"{match[match.lastindex or 0]}'", french)
    return _CONTRACTION.sub(lambda match: _CONTRACTED[match[1], match[2]], elided)


def finish(draft: Pair) -> Pair:
    """Write a pair of sentences out: elision, capital letter, full stop."""
    source, target = draft.source, elide(draft.target)
    return Pair(f"{source[0].upper()}{source[1:]}.", f"{target[0].upper()}{target[1:]}.")


def phrase(*words: str) -> str:
    """The words that are there, with spaces between them."""
    return " ".join(filter(None, words))


def join(first: Pair, between: str, second: Pair) -> Pair:
    """Two stretches of a sentence, joined alike in both languages."""
    return Pair(first.source + between + second.source, first.target + between + second.target)


def negate(finite: str, negative: bool) -> str:
    """Put "ne ... pas" around the finite verb when the clause is negative."""
    return f"ne {finite} pas" if negative else finite


def active(who: Noun, verb: Verb, what: Noun, negative: bool = False) -> Pair:
    """Who did (not do) what: "the dog didn't cross the street", "le chien ne a pas traversé la rue"."""
    have, be, *_ = lex.AUXILIARIES[who.person]
    finite, participle = (be, verb.agree(who)) if verb.with_be else (have, verb.participle)
    return Pair(
        phrase(who.the, f"didn't {verb.base}" if negative else verb.past, what.the),
        phrase(who.le, negate(finite, negative), participle, verb.preposition, what.le),
    )


def passive(who: Noun, verb: Verb, what: Noun, negative: bool = False) -> Pair:
    """The same told of the other noun: "the street wasn't crossed by the dog"."""
    return Pair(
        phrase(what.the, "wasn't" if negative else "was", verb.done, "by", who.the),
        phrase(what.le, negate("a", negative), "été", verb.agree(what), "par", who.le),
    )


def adjunct(link: str, verb: Verb, what: Noun) -> Pair:
    """After doing it, before doing it, without doing it, to do it."""
    french = {
        "after": f"après avoir {verb.participle}",
        "before": f"avant de {verb.infinitive}",
        "without": f"sans {verb.infinitive}",
        "to": f"pour {verb.infinitive}",
    }
    return Pair(phrase(link, verb.base if link == "to" else verb.doing, what.the), f"{french[link]} {what.le}")


# ------------------------------------------------------------------------------------------------------- it: il, elle


def couple(rng: Random, scene: Scene) -> tuple[Noun, Noun]:
    """An agent and a patient, four times out of five of unlike gender, since only these are a riddle."""
    agent = rng.choice(scene.agents)
    unlike = rng.choice((True, True, True, False, False))
    return agent, rng.choice([noun for noun in scene.patients if not unlike or noun.gender != agent.gender])


def riddle(rng: Random) -> Draft:
    """Main clause and tail: "The animal didn't cross the street because it was too ..." tired, or wide."""
    scene = rng.choice(lex.SCENES)
    agent, patient = couple(rng, scene)
    tail = rng.choice(lex.TAILS)
    voice = rng.choice((active, passive)) if scene.verb.done else active
    main = voice(agent, scene.verb, patient, tail.negative)
    if voice is active and scene.verb is lex.CROSS and scene.agents is lex.ANIMALS and rng.choice((False, False, True)):
        main = to_the_bank(main, patient)
    last = rng.choice(scene.agent_traits), rng.choice(scene.patient_traits)
    earlier = rng.choice([trait for trait in scene.agent_traits + scene.patient_traits if trait not in last])
    a = agent if earlier in scene.agent_traits else patient
    readings = tuple(explain(main, tail, a, earlier, b, y) for b, y in zip((agent, patient), last, strict=True))
    return Draft(main.source, readings, agent.gender != patient.gender)


def explain(main: Pair, tail: Tail, a: Noun, x: Adjective, b: Noun, y: Adjective) -> Pair:
    """The main clause with its tail, each "it" and each adjective agreeing with the noun meant."""
    return Pair(
        phrase(main.source, tail.english.format(x=x.english, y=y.english)),
        phrase(main.target, tail.french.format(a=a.it, x=x.agree(a), b=b.it, y=y.agree(b))),
    )


def to_the_bank(main: Pair, crossed: Noun) -> Pair:
    """Add "to reach the bank" where what is crossed tells which bank; elsewhere add nothing."""
    for bank, crossings, _ in lex.BANKS:
        if crossed in crossings:
            return join(main, " ", adjunct("to", lex.REACH, bank))
    return main


def foretold(rng: Random) -> Draft:
    """The reason first: "Since it was too wide, the animal didn't cross the ..." street, or boulevard."""
    scene = rng.choice(lex.SCENES)
    agent, patient = couple(rng, scene)
    if rng.choice((False, True)):
        trait = rng.choice(scene.agent_traits)
        main = active(agent, scene.verb, patient, negative=True)
        return Draft(main.source, (forestate(trait, agent, main),))
    trait = rng.choice(scene.patient_traits)
    other = rng.choice([noun for noun in scene.patients if noun.gender != patient.gender])
    readings = tuple(forestate(trait, noun, active(agent, scene.verb, noun, True)) for noun in (patient, other))
    return Draft(
        f"since it was too {trait.english}, {agent.the} didn't {scene.verb.base} the", readings, ambiguous=True
    )


def forestate(trait: Adjective, holder: Noun, main: Pair) -> Pair:
    """The main clause after its reason; "comme" is what French begins a sentence with."""
    return Pair(
        f"since it was too {trait.english}, {main.source}",
        f"comme {holder.it} était trop {trait.agree(holder)}, {main.target}",
    )


# ------------------------------------------------------------------------------------------------- bank: banque, rive


def crossing(rng: Random) -> tuple[Verb, Noun, Noun]:
    """A verb, and two places it is good for: one of the city, one of the water."""
    verb = rng.choice((lex.CROSS, lex.CROSS, lex.FOLLOW))
    followed = ("street", "avenue", "boulevard", "river", "stream")
    city, water = (
        rng.choice([noun for noun in nouns if verb is lex.CROSS or noun.english in followed])
        for nouns in (lex.CITY, lex.WATERS)
    )
    return verb, city, water


def banks(*readings: Pair) -> Draft:
    """A minimal pair about the bank; the frame is its English without the last word, which decides."""
    frame, _ = readings[0].source.rsplit(" ", 1)
    return Draft(frame, readings, ambiguous=True)


def arrival(rng: Random) -> Draft:
    """The bank, then the way: "I arrived at the bank after crossing the ..." street, or river."""
    who = rng.choice(lex.SUBJECTS)
    verb = rng.choice((lex.ARRIVE, lex.RETURN, lex.WALK, lex.RUN, lex.WAIT, lex.REACH, lex.SEE, lex.FIND))
    way, *ends = crossing(rng)
    link = rng.choice(("after", "before", "without"))
    mains = (active(who, verb, bank) for bank, *_ in lex.BANKS)
    return banks(*(join(main, " ", adjunct(link, way, end)) for main, end in zip(mains, ends, strict=True)))


def departure(rng: Random) -> Draft:
    """The bank before the main clause: "After leaving the bank, they followed the ..." street, or river."""
    who = rng.choice(lex.SUBJECTS)
    link, verb = rng.choice((("after", lex.LEAVE), ("after", lex.REACH), ("before", lex.REACH), ("before", lex.SEE)))
    way, *ends = crossing(rng)
    starts = (adjunct(link, verb, bank) for bank, *_ in lex.BANKS)
    return banks(*(join(start, ", ", active(who, way, end)) for start, end in zip(starts, ends, strict=True)))


def errand(rng: Random) -> Draft:
    """The bank, then the purpose: "She walked to the bank to look for the ..." cheque, or boat."""
    who = rng.choice(lex.SUBJECTS)
    verb = rng.choice((lex.RETURN, lex.WALK, lex.RUN))
    aim = rng.choice((lex.SEEK, lex.FIND, lex.PROTECT))
    mains = (active(who, verb, bank) for bank, *_ in lex.BANKS)
    ends = (adjunct("to", aim, rng.choice(things)) for *_, things in lex.BANKS)
    return banks(*(join(main, " ", end) for main, end in zip(mains, ends, strict=True)))


def scenery(rng: Random) -> Draft:
    """The bank in the first words: "The bank was quiet when we found the ..." cheque, or boat."""
    trait = rng.choice(lex.traits("quiet empty dark"))
    who = rng.choice(lex.SUBJECTS)
    verb = rng.choice((lex.FIND, lex.SEE))
    when, quand = f"the bank was {trait.english} when", f"était {trait.feminine} quand"
    starts = (Pair(when, f"{bank.le} {quand}") for bank, *_ in lex.BANKS)
    ends = (active(who, verb, rng.choice(things)) for *_, things in lex.BANKS)
    return banks(*(join(start, " ", end) for start, end in zip(starts, ends, strict=True)))


# -------------------------------------------------------------------------------------------------------- plain prose


def prose(source: str, target: str) -> Draft:
    """A sentence without a riddle, which is its own frame."""
    return Draft(source, (Pair(source, target),))


def adorn(rng: Random, noun: Noun) -> Noun:
    """The noun, perhaps with an adjective: before the French noun or, like the colours, after it."""
    trait = rng.choice((None, *lex.BEFORE, *(() if noun in lex.PLACES else lex.AFTER)))
    if trait is None:
        return noun
    form = trait.agree(noun)
    french = f"{form} {noun.french}" if trait in lex.BEFORE else f"{noun.french} {form}"
    return Noun(f"{trait.english} {noun.english}", french, noun.gender, noun.kind)


def event(rng: Random) -> Draft:
    """Something happens, or does not: "The small elephant didn't carry the white box"."""
    scene = rng.choice(lex.SCENES)
    voice = rng.choice((active, passive)) if scene.verb.done else active
    agent, patient = adorn(rng, rng.choice(scene.agents)), adorn(rng, rng.choice(scene.patients))
    return prose(*voice(agent, scene.verb, patient, rng.choice((False, True))))


def journey(rng: Random) -> Draft:
    """Someone goes somewhere: "We arrived at the park", "She waited near the elephant"."""
    verb = rng.choice(
        (lex.ARRIVE, lex.RETURN, lex.WALK, lex.RUN, lex.WAIT, lex.REACH, lex.LEAVE, lex.SEE, lex.SEEK, lex.FIND)
    )
    anywhere = lex.DESTINATIONS + lex.ANIMALS + lex.VEHICLES + lex.WAYS
    goal = rng.choice(anywhere if verb in (lex.WAIT, lex.SEE, lex.SEEK, lex.FIND) else lex.DESTINATIONS)
    return prose(*active(rng.choice(lex.SUBJECTS), verb, goal, rng.choice((False, True))))


def plan(rng: Random) -> Draft:
    """Someone will do something, or will not: "They are not going to cross the river"."""
    scene = rng.choice(lex.SCENES)
    doers = lex.SUBJECTS if scene.agents is not lex.CONTENTS else lex.CONTENTS
    who, what, negative = rng.choice(doers), adorn(rng, rng.choice(scene.patients)), rng.choice((False, True))
    *_, va, is_ = lex.AUXILIARIES[who.person]
    return prose(
        phrase(who.the, is_, "not" if negative else "", "going to", scene.verb.base, what.the),
        phrase(who.le, negate(va, negative), scene.verb.infinitive, scene.verb.preposition, what.le),
    )


def portrait(rng: Random) -> Draft:
    """How something is: "The path was long and narrow", "The cow isn't lazy"."""
    scene = rng.choice(lex.SCENES)
    nouns, traits = rng.choice(((scene.agents, scene.agent_traits), (scene.patients, scene.patient_traits)))
    noun, first, second = rng.choice(nouns), *rng.sample(traits, 2)
    verb, finite = rng.choice((("was", "était"), ("is", "est")))
    shape = rng.choice(("plain", "negative", "double"))
    if shape == "double":
        return prose(
            f"{noun.the} {verb} {first.english} and {second.english}",
            f"{noun.le} {finite} {first.agree(noun)} et {second.agree(noun)}",
        )
    negative = shape == "negative"
    verb, finite = f"{verb}n't" if negative else verb, negate(finite, negative)
    return prose(f"{noun.the} {verb} {first.english}", f"{noun.le} {finite} {first.agree(noun)}")


# ----------------------------------------------------------------------------------------------------------- the corpus


def timed(production: Production) -> Production:
    """The production, most often opened by a word of time: "Yesterday, ..."."""

    def opened(rng: Random) -> Draft:
        frame, readings, riddling = production(rng)
        opener = rng.choice((None, *lex.OPENERS))
        if opener is None:
            return Draft(frame, readings, riddling)
        return Draft(f"{opener.source}, {frame}", tuple(join(opener, ", ", each) for each in readings), riddling)

    return opened


IT: tuple[Production, ...] = (riddle,) * 10 + (foretold,) * 2
BANK: tuple[Production, ...] = tuple(timed(each) for each in (arrival, arrival, departure, errand, scenery))
PROSE: tuple[Production, ...] = (timed(event), timed(journey), plan, portrait)
RIDDLES = IT + BANK
PRODUCTIONS = RIDDLES * 2 + PROSE * 5


def split_of(frame: str) -> str:
    """The split a frame belongs to: 90% train, 5% valid, 5% test, and the lecture's frames always test."""
    bucket = zlib.crc32(frame.encode()) % 20
    if bucket == 0 or any(known in frame for known in LECTURE_FRAMES):
        return "test"
    return "valid" if bucket == 1 else "train"


def drafts(split: str, seed: int, productions: tuple[Production, ...]) -> Iterator[Draft]:
    """The endless stream of the split's drafts, with their readings written out."""
    rng = Random(f"{split} {seed}")
    while True:
        draft = rng.choice(productions)(rng)
        if split_of(draft.frame) == split:
            yield draft._replace(readings=tuple(finish(reading) for reading in draft.readings))


def check(split: str, count: int = 0) -> None:
    """Refuse what a user may get wrong."""
    if split not in SPLITS:
        raise DataError(f"unknown split {split!r}: the built-in corpus has {', '.join(SPLITS)}")
    if count < 0:
        raise DataError(f"cannot make {count} sentences: the count must not be negative")


def distinct(stream: Iterator[tuple[Pair, ...]], count: int) -> list[Pair]:
    """The first `count` pairs, leaving out any group that repeats an English sentence."""
    found: dict[str, Pair] = {}
    fruitless = 0
    while len(found) < count:
        group = next(stream)
        fruitless = fruitless + 1 if any(pair.source in found for pair in group) else 0
        if not fruitless:
            found.update((pair.source, pair) for pair in group)
        elif fruitless > PATIENCE:
            raise DataError(f"the built-in grammar gave out at {len(found)} distinct sentences; {count} were asked for")
    return list(islice(found.values(), count))


def sentences(split: str, seed: int = 0) -> Iterator[Pair]:
    """The endless stream of a split's sentences, the same for the same seed everywhere; some come twice."""
    check(split)
    return (pair for draft in drafts(split, seed, PRODUCTIONS) for pair in draft.readings)


def corpus(split: str, count: int, seed: int = 0) -> list[Pair]:
    """The first `count` distinct pairs of `sentences(split, seed)`."""
    check(split, count)
    return distinct(((pair,) for pair in sentences(split, seed)), count)


def ambiguous(split: str, count: int, seed: int = 0) -> list[Pair]:
    """`count` (rounded up to even) sentences, two by two alike but for the end, which decides what the French is."""
    check(split, count)
    twins = (draft.readings for draft in drafts(split, seed, RIDDLES) if draft.ambiguous)
    return distinct(twins, count + count % 2)
