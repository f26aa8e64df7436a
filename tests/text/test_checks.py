"""A fault planted in a clean corpus is found on its line; a clean corpus is left in peace."""

import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from regard.text import checks as module
from regard.text.checks import Finding, Report, bar, check, script
from regard.text.corpus import Corpus, open_corpus
from regard.text.formats import Fault, Reason
from regard.text.pair import Pair

WHO = "teacher/professeur doctor/médecin neighbour/voisin sister/sœur farmer/fermier soldier/soldat writer/écrivain"
DID = "watches/regarde follows/suit remembers/rappelle describes/décrit forgets/oublie admires/admire hears/entend"
WHAT = "house/maison window/fenêtre mountain/montagne kitchen/cuisine bridge/pont church/église garden/jardin"
HOW = "slowly/lentement today/aujourd'hui often/souvent without.fear/sans.crainte tomorrow/demain again/encore"


def sentence(rng: random.Random) -> Pair:
    """English and French that share nothing but a name and a number, no two alike."""
    who, did, what, how = (
        [part.replace(".", " ") for part in rng.choice(words.split()).split("/")] for words in (WHO, DID, WHAT, HOW)
    )
    name = "".join(rng.choices("bdfgklmnprstv", k=3)).capitalize() + "aeiou"[rng.randrange(5)] + rng.choice("lnrs")
    number = rng.randrange(10_000)
    return Pair(
        f"The {who[0]} {name} {did[0]} the old {what[0]} number {number} {how[0]}.",
        f"Le {who[1]} {name} {did[1]} la vieille {what[1]} numéro {number} {how[1]}.",
    )


def clean(count: int, seed: int = 0) -> list[Pair]:
    rng = random.Random(seed)
    return [sentence(rng) for _ in range(count)]


class Listed(Corpus):
    """Pairs made anew at each pass."""

    def __init__(self, make: Callable[[], Iterator[Pair]] | list[Pair]) -> None:
        super().__init__("data.tsv")
        self._make = make

    def pairs(self) -> Iterator[tuple[int, Pair]]:
        return enumerate(self._make if isinstance(self._make, list) else self._make(), 1)

    def hashed(self) -> str:
        return ""


def found(pairs: list[Pair]) -> dict[str, Finding]:
    return {finding.kind: finding for finding in check(Listed(pairs)).warnings}


@pytest.mark.parametrize("count", [1, 2, 30, 3000])
def test_a_clean_corpus_gives_no_warning(count: int) -> None:
    report = check(Listed(clean(count)))
    assert report.warnings == () and report.pairs == count
    assert report.lines()[-1] == "Nothing looks wrong."


def test_the_built_in_corpus_gives_no_warning() -> None:
    assert check(open_corpus(["builtin:en-fr/valid"])).warnings == ()


# --- faults of single pairs -----------------------------------------------------------------------------------------


def turned(pair: Pair) -> Pair:
    return Pair(pair.target, pair.source)


FAULTS: dict[str, Callable[[Pair], Pair]] = {
    "swapped": turned,
    "copies": lambda pair: Pair(pair.source, pair.source),
    "misaligned": lambda pair: Pair(pair.source, "Oui."),
    "long": lambda pair: Pair(*(" ".join(["word"] * 257) for _ in pair)),
    "source_script": lambda pair: Pair("Учитель Аня смотрит на старый дом и медленно уходит.", pair.target),
    "target_script": lambda pair: Pair(pair.source, "先生は古い家をゆっくりと見ている。そして帰って行った。"),
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("line", [1, 437, 1000])
def test_a_planted_fault_is_found_on_its_line(kind: str, line: int) -> None:
    pairs = clean(1000)
    pairs[line - 1] = FAULTS[kind](pairs[line - 1])
    finding = found(pairs)[kind]
    assert (finding.count, finding.lines, finding.share) == (1, (line,), 1 / 1000)
    assert finding.examples[0].startswith(f"data.tsv:{line}  ")


@pytest.mark.parametrize(
    "target",
    [
        "Le médecin rappelle la vieille maison numéro 8866 demain matin.",
        "Le médecin rappelle la vieille maison neuve et grise demain matin.",
    ],
)
def test_numbers_that_disagree_are_misaligned(target: str) -> None:
    pairs = clean(500)
    pairs[99] = Pair("The doctor remembers the old house number 7421 tomorrow.", target)
    assert found(pairs)["misaligned"].lines == (100,)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It costs 3,000 and then 12.5 in all of it.", "Il coûte 3 000 et puis 12,5 en tout cela."),
        ("It costs 1,234,567 in all for the house.", "Il coûte 1.234.567 en tout pour la maison."),
        ("In the year 1984 there were no such things.", "في عام ١٩٨٤ لم تكن هناك مثل هذه الأشياء أبدا."),
        ("Look at https://example.org/x, please, my friend.", "Regarde (https://example.org/x) mon ami."),
        ("There are 3 of them left over in the house.", "Il en reste trois dans la vieille maison."),
    ],
)
def test_numbers_written_another_way_agree(source: str, target: str) -> None:
    pairs = clean(500)
    pairs[99] = Pair(source, target)
    assert "misaligned" not in found(pairs)


