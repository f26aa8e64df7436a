"""Texts drawn from the worst of Unicode, through every command's method, tokenizer and engine: read, or refused in words."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard.errors import RegardError
from regard.text.arguments import mended
from torture.rows import Row
from untrained import made

TRIALS = 2000
AT_A_TIME = 50
PARTS: list[Callable[[random.Random], str]] = [
    lambda place: chr(place.randrange(0xD800, 0xE000)),  # half a character
    lambda place: "\0",
    lambda place: place.choice(["\ufffe", "\uffff", "\U0010ffff", "\ue000", "\ufffd"]),
    lambda place: "e" + "\u0301" * place.choice([1, 10, 1000]),
    lambda place: "\u202e" + "abc" + "\u202c" * place.randrange(2),
    lambda place: "\U0001f469\u200d" * place.randrange(1, 5),
    lambda place: place.choice(["\u2028", "\u2029", "\x0b", "\x85", "\r", "\n", "\t", "\x1b[2J"]),
    lambda place: place.choice(["\u2581", "\u2424", "<mask>", "[MASK]", "<s>", "</s>", "<pad>", "<unk>", "\u2047"]),
    lambda place: chr(place.randrange(0xD800)),
    lambda place: chr(place.randrange(0xE000, 0x110000)),
    lambda place: place.choice([" a b c", " the cat", " ", ""]),
]


def drawn(number: int) -> str:
    """A text of some such parts."""
    place = random.Random(number)
    return "".join(place.choice(PARTS)(place) for _ in range(place.randrange(1, 8)))


def run(scratch: Path) -> Iterator[Row]:
    texts = [drawn(number) for number in range(TRIALS)]
    for subwords in ("bpe", "unigram", ""):
        for engine in ("torch", "ctranslate2"):
            for name, method in methods(scratch, subwords, engine).items():
                yield tried(f"{name}, {engine}, {subwords or 'words'}", method, texts)


def methods(scratch: Path, subwords: str, engine: str) -> dict[str, Callable[[list[str]], Any]]:
    """What takes texts."""

    def opened(name: str, job: str = "", by: str = engine) -> Any:
        path = scratch / f"{name} {job} {subwords}"
        return regard.load(path if path.exists() else made(name, path, job, subwords=subwords), engine=by, device="cpu")

    translator = opened("transformer")
    found = {
        "translate": lambda texts: [one[0].text for one in translator.stream(texts, beam=1)],
        "embed": opened("bert").embed,
        "classify": opened("classifier").classify,
        "fill": opened("bert").fill,
    }
    if engine == "torch":
        author = opened("lm", "text")
        found["write"] = lambda texts: author.write(texts, max_length=2, beam=1)
    return found


def tried(name: str, method: Callable[[list[str]], Any], texts: list[str]) -> Row:
    """One method on all texts; each result can be written as UTF-8 and is that of the mended text."""
    good, wrong = 0, ""
    for first in range(0, len(texts), AT_A_TIME):
        some = texts[first : first + AT_A_TIME]
        try:
            found, again = method(some), method(list(map(mended, some)))
            if isinstance(found, np.ndarray):
                assert np.isfinite(found).all() and np.array_equal(found, again)
            else:
                assert found == again
                json.dumps(found, ensure_ascii=False).encode()
            good += len(some)
        except RegardError as error:
            wrong = wrong or f"refused from {first}: {error}"
        except Exception as error:  # of whatever kind: that is what is looked for
            wrong = wrong or f"from {first}: {type(error).__name__}: {error}"
    seen = f"{good:,} read, each as the text with U+FFFD for half a character" + (f"; {wrong[:200]}" if wrong else "")
    return Row("X12", name, len(texts), seen, good == len(texts))
