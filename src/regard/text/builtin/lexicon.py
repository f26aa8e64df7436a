"""The words of the built-in corpus: nouns, adjectives and verbs, each with its English and its French.

French is written here as in a dictionary, before elision and contraction: "le" + "animal" stays "le animal"
until `regard.text.builtin.grammar.elide` reads the finished sentence. Every h is mute, so that elision needs no list
of exceptions. In every table of nouns the first row is masculine, the second feminine, and both are equally
long: neither what a noun means nor where it stands tells its gender.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from regard.text.pair import Pair

AUXILIARIES = {  # person: avoir, être, aller (the near future), and the English "be" that goes with the last
    "je": ("ai", "suis", "vais", "am"),
    "il": ("a", "est", "va", "is"),
    "nous": ("avons", "sommes", "allons", "are"),
    "ils": ("ont", "sont", "vont", "are"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun, or a personal pronoun (kind "pronoun", which takes no article)."""

    english: str
    french: str
    gender: str  # "m" or "f"
    kind: str
    person: str = "il"  # a key of AUXILIARIES

    @property
    def the(self) -> str:
        """The noun with its English article: "the dog"."""
        return self.english if self.kind == "pronoun" else f"the {self.english}"

    @property
    def le(self) -> str:
        """The noun with its French article, not yet elided: "le animal"."""
        return self.french if self.kind == "pronoun" else f"{self.article} {self.french}"

    @property
    def article(self) -> str:
        """The French definite article."""
        return "le" if self.gender == "m" else "la"

    @property
    def it(self) -> str:
        """What French says for "it" when "it" means this noun."""
        return "il" if self.gender == "m" else "elle"


class Adjective(NamedTuple):
    """An adjective with both French forms."""

    english: str
    masculine: str
    feminine: str

    def agree(self, noun: Noun) -> str:
        """The French form that goes with the (singular) noun."""
        return self.masculine if noun.gender == "m" else self.feminine


class Verb(NamedTuple):
    """A verb with the few forms the grammar uses; the last three are the exception."""

    base: str
    past: str
    doing: str
    infinitive: str
    participle: str
    preposition: str = ""  # between the French verb and its object
    done: str = ""  # the English passive participle; without it the verb has no passive
    with_be: bool = False  # conjugated with être, so that the participle agrees with the subject

    def agree(self, noun: Noun) -> str:
        """The French participle as it agrees with the noun."""
        plural = noun.person in ("nous", "ils")
        return self.participle + ("e" if noun.gender == "f" else "") + ("s" if plural else "")


class Scene(NamedTuple):
    """Who can do what to what; what may be the matter with the one, and what with the other."""

    verb: Verb
    agents: tuple[Noun, ...]
    patients: tuple[Noun, ...]
    agent_traits: tuple[Adjective, ...]
    patient_traits: tuple[Adjective, ...]


class Tail(NamedTuple):
    """A subordinate clause about the agent or the patient; {y} is the deciding adjective, {x} one before it."""

    negative: bool  # the polarity of the main clause it explains
    english: str
    french: str  # {a} is the pronoun that goes with {x}, {b} the one that goes with {y}


def _nouns(kind: str, masculine: str, feminine: str) -> tuple[Noun, ...]:
    rows = {"m": masculine, "f": feminine}
    entries = ((entry.split(), gender) for gender, row in rows.items() for entry in row.split(", "))
    return tuple(Noun(english, french, gender, kind) for (english, french), gender in entries)


def _adjectives(row: str) -> dict[str, Adjective]:
    entries = (entry.split() for entry in row.split(", "))
    return {english: Adjective(english, forms[0], forms[-1]) for english, *forms in entries}


def _pick(table: tuple[Noun, ...], names: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in table if noun.english in names.split())


ANIMALS = _nouns(
    "animal",
    "animal animal, dog chien, horse cheval, elephant éléphant, donkey âne, rabbit lapin",
    "cow vache, goat chèvre, mouse souris, turtle tortue, goose oie, hen poule",
)
VEHICLES = _nouns(
    "vehicle", "truck camion, tractor tracteur, bus autobus", "car voiture, van camionnette, ambulance ambulance"
)
WAYS = _nouns("way", "path chemin, trail sentier, boulevard boulevard", "street rue, road route, avenue avenue")
AREAS = _nouns("area", "field champ, park parc, garden jardin", "square place, forest forêt, meadow prairie")
WATERS = _nouns("water", "lake lac, stream ruisseau", "river rivière, pond mare")
BRIDGES = _nouns("bridge", "bridge pont", "footbridge passerelle")
CONTAINERS = _nouns("container", "bag sac, basket panier, chest coffre", "crate caisse, suitcase valise, box boîte")
LOADS = CONTAINERS + _nouns("load", "barrel tonneau", "ladder échelle")
CONTENTS = _nouns("content", "ball ballon, book livre, mirror miroir", "lamp lampe, clock horloge, doll poupée")
PEOPLE = _nouns("person", "boy garçon, man homme", "girl fille, woman femme")
PRONOUNS = (
    Noun("I", "je", "m", "pronoun", "je"),
    Noun("we", "nous", "m", "pronoun", "nous"),
    Noun("he", "il", "m", "pronoun"),
    Noun("she", "elle", "f", "pronoun"),
    Noun("they", "ils", "m", "pronoun", "ils"),
)
SUBJECTS = PRONOUNS + PEOPLE
TABLES = (ANIMALS, VEHICLES, WAYS, AREAS, WATERS, BRIDGES, CONTAINERS, LOADS, CONTENTS, PEOPLE)
PLACES = WAYS + AREAS + WATERS + BRIDGES