def test_repeated_pairs_are_counted_from_the_second_on() -> None:
    pairs = clean(1000)
    pairs[500] = pairs[700] = pairs[30]
    assert (found(pairs)["duplicates"].count, found(pairs)["duplicates"].lines) == (2, (501, 701))


def test_several_translations_are_told_once_they_are_many() -> None:
    pairs = clean(1000)
    pairs[900] = Pair(pairs[10].source, pairs[10].target + " !")
    assert not found(pairs)
    for line in range(20, 40):
        pairs[line] = Pair(pairs[10].source, pairs[10].target + "!" * line)
    finding = found(pairs)["translations"]
    assert (finding.count, finding.lines) == (21, (21, 22, 23))


def test_only_the_first_three_places_are_shown() -> None:
    pairs = clean(1000)
    for line in (5, 50, 500, 555):
        pairs[line - 1] = turned(pairs[line - 1])
    finding = found(pairs)["swapped"]
    assert finding.count == 4 and finding.lines == (5, 50, 500)


def test_languages_that_look_alike_are_never_called_swapped() -> None:
    pairs = [Pair(pair.source, " ".join(reversed(pair.source.split()))) for pair in clean(500)]
    assert "swapped" not in found(pairs)


# --- shifts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lost", "where"), [("target", "before"), ("source", "after")])
@pytest.mark.parametrize("line", [2, 300, 900])
def test_a_lost_line_is_found_where_it_was_lost(lost: str, where: str, line: int) -> None:
    sources, targets = map(list, zip(*clean(1000), strict=True))
    del (targets if lost == "target" else sources)[line - 1]
    pairs = [Pair(*two) for two in zip(sources, targets, strict=False)]
    finding = found(pairs)["shift"]
    # The source whose target is lost has none anywhere: the evidence begins with the line after it.
    assert finding.lines[0] == (line + 1 if lost == "target" else line)
    assert f"one line {where} its own" in finding.what


def test_a_shift_that_is_mended_later_ends_there() -> None:
    pairs = clean(1000)
    targets = [pair.target for pair in pairs]
    targets.insert(799, targets.pop(399))
    finding = found([Pair(pair.source, target) for pair, target in zip(pairs, targets, strict=True)])["shift"]
    assert "From line 401 to line 800" in finding.what or "From line 400 to line 799" in finding.what


def test_chance_likeness_is_no_shift() -> None:
    rng = random.Random(5)
    words = [f"word{rng.randrange(300)}" for _ in range(40_000)]
    pairs = [Pair(" ".join(words[i : i + 4]), " ".join(words[i + 4 : i + 8])) for i in range(0, 40_000, 8)]
    assert "shift" not in found(pairs)


# --- the report -----------------------------------------------------------------------------------------------------


