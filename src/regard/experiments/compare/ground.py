"""What all models of a comparison stand on: the folder, the text, the tokenizer, the test set."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from regard.config import as_table
from regard.errors import ConfigError, DataError, FolderError
from regard.experiments.compare.length_buckets import Bucket, halves, quantiles
from regard.experiments.compare.plan import SAME, Contender, Plan, Request, make_plan
from regard.experiments.compare.worker import Order, Stop, StoppedError
from regard.folder import layout
from regard.system import storage
from regard.text.corpus import BUILTIN, Corpus, open_corpus
from regard.text.pair import Pair
from regard.text.shards.prepare_pairs import Prepared, prepare
from regard.text.tokenizers.tokenizer import learn_tokenizer

MARK = "comparison.json"
"""In the comparison's folder: what everything in it has in common."""

Note = Callable[[str], None]


@dataclass(frozen=True)
class Test:
    """What the models are tried on."""

    name: str
    pairs: list[Pair]
    held_out: bool
    """Whether these are the validation pairs, as there were no others."""
    median: int
    halves: list[Bucket]
    quantiles: list[Bucket]


@dataclass(frozen=True)
class Ground:
    """Everything but the models' own training."""

    request: Request
    plan: Plan
    prepared: Prepared
    contenders: list[Contender]
    names: dict[str, str]
    """Of the texts: data and valid."""
    valid: list[str]
    fingerprints: dict[str, str]

    @property
    def tokenizer_hash(self) -> str:
        """Of the tokenizer that all models share."""
        return hashlib.blake2b(self.prepared.tokenizer.as_bytes(), digest_size=8).hexdigest()

    def folder_of(self, contender: Contender) -> Path:
        """Where a model is trained."""
        return self.request.to / contender.name

    def order(self, contender: Contender, test: Test) -> Order:
        """What a worker is to do for this model."""
        config = as_table(contender.config)
        tokenize = self.request.tokenize
        depends = {"format": 1, "config": config, "text": self.fingerprints, "test": test.pairs, "tokenize": tokenize}
        return Order(
            name=contender.name,
            folder=str(self.folder_of(contender)),
            data=list(self.request.data),
            valid=self.valid,
            config=config,
            pairs=test.pairs,
            halves=test.halves,
            quantiles=test.quantiles,
            tokenize=tokenize,
            key=hashlib.blake2b(json.dumps(depends, sort_keys=True).encode(), digest_size=16).hexdigest(),
        )

    def share_tokens(self, contender: Contender) -> None:
        """Give a model the text that is ready, so that it need not be made ready once for each of them."""
        to = self.folder_of(contender) / layout.CACHE / layout.TOKENS
        if not to.exists():
            with storage.explained(to):
                unfinished = to.with_name("shared.unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                shutil.copytree(self.request.to / layout.CACHE / layout.TOKENS, unfinished, copy_function=_link)
                unfinished.rename(to)

    def open_test(self) -> Test:
        """The test set: the one that was named, or a built-in corpus's own, or else the validation pairs."""
        names, shards = list(self.request.test), self.prepared.valid
        data = self.request.data
        if not names and len(data) == 1 and f"{data[0]}/test" in BUILTIN:
            names = [f"{data[0]}/test"]
        if names:
            corpus = open_corpus(names, columns=self.plan.shared.text.columns)
            name, pairs = corpus.name, [pair for _, pair in corpus.pairs()]
        else:
            name, pairs = f"the validation pairs ({self.names['valid']})", [shards.text(n) for n in range(len(shards))]
        lengths = [len(ids) for ids in self.prepared.tokenizer.encode([pair.source for pair in pairs])]
        median, both = halves(lengths)
        return Test(name, pairs, not names, median, both, quantiles(lengths))


@contextmanager
def opened(request: Request, note: Note, stop: Stop) -> Iterator[Ground]:
    """Check everything that can be wrong, hold the folder, and make the text ready."""
    plan = make_plan(request)
    train, valid, valid_names = _open(request, plan)
    if request.test:
        open_corpus(request.test, columns=plan.shared.text.columns)  # told now, not after an hour of other work
    fingerprints = {"train": train.fingerprint(), "valid": valid.fingerprint() if valid else ""}
    with layout.held(request.to, MARK):
        _agree(request.to, plan, fingerprints)
        prepared = _prepare(request.to, train, valid, plan, note, stop)
        contenders = plan.contenders(prepared.tokenizer.size)
        names = {"data": train.name, "valid": valid.name if valid else "held out"}
        yield Ground(request, plan, prepared, contenders, names, valid_names, fingerprints)


def _open(request: Request, plan: Plan) -> tuple[Corpus, Corpus | None, list[str]]:
    if "-" in [*request.data, *request.valid, *request.test]:
        raise DataError(
            "A comparison reads its text once for each model, so it cannot be standard input. Save it to a file."
        )
    valid, columns = list(request.valid), plan.shared.text.columns
    if not valid and len(request.data) == 1 and f"{request.data[0]}/valid" in BUILTIN:
        valid = [f"{request.data[0]}/valid"]
    return open_corpus(request.data, columns=columns), open_corpus(valid, columns=columns) if valid else None, valid


def _agree(to: Path, plan: Plan, fingerprints: dict[str, str]) -> None:
    """Refuse to compare on other text, or with other common settings, than what is there already."""
    shared = as_table(plan.shared)
    fixed = SAME - {"train.steps", "train.max_minutes"}
    common = {f"text.{key}": value for key, value in shared["text"].items()}
    common |= {key: shared["train"][key.removeprefix("train.")] for key in sorted(fixed)}
    now: dict[str, Any] = {"format": 1, "text": fingerprints, "settings": common}
    if not (to / MARK).exists():
        storage.write_file(to / MARK, json.dumps(now, indent=1).encode())
        return
    try:
        before = json.loads((to / MARK).read_text(encoding="utf-8"))
        old = dict(before["settings"])
    except (OSError, ValueError, KeyError, TypeError):
        raise FolderError(f"{to / MARK} cannot be read. Name a new folder with --to.") from None
    changed = [f"{key} {old.get(key)} -> {value}" for key, value in common.items() if old.get(key) != value]
    if before.get("text") != fingerprints:
        changed.insert(0, "other text")
    if changed:
        raise ConfigError(
            f"{to} holds a comparison on other terms: {'; '.join(changed)}. Name a new folder with --to, or give the old ones."
        )


def _prepare(to: Path, train: Corpus, valid: Corpus | None, plan: Plan, note: Note, stop: Stop) -> Prepared:
    def progress(what: str, done: int) -> None:
        if stop():
            raise StoppedError
        if done % 100_000 == 0:
            note(f"{what}{f': {done:,} pairs' if done else ''}")

    config, cache = plan.shared, to / layout.CACHE
    with storage.explained(cache):
        cache.mkdir(exist_ok=True)
        learn = partial(learn_tokenizer, config=config.text)
        prepared = prepare(train, valid, config.text, cache / layout.TOKENS, config.train.seed, progress, learn)
    for line in prepared.notes:
        note(line)
    return prepared


def _link(source: str, target: str) -> None:
    """The same file under a second name, which takes no room; a copy where that cannot be."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
