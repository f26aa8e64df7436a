"""Texts made to be slow, from a thousand characters to a million: the time that reading them takes must grow with them.

CPU times are compared with each other, never with a clock of another machine: twice the text may take 2.3 times as long, by the
slope over all sizes that take long enough to be measured.
"""

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from test_unicode import KINDS, tokenizer

import regard
from regard.errors import RegardError
from regard.interpret.tokens import row_of
from regard.text.arguments import mended
from regard.text.batching.sentence_pairs import _STOP
from regard.text.builtin import grammar
from regard.text.checks import NUMBER
from regard.text.formats import tidy
from regard.text.tokenizers.tokenizer import cut
from torture.rows import Row
from untrained import made

SIZES = (1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000)
MOST = 2.3  # times as long, for twice as much
MEASURED = 0.03  # seconds: what takes less says nothing
TEXTS = {
    "one letter": "a",
    "two letters": "ab",
    "apostrophes": "a'",
    "spaces": " ",
    "words": "a ",
    "digits": "1",
    "numbers": "1.234",
    "signs": ".",
    "stops and quotes": '."',
    "lines": "\n",
    "combining marks": "\u0301",
    "marks of two classes": "\u0301\u0327",
    "joined emoji": "\U0001f469\u200d",
    "Hangul, decomposed": "\u1112\u1161\u11ab",
    "lone surrogates": "\udce9",
    "masks": "<mask>",
    "almost masks": "<mask",
    "Chinese": "\u4e2d",
    "ligatures": "\ufdfa",
}


def growth(work: Callable[[str], object], unit: str) -> tuple[float, float]:
    """How many times as long twice the text takes, and the seconds for the longest."""
    found: list[tuple[float, float]] = []
    seconds = 0.0
    for size in SIZES:
        text = (unit * (size // len(unit) + 1))[:size]
        took: list[float] = []
        while len(took) < 3 and sum(took) < 10:
            began = time.process_time()
            with suppress(RegardError):
                work(text)
            took.append(time.process_time() - began)
        seconds = min(took)
        if seconds >= MEASURED:
            found.append((math.log2(size), math.log2(seconds)))
        if seconds > 5:  # far from linear, and the next would be for ever
            break
    if len(found) < 2:
        return 0.0, seconds
    (first, before), (last, after) = found[max(0, len(found) - 3)], found[-1]
    return 2 ** ((after - before) / (last - first)), seconds


def tried(name: str, work: Callable[[str], object]) -> Row:
    """One reader on all texts."""
    grown = {what: growth(work, unit) for what, unit in TEXTS.items()}
    worst = max(grown, key=lambda what: grown[what][0])
    slowest = max(grown, key=lambda what: grown[what][1])
    seen = f"twice the text took at most {grown[worst][0]:.2f} times as long ({worst}); "
    seen += f"{SIZES[-1]:,} characters at most {grown[slowest][1]:.2f} s ({slowest})"
    return Row("X11", f"{name} on {len(TEXTS)} texts of {SIZES[0]:,} to {SIZES[-1]:,} characters", len(TEXTS), seen,
               grown[worst][0] <= MOST)  # fmt: skip


def run(scratch: Path) -> Iterator[Row]:
    for name, work in (*patterns().items(), *tokenizers().items(), *methods(scratch).items()):
        yield tried(name, work)


def patterns() -> dict[str, Callable[[str], object]]:
    """Every pattern that meets a user's text, and what tidies it."""
    expressions = {"number": NUMBER, "stop": _STOP, "elision": grammar._ELISION, "contraction": grammar._CONTRACTION}
    found: dict[str, Callable[[str], object]] = {
        f"pattern {name}": lambda text, one=one: (one.findall(text), one.fullmatch(text))
        for name, one in expressions.items()
    }
    found["pattern of ROUGE"] = lambda text: re.search("[a-z0-9]", text.lower())
    return found | {"mended": mended, "tidy": tidy}


def tokenizers() -> dict[str, Callable[[str], object]]:
    """Each kind of tokenizer: cutting, joining, and cutting at random as training does."""
    found: dict[str, Callable[[str], object]] = {}
    for kind in (*KINDS, "wordpiece"):
        ours = tokenizer(kind)
        found[f"{kind}: there and back"] = lambda text, ours=ours: ours.decode(ours.encode([text])[0])
    found["cut into words"] = lambda text: cut("words", text)
    for kind in ("bpe", "unigram"):
        ours = tokenizer(kind)
        found[f"{kind}: sampled"] = lambda text, ours=ours: ours.sample([text], 0.1, 1)
    return found


def methods(scratch: Path) -> dict[str, Callable[[str], object]]:
    """What is asked of models: a text as long is answered by its beginning or end, or refused."""
    found: dict[str, Callable[[str], object]] = {}
    for engine in ("torch", "ctranslate2"):

        def opened(name: str, job: str = "", engine: str = engine) -> Any:
            path = scratch / f"{name} {job}"
            if not path.exists():
                made(name, path, job, subwords="bpe")
            return regard.load(path, engine=engine if job != "text" else "torch", device="cpu")

        found[f"translate, {engine}"] = opened("transformer").translate
        found[f"embed, {engine}"] = opened("bert").embed
        found[f"classify, {engine}"] = opened("classifier").classify
        found[f"fill, {engine}"] = opened("bert").fill
    author, recurrent, reader = opened("lm", "text"), opened("lstm", "text"), opened("bert", engine="torch")
    found["write"] = lambda text: author.write(text, max_length=3, beam=1)
    found["write, lstm"] = lambda text: recurrent.write(text, max_length=3, sample=True)
    found["log_probabilities of a text"] = author.log_probabilities
    found["log_probabilities of a text, lstm"] = recurrent.log_probabilities
    found["attention"] = reader.attention
    ours = tokenizer("bpe")
    found["tokens of a picture"] = lambda text: row_of(ours, ours.encode([text])[0][:512], text)
    return found
