"""Public corpora, as their authors publish them -> the files that `regard train` reads."""

import gzip
import random
import string
from collections.abc import Iterable
from pathlib import Path


def shakespeare(data: Path, to: Path) -> None:
    """The first nine tenths of the characters to learn from, the last to validate on, as nanoGPT parts them."""
    text = gzip.decompress((data / "tinyshakespeare/input.txt.gz").read_bytes()).decode()
    cut = len(text) * 9 // 10
    _write(to / "train.txt", text[:cut])
    _write(to / "valid.txt", text[cut:])


def cmudict(data: Path, to: Path) -> None:
    """Spelling, letter by letter -> sound. A word to validate or test on stands once; its other sounds are further references.

    Validation is on words that are not in training: of one in eight that are published for it another sound is. `all` has
    what is published for either.
    """
    learned = _sounds(data, "train-dev-20-21")
    _write_pairs(to / "train.tsv", ((word, one) for word, some in learned.items() for one in some))
    _write(to / "spelling.txt", "".join(word + "\n" for word in learned))
    held_back = _sounds(data, "train-dev-1-21")
    everything = [(word, one) for part in (learned, held_back) for word, some in part.items() for one in some]
    _write_pairs(to / "all.tsv", everything)
    valid = {word: some for word, some in held_back.items() if word not in learned}
    _write(to / "spelling.valid.txt", "".join(word + "\n" for word in valid))
    for part, sounds in (("valid", valid), ("test", _sounds(data, "test"))):
        _write_pairs(to / f"{part}.tsv", ((word, some[0]) for word, some in sounds.items()))
        for number in range(1, max(map(len, sounds.values()))):
            further = (some[number] if number < len(some) else "" for some in sounds.values())
            _write(to / f"{part}.{number + 1}", "".join(one + "\n" for one in further))


def _sounds(data: Path, part: str) -> dict[str, list[str]]:
    """Every word of a published part, with all its sounds there."""
    sounds: dict[str, list[str]] = {}
    for line in _lines(data / f"cmudict/cmudict-0.7b.{part}.gz"):
        word, _, sound = line.partition("  ")
        sounds.setdefault(" ".join(word.lower()), []).append(sound.strip())
    return sounds


def made_up(written: str, spelling: Path, to: Path) -> None:
    """Of the numbered words that a model wrote, a hundred thousand that are not in `spelling`, and of more than two letters."""
    known = set(spelling.read_text(encoding="utf-8").splitlines())
    words = {line.partition("\t")[2] for line in written.splitlines()} - known
    new = sorted(word for word in words if len(word.split()) > 2)
    random.Random("made up").shuffle(new)
    _write(to, "".join(word + "\n" for word in new[:100_000]))


def scan(data: Path, to: Path) -> None:
    """Commands -> actions, both splits; and one of our own to choose by, of those that the length split learns from."""
    for split in ("simple", "length"):
        for part in ("train", "test"):
            lines = _lines(data / f"scan/tasks_{part}_{split}.txt.gz")
            pairs = [tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in lines]
            _write_pairs(to / f"{split}.{part}.tsv", pairs)
            if (split, part) == ("length", "train"):
                _write_pairs(to / "length.shorter.tsv", [pair for pair in pairs if len(pair[1].split()) <= 16])
                _write_pairs(to / "length.longer.tsv", [pair for pair in pairs if len(pair[1].split()) > 16])


def digits(_data: Path, to: Path) -> None:
    """Copying and reversing decimal digits: up to 40 to learn from, 80 to choose by, and 400 to be tested on.

    `few` has the same lengths as `train`, but each of its texts only some of the ten digits, down to two of them: in such a
    text only a long stretch of digits tells one place from another.
    """
    parts = {
        "train": (40_000, range(1, 41)),
        "few": (40_000, range(1, 41)),
        "valid": (500, range(1, 41)),
        "80": (200, [80]),
        "400": (200, [400]),
        "to-400": (500, range(1, 401)),
    }
    for task, step in (("copy", 1), ("reverse", -1)):
        for part, (count, lengths) in parts.items():
            rng = random.Random(f"{task} {part}")
            pairs = []
            for _ in range(count):
                some = rng.sample(string.digits, rng.randint(2, 10)) if part == "few" else string.digits
                text = rng.choices(some, k=rng.choice(lengths))
                pairs.append((" ".join(text), " ".join(text[::step])))
            _write_pairs(to / f"{task}.{part}.tsv", pairs)


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def _write_pairs(path: Path, pairs: Iterable[tuple[str, ...]]) -> None:
    _write(path, "".join("\t".join(pair) + "\n" for pair in pairs))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
