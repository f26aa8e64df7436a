"""Text that models write for others to learn from: a teacher's translations, or sources for text that has none.

What is written grows line by line in an unfinished file, and takes its name when it is complete. The same call goes on
where an earlier one stopped, if models, settings and text are the same.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from regard.config import KEPT, Config
from regard.decode.translation import TextTranslator, Translation
from regard.errors import ConfigError, DataError
from regard.evaluation import metrics
from regard.folder import layout
from regard.folder.weights import check_folder
from regard.inference.load import Opening, load, translating
from regard.system import storage
from regard.text.corpus import BUILTIN, Corpus, open_corpus, open_file, read_lines
from regard.text.formats import tidy
from regard.text.pair import Pair
from regard.text.shards.held_out import HeldOut, both_sides, hold_out, lost
from regard.text.shards.prepare_pairs import sides
from regard.text.tokenizers.tokenizer import load_tokenizer
from regard.training.distributed import World
from regard.training.loop import Display
from regard.training.losses.distillation import Teacher, taught
from regard.training.run import Outcome, train

DISTILLED, BACK, MIXED, VALID = "distilled.tsv", "back.tsv", "mixed.tsv", "valid.tsv"
_AT_A_TIME = 1000  # texts translated together, and counted when they are done

Progress = Callable[[int, int], None]
"""Told how many texts are done, of how many."""
Stop = Callable[[], bool]
Made = Callable[[Sequence[Translation]], Pair]
"""What is to be learned, of the translations of a text."""
TruePairs = Literal["none", "too", "only"]
"""Whether the true pairs are learned: not at all, beside the teachers' translations of them, or in their place."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """Who translates, and how."""

    folders: Sequence[Path]
    """Several are averaged, word by word."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those of DecodeConfig that differ from the first model's own."""
    engine: str = "auto"
    device: str = "auto"
    threads: int = 0
    processes: int = 1
    """That translate, and share the threads."""

    @contextmanager
    def open(self) -> Iterator[TextTranslator]:
        """Ready to translate; whoever trains afterwards has as many threads as before."""
        first, *others = self.folders
        opening = Opening(first, self.engine, self.device, tuple(self.settings.items()), tuple(others))
        threads = torch.get_num_threads()
        try:
            with translating(opening, self.threads, self.processes) as translator:
                yield translator
        finally:
            torch.set_num_threads(threads)

    def teacher(self) -> Teacher:
        """The same models, to say how likely words are."""
        return Teacher(load(self.folders, device=self.device, threads=self.threads).model)

    def fingerprint(self) -> str:
        """A hash that changes when the weights or the settings do."""
        whole = hashlib.blake2b(json.dumps(dict(self.settings), sort_keys=True).encode(), digest_size=16)
        for path in self.folders:
            decode = dataclasses.asdict(layout.load_config(path)[0].decode)
            whole.update(json.dumps(decode, sort_keys=True).encode())
            check_folder(path)  # before all of a file is read that may be anything
            with open(layout.weights_file(path), "rb") as file:
                whole.update(hashlib.file_digest(file, "blake2b").digest())
        return whole.hexdigest()


def distill(
    teachers: Models,
    data: Sequence[str],
    to: Path,
    config: Config,
    *,
    valid: Sequence[str] = (),
    start: Path | None = None,
    override: bool = False,
    also: Sequence[str] = (),
    true_pairs: TruePairs = "none",
    back: Models | None = None,
    display: Display | None = None,
    progress: Progress = lambda done, total: None,
    stop: Stop = lambda: False,
    world: World | None = None,
) -> Outcome:
    """Train a model on what teachers make of the sources of `data` (Kim and Rush 2016), into the folder `to`.

    It is validated on true pairs: those of `valid`, or some of `data`, which the teachers are then not asked for. If they
    write several translations (their `n_best`), the one most like the true target is learned. `also` names files of sources
    that have no translation, one on each line, for the teachers to translate too (He et al. 2022). `back` translates the true
    targets back, and what it makes of them is learned as further sources of theirs (Nguyen et al. 2020). `start` and
    `override` are as in `regard.training.run.train`. With `train.soft` the teachers' probabilities are learned too, word by word,
    for which the student takes their tokenizer. Of the processes in `world`, which train together, the leader has the
    text written.
    """
    _check(config, true_pairs, data, valid, also)
    tokenizer = None
    if config.train.soft:
        tokenizer = teachers.folders[0]
        config = _with_words_of(tokenizer, config, start)
    world = world or World()

    def write() -> str | None:
        with layout.held(to):
            note = (display if display and world.leads else Display()).note
            learned = _learnable(teachers, data, valid, also, to, config, true_pairs, back, progress, stop, note)
            return str(learned) if learned else None

    learned = world.told(write)
    if learned is None:
        return Outcome(to, 0, None, None)
    # All are tables of two columns now, whatever the columns of DATA are.
    config = dataclasses.replace(config, text=dataclasses.replace(config.text, columns=""))
    return train(
        [learned],
        to,
        config,
        valid=[str(to / layout.CACHE / VALID)],
        start=start,
        override=override,
        display=display,
        stop=stop,
        world=world,
        tokenizer=tokenizer,
        objective=taught(teachers.teacher(), config.train.soft) if config.train.soft else None,
    )


