"""Before training: what is in the data, and what is wrong with it.

One pass, a block of pairs at a time. A few numbers are kept of each pair (hashes, a ratio, flags: some 40 bytes), never
its text, so that millions of pairs fit. Every norm is the corpus's own: its usual length ratio, the letters usual on
each side, the numbers that usually agree. Nothing here knows a language.
"""

import hashlib
import re
import string
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.text.corpus import Corpus
from regard.text.pair import Pair

Array = NDArray[Any]
Anchors = set[int | str]  # numbers, links and rare words: what stands in a translation as it stood in the source
BLOCK, BLOCK_CHARACTERS = 10_000, 2_000_000
WORDS_KEPT = 200_000  # distinct ones, of each side
LONG_SENTENCE = 256  # words
BUCKETS = (1, 5, 10, 15, 20, 30, 40, 50, 75, 100, 150, LONG_SENTENCE + 1)
LABELS = [*(f"{low}-{high - 1}" for low, high in pairwise(BUCKETS)), f"over {LONG_SENTENCE}"]
USUAL_SCRIPT = 0.05  # a script with a smaller share of a side's letters is unusual there
SEVERAL = 0.01  # several translations of a sentence are no fault until so many pairs are concerned
FAR = 5.0  # robust standard deviations from the usual length ratio, and a factor of 2.5 at least
DISTINCT_FITS = 0.3  # nats a character: languages nearer to each other than this cannot be told apart
UNSPACED = ("CJK", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
# Japanese mixes its three in every sentence; the others are Latin and Greek letters in disguise.
SAME_SCRIPT = dict.fromkeys(("HIRAGANA", "KATAKANA", "HALFWIDTH", "IDEOGRAPHIC"), "CJK")
SAME_SCRIPT |= {"FULLWIDTH": "LATIN", "MASCULINE": "LATIN", "FEMININE": "LATIN", "MICRO": "GREEK"}
NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[.,' \u00a0\u202f]\d{3}){1,5}(?!\d)|\d{1,18}")
MARKS = string.punctuation + "«»„“”‘’…¿¡。，、！？；："
WARNINGS = {
    "misaligned": ("hardly translate each other, to judge by length or numbers.", "Take out what is wrong."),
    "swapped": ("have the two languages the other way round.", "Swap the sides of these lines."),
    "copies": ("are the same on both sides.", "Take them out, unless the model is to copy text it should translate."),
    "duplicates": ("repeat an earlier pair.", "Keep one of each (sort -u), above all across training and test data."),
    "translations": ("give an earlier source another translation.", "Keep one if they contradict each other."),
    "source_script": ("have a source in a script unusual on that side.", "Take them out if that is another language."),
    "target_script": ("have a target in a script unusual on that side.", "Take them out if that is another language."),
    "long": (f"have over {LONG_SENTENCE} words on a side.", "Cut them into sentences, or they may be left out."),
}


@dataclass(frozen=True)
class Finding:
    """One kind of fault: how often, the first places, and what to do."""

    kind: str
    count: int
    share: float
    what: str
    hint: str
    lines: tuple[int, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Side:
    """One language's half of the corpus. Where words are not parted by spaces, each character counts as one."""

    words: int
    mean: float
    longest: int
    longest_line: int
    characters: int
    distinct_words: int
    once: float
    scripts: dict[str, float]
    lengths: dict[str, int]


@dataclass(frozen=True)
class Report:
    """What is in a corpus and what is wrong with it."""

    name: str
    pairs: int
    left_out: str
    skipped: dict[str, Any]
    source: Side
    target: Side
    warnings: tuple[Finding, ...]

    def as_table(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Plain text for a terminal."""
        sides = (self.source, self.target)
        rows = {
            "words": [f"{side.words:,}, {side.mean:.1f} in a sentence" for side in sides],
            "longest": [f"{side.longest:,} words (line {side.longest_line})" for side in sides],
            "distinct": [f"{side.distinct_words:,} words, {side.once:.0%} seen once" for side in sides],
            "characters": [f"{side.characters:,}" for side in sides],
            "script": [", ".join(f"{k.title()} {v:.0%}" for k, v in s.scripts.items() if v > 0.005) for s in sides],
        }
        most = max(max(side.lengths.values()) for side in sides)
        for label in LABELS:
            if any(counts := [side.lengths[label] for side in sides]):
                rows[f"{label} words"] = [f"{bar(count / most):<16}{count:>10,}" for count in counts]
        text = [f"{self.name}: {self.pairs:,} pairs; {self.left_out}.", "", f"{'':16}{'source':<36}target"]
        text += [f"{label:16}{cells[0]:<36}{cells[1]}".rstrip() for label, cells in rows.items()]
        for finding in self.warnings:
            text += ["", f"! {finding.what} {finding.hint}", *(f"    {example}" for example in finding.examples)]
        return text if self.warnings else [*text, "", "Nothing looks wrong."]


def check(corpus: Corpus, progress: Callable[[int], None] | None = None) -> Report:
    """Read the whole corpus; `progress` is told now and then how many pairs have been read."""
    survey = _Survey()
    for block in _blocks(corpus):
        survey.add(*zip(*block, strict=True))
        if progress:
            progress(survey.pairs)
    source, target = (side.report(survey.pairs) for side in survey.sides)
    skips, found = corpus.skipped, _warnings(corpus, survey)
    return Report(corpus.name, survey.pairs, str(skips), skips.as_table(), source, target, found)


def _blocks(corpus: Corpus) -> Iterator[list[tuple[int, Pair]]]:
    block: list[tuple[int, Pair]] = []
    characters = 0
    for number, pair in corpus.pairs():
        block.append((number, pair))
        characters += len(pair.source) + len(pair.target)
        if len(block) == BLOCK or characters >= BLOCK_CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block


class _Text:
    """One side of a block as one array of code points, each sentence followed by two line feeds."""

    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        self.lengths = np.array([len(sentence) for sentence in sentences])
        self.codes = np.frombuffer("\n\n".join([*sentences, "\n\n"]).encode("utf-32-le", "surrogatepass"), np.uint32)

    def sums(self, values: Array) -> Array:
        """Values of characters (all but the last two), summed by sentence."""
        return np.add.reduceat(values[: len(self.codes) - 2], np.cumsum(self.lengths + 2) - self.lengths - 2)


def script(character: str) -> str:
    """The script of a letter, told from the first word of its Unicode name; nothing for what is no letter."""
    if unicodedata.category(character) not in ("Lu", "Ll", "Lt", "Lo"):
        return ""
    name = unicodedata.name(character, "OTHER").split()[0]
    return SAME_SCRIPT.get(name, name)


class _Half:
    """Totals of one side."""

    def __init__(self) -> None:
        self.words = self.characters = self.longest = self.longest_line = 0
        self.lengths = np.zeros(len(BUCKETS), np.int64)
        self.letters = np.zeros(256, np.int64)
        self.scripts = {"": 0}  # name: number; 0 is no letter
        self._script_of = np.full(0x110000, 255, np.uint8)  # by code point; 255: not looked up yet
        self.distinct: dict[int, int] = {}  # how often each word has been seen, by its hash
        self._mask = 0

    def add(self, text: _Text, numbers: tuple[int, ...]) -> tuple[Array, Array, list[set[str]]]:
        """Of each sentence: its script, whether it is long, and its rare words."""
        scripts = self._scripts(text)
        spaced = [*self.scripts][int(self.letters.argmax())] not in UNSPACED
        cut = [sentence.split() if spaced else list("".join(sentence.split())) for sentence in text.sentences]
        sizes = np.array([len(words) for words in cut])
        self.words += int(sizes.sum())
        self.characters += int(text.lengths.sum())
        if sizes.max() > self.longest:
            self.longest, self.longest_line = int(sizes.max()), numbers[int(sizes.argmax())]
        self.lengths += np.bincount(np.searchsorted(BUCKETS, sizes, "right").clip(1) - 1, minlength=len(BUCKETS))
        bare = [[word.strip(MARKS) for word in words] for words in cut]
        counts = Counter(word for word in chain.from_iterable(bare) if word)
        self._count(counts)
        rare = {word for word, count in counts.items() if len(word) > 3 and count <= max(3, len(cut) / 200)}
        return scripts, sizes > LONG_SENTENCE, [rare.intersection(words) for words in bare]

    def _count(self, words: Counter[str]) -> None:
        """Count all words while they are few, then a sample: those whose hash ends in enough zeros."""
        for word, count in words.items():
            key = int.from_bytes(hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
            if not key & self._mask:
                self.distinct[key] = self.distinct.get(key, 0) + count
        while len(self.distinct) > WORDS_KEPT:
            self._mask = 2 * self._mask + 1
            self.distinct = {key: count for key, count in self.distinct.items() if not key & self._mask}

    def _scripts(self, text: _Text) -> Array:
        """Each sentence's script, if most of its letters, and three at least, are of one."""
        for code in np.unique(text.codes[self._script_of[text.codes] == 255]):
            self._script_of[code] = self.scripts.setdefault(script(chr(code)), len(self.scripts))
        ids = self._script_of[text.codes]
        self.letters += np.bincount(ids[ids > 0], minlength=256)
        letters = text.sums((ids > 0).astype(np.int64))
        found = np.zeros(len(letters), np.uint8)
        for one in np.unique(ids[ids > 0]):
            of_one = text.sums((ids == one).astype(np.int64))
            found[(of_one >= 3) & (2 * of_one > letters)] = one
        return found

    def unusual(self, scripts: Array) -> Array:
        rare = self.letters < USUAL_SCRIPT * self.letters.sum()
        return np.asarray((scripts > 0) & rare[scripts])

    def report(self, pairs: int) -> Side:
        letters = self.letters / max(1, self.letters.sum())
        distinct = len(self.distinct) * (self._mask + 1)
        once = sum(count == 1 for count in self.distinct.values()) / max(1, len(self.distinct))
        ranked = sorted((-float(letters[number]), name) for name, number in self.scripts.items() if number)
        scripts = {name: -share for share, name in ranked}
        lengths = dict(zip(LABELS, self.lengths.tolist(), strict=True))
        words = (self.words, self.words / pairs, self.longest, self.longest_line)
        return Side(*words, self.characters, distinct, once, scripts, lengths)


class _Languages:
    """Which of the two sides a text looks like, by its letters and trigrams, counted in a table of fixed size."""

    SIZE = 262_139  # a prime, so that the remainder spreads
    SMOOTHING = 5.0  # what has been seen a few times only may come from the very pair in doubt
    CLEAR = 12.0  # nats

    def __init__(self) -> None:
        self._counts = np.full((2, self.SIZE), self.SMOOTHING)

    def fit(self, texts: list[_Text]) -> Array:
        """How much better each pair fits straight than crossed, per character; 0 where there is too little to tell."""
        hashed: list[Array] = []
        for text, counts in zip(texts, self._counts, strict=True):
            codes = text.codes.astype(np.int64)
            trigrams = codes[:-2] * 73_856_093 + codes[1:-1] * 19_349_663 + codes[2:] * 83_492_791
            hashed.append(np.stack([trigrams, codes[:-2] * 12_582_917]) % self.SIZE)
            counts += np.bincount(hashed[-1].ravel(), minlength=self.SIZE)
        chance = np.log(self._counts / self._counts.sum(axis=1, keepdims=True))
        fits = [text.sums((chance[0] - chance[1])[each].sum(0)) for text, each in zip(texts, hashed, strict=True)]
        evidence, size = fits[0] - fits[1], texts[0].lengths + texts[1].lengths
        return np.where(abs(evidence) < self.CLEAR, 0, evidence / size).astype(np.float32)


class _Survey:
    """The pass over the corpus: totals of each side, and a few numbers of each pair."""

    def __init__(self) -> None:
        self.pairs = 0
        self.sides = (_Half(), _Half())
        self.kept: defaultdict[str, list[Array]] = defaultdict(list)
        self._languages = _Languages()
        self._last: tuple[Anchors, Anchors] = (set(), set())

    def add(self, numbers: tuple[int, ...], pairs: tuple[Pair, ...]) -> None:
        texts = [_Text([pair[side] for pair in pairs]) for side in (0, 1)]
        scripts, long, rare = zip(*map(_Half.add, self.sides, texts, [numbers] * 2), strict=True)
        figures = [(_figures(pair.source), _figures(pair.target)) for pair in pairs]
        anchors = [(a | b, c | d) for (a, c), b, d in zip(figures, *rare, strict=True)]
        beside = [_beside(*two) for two in pairwise([self._last, *anchors])]
        self._last = anchors[-1]
        columns = {
            "line": np.array(numbers, np.int64),
            "pair": np.array([hash(pair) for pair in pairs], np.int64),
            "source": np.array([hash(pair.source) for pair in pairs], np.int64),
            "copies": np.array([pair.source == pair.target for pair in pairs]),
            # Ten characters more on each side: "No." beside a whole clause is within reason.
            "ratio": np.log((texts[1].lengths + 10) / (texts[0].lengths + 10)).astype(np.float32),
            "figures": np.array([_agreement(*two) for two in figures], np.int8),
            "beside": np.array(beside, np.int8),
            "fit": self._languages.fit(texts),
            "source_script": scripts[0],
            "target_script": scripts[1],
            "long": long[0] | long[1],
        }
        for name, values in columns.items():
            self.kept[name].append(values)
        self.pairs += len(pairs)

    def take(self, name: str) -> Array:
        """What was kept under this name, of all pairs; it is not kept any longer."""
        return np.concatenate(self.kept.pop(name))

    def masks(self) -> Iterator[tuple[str, Array]]:
        """Of each kind of fault, which pairs have it."""
        figures = self.take("figures")
        # Where figures are usually spelled out, one without a counterpart says nothing.
        telling = 2 * (figures == 1).sum() > (figures > 0).sum()
        yield "misaligned", _outlying(self.take("ratio")) | (figures == 2) | ((figures == 3) & telling)
        fit = self.take("fit")
        usual = float(np.median(fit[fit != 0])) if fit.any() else 0.0
        yield "swapped", (fit < -usual / 2) & (usual > DISTINCT_FITS)
        yield "copies", self.take("copies")
        repeated = _repeated(self.take("pair"))
        yield "duplicates", repeated.copy()
        distinct = np.flatnonzero(~repeated)
        repeated[:] = False
        repeated[distinct] = _repeated(self.take("source")[distinct])
        yield "translations", repeated & (repeated.mean() > SEVERAL)
        yield "source_script", self.sides[0].unusual(self.take("source_script"))
        yield "target_script", self.sides[1].unusual(self.take("target_script"))
        yield "long", self.take("long")


def _figures(text: str) -> Anchors:
    """Numbers and links; 3,000 and 3 000 are 3000."""
    found: Anchors = {int("".join(filter(str.isdecimal, number))) for number in NUMBER.findall(text)}
    return found | {word.strip(MARKS) for word in text.split() if "://" in word} if "://" in text else found


def _agreement(one: Anchors, other: Anchors) -> int:
    """1 if numbers and links agree, 2 if they differ, 3 if a telling one has no counterpart, 0 if there are none."""
    if one and other:
        return 2 if one.isdisjoint(other) else 1
    return 3 if any(isinstance(figure, str) or figure > 999 for figure in one | other) else 0


def _beside(before: tuple[Anchors, Anchors], here: tuple[Anchors, Anchors]) -> tuple[int, int]:
    """Does this source fit the target before it, and the source before it this target, better than their own?"""
    fits = [[not source.isdisjoint(target) for _, target in (before, here)] for source, _ in (here, before)]
    earlier, later = fits[0][0] - fits[0][1], fits[1][1] - fits[1][0]
    # What speaks for a pair weighs three times as much, so that chance alone never adds up to a shift.
    return min(earlier, 3 * earlier), min(later, 3 * later)


def _outlying(ratio: Array) -> Array:
    """Lengths whose ratio is far out of the usual, measured by medians, which outliers cannot move."""
    away = abs(ratio - np.median(ratio))
    return np.asarray(away > max(np.log(2.5), FAR * 1.4826 * float(np.median(away))))


def _repeated(keys: Array) -> Array:
    """Which keys have occurred before."""
    order = np.argsort(keys, kind="stable")
    repeated = np.zeros(len(keys), bool)
    repeated[order[1:][keys[order[1:]] == keys[order[:-1]]]] = True
    return repeated


def _shifts(beside: Array, line: Array) -> Iterator[tuple[str, Array, str, str]]:
    """The stretch of pairs in which the target before fits better, and that in which the target after does."""
    ways = (("before", "a source was added or a target lost"), ("after", "a target was added or a source lost"))
    for evidence, (where, cause) in zip((beside[:, 0], np.append(beside[1:, 1], 0)), ways, strict=True):
        total = np.concatenate([[0], np.cumsum(evidence, dtype=np.int64)])
        gain = total - np.minimum.accumulate(total)
        end = int(gain.argmax())
        start = end - int(total[: end + 1][::-1].argmin())
        if gain[end] >= 10 + 2 * np.log(len(total)):
            first, last = line[start], line[end - 1]
            what = f"From line {first} to line {last}, each source fits the target one line {where} its own."
            yield "shift", np.arange(start, end), what, f"At line {first} or not long before, {cause}: mend it there."


def _warnings(corpus: Corpus, survey: _Survey) -> tuple[Finding, ...]:
    line = survey.take("line")
    found = [*_shifts(survey.take("beside"), line)]
    for kind, mask in survey.masks():
        if mask.any():
            count = f"{mask.sum():,} of {survey.pairs:,} pairs ({mask.mean():.2%})"
            found.append((kind, np.flatnonzero(mask), f"{count} {WARNINGS[kind][0]}", WARNINGS[kind][1]))
    places = [tuple(line[where[:3]].tolist()) for _, where, _, _ in found]
    shown = _examples(corpus, set(chain.from_iterable(places)))
    warnings = []
    for (kind, where, what, hint), lines in zip(found, places, strict=True):
        examples = tuple(shown.get(number, corpus.place(number)) for number in lines)
        warnings.append(Finding(kind, len(where), len(where) / survey.pairs, what, hint, lines, examples))
    return tuple(warnings)


def _examples(corpus: Corpus, wanted: set[int]) -> dict[int, str]:
    """The pairs on these lines, read once more as far as the last of them."""
    shown: dict[int, str] = {}
    for number, pair in corpus.pairs() if wanted else ():
        if number in wanted:
            shown[number] = f"{corpus.place(number)}  {'  |  '.join(map(_brief, pair))}"
        if len(shown) == len(wanted):
            break
    return shown


def _brief(text: str) -> str:
    """A sentence cut to size, without characters that a terminal might obey."""
    text = "".join(c if c.isprintable() else " " if c.isspace() else "·" for c in text[:61])
    return text if len(text) < 61 else f"{text[:59]}…"


def bar(share: float, width: int = 15) -> str:
    """A bar of blocks, drawn to an eighth."""
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + "▏▎▍▌▋▊▉█"[eighths % 8 - 1] * (eighths % 8 > 0)
