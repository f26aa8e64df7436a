"""Running text made ready for training: its tokenizer, and one long row of ids on disk.

When its last lines are held out, no passage of them is trained on: other copies are left out.
"""

import random
from collections import deque
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from regard.config import TextConfig
from regard.errors import DataError
from regard.text.plain_text import Documents
from regard.text.shards.cache import Journal, key_of, once
from regard.text.shards.held_out import lost
from regard.text.shards.passage_keys import Beginning, Tail, held_out, marked
from regard.text.shards.prepare_pairs import SAVED_EVERY, Learn, Progress, learn_into, skipped
from regard.text.shards.reservoir import Reservoir
from regard.text.shards.token_stream import Appended, Stream, StreamWriter
from regard.text.tokenizers.encoding import AT_A_TIME, Encoder
from regard.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

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

    Without `valid`, the last lines of `train` are held out, and other copies of their passages are left out.
    """

    def write(new: Path, journal: Journal) -> list[str]:
        if "learned" not in journal.done:
            journal.tell("learned", _learn(train, valid is None, config, new, seed, progress, learn))
        learned = journal.done["learned"]
        tail = Tail(**learned["tail"]) if learned["tail"] else Tail(learned["lines"])
        texts = [train] if valid is None else [train, valid]
        return [*learned["notes"], *_tokenise(texts, tail, learned["lines"], config, new, progress, journal)]

    notes = once(folder, key_of(train, valid, config, seed), write)
    tokenizer = load_tokenizer(folder, config)
    return PreparedText(tokenizer, Stream.open(folder / "train"), Stream.open(folder / "valid"), notes)


def _learn(
    train: Documents, hold_out: bool, config: TextConfig, folder: Path, seed: int, progress: Progress, learn: Learn
) -> dict[str, Any]:
    """Count the lines, choose those to hold out and store the tokenizer; what there is to know of it all."""
    drawn = Reservoir[str](config.learn_from, random.Random(seed))
    last: deque[Beginning] = deque(maxlen=LINES_HELD_OUT)
    for count, (line, beginning) in enumerate(marked(train.lines()), 1):
        drawn.offer(line.text)
        last.append(beginning)
        if count % AT_A_TIME == 0:
            progress("reading", count)
    notes = [str(train.skipped)] if train.skipped.total else []
    tail = None
    if hold_out:
        most = min(LINES_HELD_OUT, drawn.offered // 10)
        if not most:
            raise DataError(f"{train.name} has only {drawn.offered} lines, too few to hold some out. Give --valid.")
        last_lines = list(last)[-most:]
        tail = held_out(last_lines, drawn.offered, train.lines, partial(progress, "looking for copies"))
        notes.append(_note(tail, drawn.offered, most, train.name))
    learn_into(drawn.kept, config, folder, progress, learn, notes)
    return {"lines": drawn.offered, "tail": tail and asdict(tail), "notes": notes}


def _note(tail: Tail, lines: int, most: int, name: str) -> str:
    """How much is held out, if it is enough."""
    count = lines - tail.first
    if count == len(tail.without):
        raise DataError(
            f"The end of {name} cannot be held out for validation: too much of the text is like it, and would be lost to "
            "training. Give --valid."
        )
    note = f"held out the last {count:,} of {lines:,} lines for validation, as no --valid was given"
    if tail.without:
        note += f", but for {len(tail.without):,} that are all over the text"
    return (
        note if count == most else f"{note}; of those before, there are too many copies to hold out more: give --valid"
    )


@dataclass
class _Position:
    """How far tokenising has come, ready for JSON."""

    texts: int = 0
    """So many are done."""
    lines: int = 0
    """And so many of the one that follows."""
    copies: int = 0
    """Lines left out because their passage is held out, too."""
    leaving: int = 0
    """So many of the lines that follow belong to such a passage."""
    train: Appended = field(default_factory=Appended)
    valid: Appended = field(default_factory=Appended)

    @classmethod
    def read(cls, table: dict[str, Any]) -> "_Position":
        return cls(**{**table, "train": Appended(**table["train"]), "valid": Appended(**table["valid"])})


def _tokenise(
    texts: list[Documents],
    tail: Tail,
    lines: int,
    config: TextConfig,
    folder: Path,
    progress: Progress,
    journal: Journal,
) -> list[str]:
    at = _Position.read(journal.done["tokenised"]) if "tokenised" in journal.done else _Position()
    tokenizer = load_tokenizer(folder, config)
    train = StreamWriter(folder / "train", tokenizer.size, at.train)
    valid = StreamWriter(folder / "valid", tokenizer.size, at.valid)
    keys, without = tail.keys(texts[0].lines) if tail.first < lines else set[int](), set(tail.without)

    with Encoder(tokenizer, folder, config, lines) as encoder:
        for documents in texts[at.texts :]:
            rest = skipped(marked(documents.lines()), at.lines, progress)
            for chunk, encoded in encoder.chunks(rest, lambda row: (row[0].text,)):
                for (line, passage), ids in zip(chunk, encoded.lists(), strict=True):
                    for_train = at.texts == 0 and at.lines < tail.first
                    if passage.key in keys:
                        at.leaving = max(at.leaving, passage.size)
                    writer = train if for_train else valid
                    if (at.leaving and for_train) or (at.texts == 0 and at.lines in without):
                        writer.end()  # what comes before does not go on with what comes after
                        at.copies += for_train
                    else:
                        writer.add(ids, size=len(line.text.encode()), closes=line.closes)
                    at.leaving = max(0, at.leaving - 1)
                    at.lines += 1
                progress("tokenising", at.lines)
                if at.lines % SAVED_EVERY == 0:
                    at.train, at.valid = train.save(), valid.save()
                    journal.tell("tokenised", asdict(at))
            at.texts, at.lines = at.texts + 1, 0
    train.close()
    valid.close()
    return [lost(at.copies, "passage", "line")] * bool(at.copies)