def back_translate(
    models: Models,
    texts: Sequence[str],
    to: Path,
    *,
    progress: Progress = lambda done, total: None,
    stop: Stop = lambda: False,
) -> bool:
    """Write pairs whose targets are the lines of `texts` and whose sources a model wrote (Sennrich et al. 2016).

    The model translates in the other direction than the one that is to learn from them. False if it was stopped before
    the end.
    """
    if "-" in texts:
        raise DataError(
            "Back-translation goes on where it stopped, so it cannot read standard input. Save it to a file."
        )
    if to.exists():
        raise ConfigError(f"--to {to} is there already, and stays as it is. Remove it, or name another file.")
    key = {"models": models.fingerprint(), "text": _fingerprint(texts)}

    done = _write(models, [(line, partial(_source_of, line)) for line in _lines(texts)], to, key, progress, stop)
    if done:
        _key_file(to).unlink(missing_ok=True)
    return done


def _check(
    config: Config, true_pairs: TruePairs, data: Sequence[str], valid: Sequence[str], also: Sequence[str]
) -> None:
    """Refuse what nothing can be learned from, before a folder is made."""
    if true_pairs == "only" and not config.train.soft and not also:
        raise ConfigError(
            "With the true pairs alone (--true-only) there is nothing to learn from the teachers. "
            "Set train.soft, e.g. to 0.5, or give them text with --also."
        )
    if "-" in [*data, *valid, *also]:
        raise DataError("A teacher's text is read several times, so it cannot be standard input. Save it to a file.")


def _with_words_of(teacher: Path, config: Config, start: Path | None) -> Config:
    """The settings with the teacher's tokenizer: only then are its probabilities about the student's words."""
    theirs, _ = layout.load_config(teacher)
    if start:
        own, _ = layout.load_config(start)
        words, others = load_tokenizer(start, own.text), load_tokenizer(teacher, theirs.text)
        if words.as_bytes() != others.as_bytes():
            raise ConfigError(
                f"train.soft {config.train.soft:g} compares word by word, but the words of {start} are not those of {teacher}. "
                "Leave train.soft at 0, or --from away."
            )
    kept = {key: getattr(theirs.text, key) for key in KEPT}
    return dataclasses.replace(config, text=dataclasses.replace(config.text, **kept))


def _learnable(
    teachers: Models,
    data: Sequence[str],
    valid: Sequence[str],
    also: Sequence[str],
    to: Path,
    config: Config,
    true_pairs: TruePairs,
    back: Models | None,
    progress: Progress,
    stop: Stop,
    note: Callable[[str], None],
) -> Path | None:
    """What the student is to learn from, beside what it is validated on; None if it was stopped before the end."""
    cache = to / layout.CACHE
    with storage.explained(cache):
        cache.mkdir(exist_ok=True)
    corpus, checks, held_out = _parted(data, valid, config)
    key: dict[str, Any] = {
        "models": teachers.fingerprint(),
        "text": corpus.fingerprint(),
        "held_out": sorted(held_out.numbers),
    }
    true = [
        pair for number, pair in enumerate(sides(corpus)) if not (number in held_out.numbers or held_out.has_like(pair))
    ]
    if held_out.numbers:
        key["learned"] = len(true)
    if also:
        key["also"] = _fingerprint(also)
    if true_pairs == "only":
        key["true_pairs"] = true_pairs
    if back:
        key["back"] = back.fingerprint()
    if _kept_key(cache / DISTILLED) not in (None, key):
        raise ConfigError(
            f"{to} learns from other text: of other teachers, search settings, DATA, --also, --back or --true-only. "
            "Name a new folder with --to."
        )
    storage.write_file(cache / VALID, _table(checks))
    asked = [] if true_pairs == "only" else true
    sources: list[tuple[str, Made]] = [(pair.source, partial(_nearest, pair)) for pair in asked]
    sources += [(line, partial(_likeliest, line)) for line in _lines(also)]
    if not _write(teachers, sources, cache / DISTILLED, key, progress, stop):
        return None
    if back:
        targets: list[tuple[str, Made]] = [(pair.target, partial(_source_of, pair.target)) for pair in true]
        if not _write(back, targets, cache / BACK, key, progress, stop):
            return None
    written = _read(cache / DISTILLED)
    learned = [*written, *([] if true_pairs == "none" else true), *(_read(cache / BACK) if back else [])]
    # What teachers write, or what has no translation, may be what is validated on, too.
    apart = [pair for pair in learned if not held_out.has_like(pair)]
    left_out = sum(1 for _ in sides(corpus)) - len(true) - len(held_out.numbers) + len(learned) - len(apart)
    if left_out:
        note(lost(left_out))
    if apart == written:
        return cache / DISTILLED
    storage.write_file(cache / MIXED, _table(apart))
    return cache / MIXED