def test_totals_are_those_of_the_text() -> None:
    pairs = [Pair("one two, three", "un deux"), Pair("two", "deux trois quatre cinq six")]
    report = check(Listed(pairs))
    assert (report.source.words, report.source.mean, report.source.longest_line) == (4, 2.0, 1)
    assert (report.target.words, report.target.longest, report.target.longest_line) == (7, 5, 2)
    assert report.source.characters == len("one two, threetwo")
    assert (report.source.distinct_words, report.source.once) == (3, 2 / 3)
    assert report.target.lengths["1-4"] == report.target.lengths["5-9"] == 1
    assert report.target.scripts == {"LATIN": 1.0}


def test_where_words_are_not_parted_each_character_is_one() -> None:
    report = check(Listed([Pair("今日は天気がいい。", "The weather is fine today.")] * 3))
    assert (report.source.longest, report.target.longest) == (9, 5)


def test_a_report_is_ready_for_json_and_for_a_terminal() -> None:
    pairs = clean(300)
    pairs[7] = Pair("\x1b[2Jred", "\x1b[2Jred")
    corpus = Listed(pairs)
    corpus.skipped.add(Fault(Reason.EMPTY, "data.tsv:301"))
    report = check(corpus)
    table = json.loads(json.dumps(report.as_table()))
    assert table["skipped"]["empty"]["first"] == "data.tsv:301"
    assert table["warnings"][0]["lines"] == [8]
    text = "\n".join(report.lines())
    assert "\x1b" not in text and "left out 1 pair" in text and "█" in text and "data.tsv:8" in text


def test_many_distinct_words_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORDS_KEPT", 1000)
    report = check(Listed([Pair(f"word{i} twice{i}", f"mot{i} twice{i} twice{i}") for i in range(10_000)]))
    assert report.source.distinct_words == pytest.approx(20_000, rel=0.15)
    assert report.target.once == pytest.approx(0.5, abs=0.07)


def test_files_are_checked_by_the_line_numbers_of_the_file(tmp_path: Path) -> None:
    rows = [f"{pair.source}\t{pair.target}" for pair in clean(300)]
    rows[100] = "\t"
    rows[200] = "\t".join(reversed(rows[200].split("\t")))
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(rows))
    report = check(open_corpus([str(path)]))
    assert report.pairs == 299 and "a.tsv:101" in report.left_out
    assert report.warnings[0].lines == (201,)


# --- bounds ---------------------------------------------------------------------------------------------------------


def big(count: int) -> Callable[[], Iterator[Pair]]:
    def make() -> Iterator[Pair]:
        rng = random.Random(1)
        return (sentence(rng) for _ in range(count))

    return make


def test_faults_are_found_across_blocks_and_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 1000)
    told: list[int] = []
    pairs = clean(3500)
    pairs[2999], pairs[3000] = turned(pairs[2999]), pairs[0]
    report = check(Listed(pairs), told.append)
    assert told == [1000, 2000, 3000, 3500]
    assert {finding.kind: finding.lines for finding in report.warnings} == {"swapped": (3000,), "duplicates": (3001,)}


def test_memory_grows_by_some_bytes_a_pair_not_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 500)
    peaks = []
    for count in (1000, 9000):
        tracemalloc.start()
        assert check(Listed(big(count))).pairs == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Words that are new go on filling the sample until it is full; allow for two of them in a pair.
    assert (peaks[1] - peaks[0]) / 8000 < 600


def test_fifty_thousand_pairs_from_a_generator() -> None:
    report: Report = check(Listed(big(50_000)))
    assert report.pairs == 50_000 and report.warnings == ()
    assert sum(report.source.lengths.values()) == 50_000


def test_a_few_endless_lines_are_taken_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_CHARACTERS", 100_000)
    told: list[int] = []
    check(Listed([Pair("a" * 60_000, "b" * 60_000)] * 4), told.append)
    assert told == [1, 2, 3, 4]


def test_bars_are_drawn_to_an_eighth() -> None:
    assert [bar(share, 4) for share in (0, 0.5, 0.28, 1)] == ["", "██", "█▏", "████"]


def test_scripts_go_by_unicode_and_fit_their_table() -> None:
    assert [script(letter) for letter in "éжあ漢º!5"] == ["LATIN", "CYRILLIC", "CJK", "CJK", "LATIN", "", ""]
    assert len({script(chr(code)) for code in range(0x110000)}) < np.iinfo(np.uint8).max