# What tells a bank of money from the bank of a river, at the end of a sentence.
BANQUE = Noun("bank", "banque", "f", "town")
RIVE = Noun("bank", "rive", "f", "shore")
CITY = _pick(WAYS + AREAS, "street avenue square boulevard")
MONEY = _nouns("money", "money argent, cheque chèque, banker banquier", "cashier caissière")
SHORE = _nouns("shore", "fish poisson, fisherman pêcheur, duck canard", "boat barque")
BANKS = ((BANQUE, CITY, MONEY), (RIVE, WATERS, SHORE))
DESTINATIONS = _pick(AREAS, "field park garden forest meadow") + WATERS + BRIDGES

ADJECTIVES = _adjectives(
    "tired fatigué fatiguée, hungry affamé affamée, frightened effrayé effrayée, weak faible, sick malade, "
    "lazy paresseux paresseuse, wide large, narrow étroit étroite, long long longue, steep raide, "
    "deep profond profonde, muddy boueux boueuse, slippery glissant glissante, crowded encombré encombrée, "
    "heavy lourd lourde, bulky encombrant encombrante, precious précieux précieuse, slow lent lente, "
    "big gros grosse, small petit petite, full plein pleine, quiet calme, empty vide, dark sombre, "
    "pretty joli jolie, black noir noire, white blanc blanche"
)
BEFORE = (ADJECTIVES["small"], ADJECTIVES["pretty"])  # stand before the French noun
AFTER = (ADJECTIVES["black"], ADJECTIVES["white"])  # stand after it


def traits(names: str) -> tuple[Adjective, ...]:
    """The adjectives of these (English) names."""
    return tuple(ADJECTIVES[name] for name in names.split())


CROSS = Verb("cross", "crossed", "crossing", "traverser", "traversé", done="crossed")
FOLLOW = Verb("follow", "followed", "following", "suivre", "suivi", done="followed")
TAKE = Verb("take", "took", "taking", "prendre", "pris", done="taken")
CARRY = Verb("carry", "carried", "carrying", "porter", "porté", done="carried")
PULL = Verb("pull", "pulled", "pulling", "tirer", "tiré", done="pulled")
FIT = Verb("fit in", "fit in", "fitting in", "entrer", "entré", "dans", with_be=True)
REACH = Verb("reach", "reached", "reaching", "atteindre", "atteint")
LEAVE = Verb("leave", "left", "leaving", "quitter", "quitté")
SEE = Verb("see", "saw", "seeing", "voir", "vu")
FIND = Verb("find", "found", "finding", "trouver", "trouvé")
PROTECT = Verb("protect", "protected", "protecting", "protéger", "protégé")
SEEK = Verb("look for", "looked for", "looking for", "chercher", "cherché")
ARRIVE = Verb("arrive at", "arrived at", "arriving at", "arriver", "arrivé", "à", with_be=True)
RETURN = Verb("return to", "returned to", "returning to", "retourner", "retourné", "à", with_be=True)
WALK = Verb("walk to", "walked to", "walking to", "marcher", "marché", "jusque à")
RUN = Verb("run to", "ran to", "running to", "courir", "couru", "jusque à")
WAIT = Verb("wait near", "waited near", "waiting near", "attendre", "attendu", "près de")

OPENERS = (
    Pair("yesterday", "hier"),
    Pair("today", "aujourd'hui"),
    Pair("this morning", "ce matin"),
    Pair("later", "plus tard"),
)

WEARY = traits("tired hungry frightened weak sick lazy")
LADEN = traits("heavy bulky slow")
BURDEN = traits("heavy bulky slippery precious")
SCENES = (  # within a scene a trait fits one of the two nouns only; "heavy" is the truck here, the crate there
    Scene(CROSS, ANIMALS, WAYS, WEARY, traits("wide muddy slippery crowded")),
    Scene(CROSS, ANIMALS, AREAS, WEARY, traits("wide muddy slippery")),
    Scene(CROSS, ANIMALS, WATERS, WEARY, traits("wide deep muddy")),
    Scene(CROSS, ANIMALS, BRIDGES, WEARY, traits("long narrow slippery")),
    Scene(FOLLOW, ANIMALS, WAYS, WEARY, traits("long narrow steep muddy")),
    Scene(CROSS, VEHICLES, BRIDGES, LADEN, traits("narrow steep slippery")),
    Scene(TAKE, VEHICLES, WAYS, LADEN, traits("narrow steep muddy slippery")),
    Scene(CARRY, ANIMALS, LOADS, WEARY, BURDEN),
    Scene(PULL, ANIMALS, LOADS, WEARY, BURDEN),
    Scene(FIT, CONTENTS, CONTAINERS, traits("big bulky"), traits("small full")),
)

TAILS = (
    Tail(True, "because it was too {y}", "parce que {b} était trop {y}"),
    Tail(False, "because it wasn't {y}", "parce que {b} ne était pas {y}"),
    Tail(False, "even though it was very {y}", "même si {b} était très {y}"),
    Tail(
        True,
        "because it was too {x}, but it wasn't {y}",
        "parce que {a} était trop {x}, mais {b} ne était pas {y}",
    ),
    Tail(
        True,
        "because it was too {x} and because it was too {y}",
        "parce que {a} était trop {x} et parce que {b} était trop {y}",
    ),
)