def _nearest(pair: Pair, found: Sequence[Translation]) -> Pair:
    """The source with that of its translations which is most like the true target."""
    texts = [one.text for one in found]
    return Pair(pair.source, texts[0] if len(texts) == 1 else metrics.nearest(texts, pair.target))


def _likeliest(source: str, found: Sequence[Translation]) -> Pair:
    """The source with the first of its translations: nobody knows a true one."""
    return Pair(source, found[0].text)


def _source_of(target: str, found: Sequence[Translation]) -> Pair:
    """The target with the first of its translations back."""
    return Pair(found[0].text, target)


def _parted(data: Sequence[str], valid: Sequence[str], config: Config) -> tuple[Corpus, list[Pair], HeldOut]:
    """The corpus; the true pairs to validate on; and these as held out of the corpus, if they are."""
    columns = config.text.columns
    corpus = open_corpus(data, columns=columns)
    if not valid and len(data) == 1 and f"{data[0]}/valid" in BUILTIN:
        valid = [f"{data[0]}/valid"]
    if valid:
        return corpus, list(sides(open_corpus(valid, columns=columns))), HeldOut(both_sides)
    held_out = hold_out(corpus.name, partial(sides, corpus), config.text, config.train.seed)
    return corpus, [pair for number, pair in enumerate(sides(corpus)) if number in held_out.numbers], held_out


def _write(
    models: Models,
    texts: Sequence[tuple[str, Made]],
    path: Path,
    key: dict[str, Any],
    progress: Progress,
    stop: Stop,
) -> bool:
    """A table of what the models make of each text, a line for each; False if it was stopped before the end."""
    if path.exists() and _kept_key(path) == key:
        return True
    unfinished = path.with_name(path.name + ".unfinished")
    if _kept_key(path) != key:
        unfinished.unlink(missing_ok=True)
        storage.write_file(_key_file(path), json.dumps(key).encode())
    with models.open() as translator, storage.explained(path):
        with open(unfinished, "a", encoding="utf-8", newline="\n") as out:
            for first in range(_whole_lines(unfinished), len(texts), _AT_A_TIME):
                progress(first, len(texts))
                if stop():
                    return False
                some = texts[first : first + _AT_A_TIME]
                written = translator.stream([text for text, _ in some], **models.settings)
                for (_, made), found in zip(some, written, strict=True):
                    out.write(_line(made(found)))
                out.flush()
        progress(len(texts), len(texts))
        storage.sync_file(unfinished)
        unfinished.replace(path)
        storage.sync_folder(path.parent)
    return True


def _lines(texts: Iterable[str]) -> list[str]:
    """All that files hold, without empty lines."""
    return [text for name in texts for line in read_lines(name) if (text := tidy(line))]


def _fingerprint(texts: Iterable[str]) -> str:
    """A hash that changes when any of these files does."""
    whole = hashlib.blake2b(digest_size=16)
    for name in texts:
        with open(open_file(name).path, "rb") as file:
            whole.update(hashlib.file_digest(file, "blake2b").digest())
    return whole.hexdigest()


def _table(pairs: Iterable[Pair]) -> bytes:
    return "".join(map(_line, pairs)).encode()


def _line(pair: Pair) -> str:
    return f"{tidy(pair.source)}\t{tidy(pair.target)}\n"


def _read(path: Path) -> list[Pair]:
    """The pairs of a table that was written here."""
    with open(path, encoding="utf-8", newline="\n") as file:
        return [Pair(source, target) for source, _, target in (line[:-1].partition("\t") for line in file)]


def _whole_lines(path: Path) -> int:
    """How many lines are there; what was written of another one is cut off."""
    count = whole = 0
    with open(path, "r+b") as file:
        for line in file:
            if line.endswith(b"\n"):
                count, whole = count + 1, whole + len(line)
        file.truncate(whole)
    return count


def _key_file(path: Path) -> Path:
    return path.with_name(path.name + ".key")


def _kept_key(path: Path) -> Any:
    """What the file, finished or not, was made from; None if nobody knows."""
    try:
        return json.loads(_key_file(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
