"""Running text made ready for training: its tokenizer, and one long row of ids on disk."""

import random
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.config import TextConfig
from regard.errors import DataError
from regard.text.cache import Journal, key_of, once
from regard.text.documents import Documents
from regard.text.encoding import AT_A_TIME, Encoder
from regard.text.prepare import SAVED_EVERY, Learn, Progress, Reservoir, learn_into, skipped
from regard.text.stream import Appended, Stream, StreamWriter
from regard.text.tokenizer import Tokenizer, load_tokenizer

LINES_HELD_OUT = 10_000  # when there is no other text to validate on; at most a tenth of it


@dataclass(frozen=True)
class PreparedText:
    """Running text made ready for training."""

    tokenizer: Tokenizer
    train: Stream
    valid: Stream
    notes: list[str]


def prepare_text(
    train: Documents,
    valid: Documents | None,
    config: TextConfig,
    folder: Path,
    seed: int,
    progress: Progress,
    learn: Learn,
) -> PreparedText:
    """Learn the tokenizer and tokenise all lines into `folder`, or take up what an earlier call left there.

    Without `valid`, the last lines of `train` are held out.
    """

    def write(new: Path, journal: Journal) -> list[str]:
        if "learned" not in journal.done:
            journal.tell("learned", _learn(train, valid is None, config, new, seed, progress, learn))
        learned = journal.done["learned"]
        texts = [train] if valid is None else [train, valid]
        _tokenise(texts, learned["lines"], learned["held_out"], config, new, progress, journal)
        notes: list[str] = learned["notes"]
        return notes

    notes = once(folder, key_of(train, valid, config, seed), write)
    tokenizer = load_tokenizer(folder, config)
    return PreparedText(tokenizer, Stream.open(folder / "train"), Stream.open(folder / "valid"), notes)


def _learn(
    train: Documents, hold_out: bool, config: TextConfig, folder: Path, seed: int, progress: Progress, learn: Learn
) -> dict[str, Any]:
    """Count the lines and store the tokenizer; what there is to know of both."""
    drawn = Reservoir[str](config.learn_from, random.Random(seed))
    for count, line in enumerate(train.lines(), 1):
        drawn.offer(line.text)
        if count % AT_A_TIME == 0:
            progress("reading", count)
    notes = [str(train.skipped)] if train.skipped.total else []
    held_out = min(LINES_HELD_OUT, drawn.offered // 10) if hold_out else 0
    if hold_out:
        if not held_out:
            raise DataError(f"{train.name} has only {drawn.offered} lines, too few to hold some out. Give --valid.")
        notes.append(
            f"held out the last {held_out:,} of {drawn.offered:,} lines for validation, as no --valid was given"
        )
    learn_into(drawn.kept, config, folder, progress, learn, notes)
    return {"lines": drawn.offered, "held_out": held_out, "notes": notes}


@dataclass
class _Position:
    """How far tokenising has come, ready for JSON."""

    texts: int = 0
    """So many are done."""
    lines: int = 0
    """And so many of the one that follows."""
    train: Appended = field(default_factory=Appended)
    valid: Appended = field(default_factory=Appended)

    @classmethod
    def read(cls, table: dict[str, Any]) -> "_Position":
        return cls(**{**table, "train": Appended(**table["train"]), "valid": Appended(**table["valid"])})


def _tokenise(
    texts: list[Documents],
    lines: int,
    held_out: int,
    config: TextConfig,
    folder: Path,
    progress: Progress,
    journal: Journal,
) -> None:
    at = _Position.read(journal.done["tokenised"]) if "tokenised" in journal.done else _Position()
    tokenizer = load_tokenizer(folder, config)
    train = StreamWriter(folder / "train", tokenizer.size, at.train)
    valid = StreamWriter(folder / "valid", tokenizer.size, at.valid)

    with Encoder(tokenizer, folder, config, lines) as encoder:
        for documents in texts[at.texts :]:
            for_train = lines - held_out if at.texts == 0 else 0
            rest = skipped(documents.lines(), at.lines, progress)
            for chunk, encoded in encoder.chunks(rest, lambda line: (line.text,)):
                for line, ids in zip(chunk, encoded.lists(), strict=True):
                    writer = train if at.lines < for_train else valid
                    writer.add(ids, size=len(line.text.encode()), closes=line.closes)
                    at.lines += 1
                progress("tokenising", at.lines)
                if at.lines % SAVED_EVERY == 0:
                    at.train, at.valid = train.save(), valid.save()
                    journal.tell("tokenised", asdict(at))
            at.texts, at.lines = at.texts + 1, 0
    train.close()
    valid.close()
