"""Everything that reads a file, as a function of the file's bytes. One list, for the tests and for the fuzzers.

Where one of several files or ways of reading is meant, the first byte chooses it. `made` prepares a folder once; `read`
may write into it, but leaves it as it was.
"""

import gzip
import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import regard
from fuzz import seeds
from regard.config import MODEL_CONFIGS, Config, as_table, merge, parse_set, read, read_from, read_recipe
from regard.decode.lexical_shortlist import open_shortlist
from regard.errors import RegardError
from regard.folder import checkpoints, layout
from regard.folder.weights import load_model
from regard.interop.huggingface import import_bert
from regard.interpret.training_history import history_of
from regard.text.batching.labelled import labelled_texts
from regard.text.checks import check
from regard.text.corpus import open_corpus, read_lines
from regard.text.plain_text import open_documents
from regard.text.shards.pair_shards import Shards
from regard.text.shards.token_stream import Stream
from regard.text.tokenizers.tokenizer import load_tokenizer
from regard.training.loop import TrainState


@dataclass(frozen=True)
class Target:
    """Something that reads what anybody may have written."""

    read: Callable[[bytes, Path], object]
    seeds: Callable[[], Iterable[bytes]]
    made: Callable[[Path], object] = Path.mkdir
    """Makes the folder that `read` is given."""


def _all(items: Iterable[Any]) -> int:
    deque(items, maxlen=0)
    return 0


def _choice(content: bytes, choices: Sequence[Any]) -> tuple[Any, bytes]:
    return choices[(content[0] if content else 0) % len(choices)], content[1:]


def _chosen(number: int, content: bytes) -> bytes:
    """A seed: the same file behind the byte that chooses what it is."""
    return bytes([number]) + content


# ------------------------------------------------------------------------------------------------------------- text

PARTING = b"\n\x1e\n"
"""Between two parallel files."""


def _parallel(content: bytes, at: Path) -> object:
    for name, side in zip(("a.en", "a.fr"), (*content.split(PARTING), b"")[:2], strict=False):
        (at / name).write_bytes(side)
    return _all(open_corpus([str(at / "a.en"), str(at / "a.fr")]).pairs())


def _table(ending: str, use: Callable[[Any], object]) -> Callable[[bytes, Path], object]:
    """A corpus in one file; the first line names its columns."""

    def read_table(content: bytes, at: Path) -> object:
        columns, _, table = content.partition(b"\n")
        (at / f"a{ending}").write_bytes(table)
        return use(open_corpus([str(at / f"a{ending}")], columns=columns.decode(errors="replace")))

    return read_table


def _documents(content: bytes, at: Path) -> object:
    (name, unit), text = _choice(
        content, [("a.txt", "file"), ("a.txt", "paragraph"), ("a.txt", "line"), ("a.jsonl", "")]
    )
    (at / name).write_bytes(text)
    return _all(open_documents([str(at / name)], unit=unit).lines())


def _sentences(content: bytes, at: Path) -> object:
    (at / "a.txt").write_bytes(content)
    return _all(read_lines(str(at / "a.txt")))


TSV = "".join(f"{source}\t{target}\n" for source, target in seeds.PAIRS).encode()
CSV = "".join('"{}","{}"\n'.format(*(side.replace('"', '""') for side in pair)) for pair in seeds.PAIRS).encode()
JSONL = "".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in seeds.PAIRS).encode()
NESTED = "".join(json.dumps({"translation": {"en": a, "fr": b}}) + "\n" for a, b in seeds.PAIRS).encode()
TABLES = {
    ".tsv": [b"\n" + TSV, b"2,1\n" + TSV, b"\nsource\ttarget\n" + TSV],
    ".csv": [b"\nsource,target\n" + CSV, b"en,fr\nen,fr,x\n" + CSV, b"2,1\na,b\n" + CSV],
    ".jsonl": [b"\n" + JSONL, b"\n" + NESTED, b"en,fr\n" + NESTED, b"target,source\n" + JSONL],
}
LABELS = b"\ntext\tlabel\na good day\tgood\na bad day\tbad\n"
PLAIN = ["\n".join(pair[side] for pair in seeds.PAIRS).encode() for side in (0, 1)]


# --------------------------------------------------------------------------------------------------------- settings


def _recipe(content: bytes, at: Path) -> object:
    (at / "a.toml").write_bytes(content)
    given = merge(read_recipe(at / "a.toml"))
    with suppress(RegardError):
        _again(read_from(Config(), given))
    return _again(read(given))


def _set(content: bytes, at: Path) -> object:
    return _again(read(parse_set(content.decode(errors="surrogateescape").split("\n"))))


def _config(content: bytes, at: Path) -> object:
    (at / layout.CONFIG).write_bytes(content)
    return _again(layout.load_config(at)[0])


def _again(config: Config) -> object:
    """What could be read is a valid configuration, which written and read is the same."""
    assert read(json.loads(json.dumps(as_table(config)))) == config
    return config


RECIPES = [path.read_bytes() for path in sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))]
SETS = [b"train.rate=0.003\nmodel.width=64\nmodel.heads=4", b"model.name=lm\ntext.lowercase=true\ntrain.seed=1_000"]


def _configs() -> list[bytes]:
    jobs = {name: seeds.JOBS.get(name, "pairs") for name in MODEL_CONFIGS}
    tables = [{**as_table(read({"model": {"name": name}})), "about": {"job": job}} for name, job in jobs.items()]
    return [json.dumps({"format": 1, **table}).encode() for table in tables]


# ---------------------------------------------------------------------------------------------------------- folders


def _tokenizer(content: bytes, at: Path) -> object:
    (config, known), stored = _choice(content, _tokenizers())
    (at / known.file_name).write_bytes(stored)
    tokenizer = load_tokenizer(at, config)
    (ids,) = tokenizer.encode(["The chat of two dogs, <mask>.\n"])
    return tokenizer.decode(ids), tokenizer.pieces(ids), tokenizer.decode(range(min(tokenizer.size, 100)))


_tokenizers = cache(seeds.tokenizers)


def _replaced(files: Sequence[str], use: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Use a folder, one of whose files is another."""

    def use_replaced(content: bytes, at: Path) -> object:
        name, new = _choice(content, files)
        whole = (at / name).read_bytes()
        try:
            (at / name).write_bytes(new)
            return use(at)
        finally:
            (at / name).write_bytes(whole)

    return use_replaced


def _files(names: Sequence[str], made: Callable[[Path], object]) -> Callable[[], Iterable[bytes]]:
    """The seeds of the same: each file as it was."""

    def whole() -> list[bytes]:
        import tempfile

        with tempfile.TemporaryDirectory() as scratch:
            made(Path(scratch) / "made")
            return [_chosen(number, (Path(scratch) / "made" / name).read_bytes()) for number, name in enumerate(names)]

    return whole


def _translator(at: Path) -> object:
    return regard.load(at, engine="torch", threads=1).translate(["a b c"], beam=2, max_length=8)


def _fast_translator(at: Path) -> object:
    shutil.rmtree(at / layout.CACHE, ignore_errors=True)
    return regard.load(at, engine="ctranslate2", threads=1).translate(["a b c"])


def _labeller(at: Path) -> object:
    shutil.rmtree(at / layout.CACHE, ignore_errors=True)
    return [regard.load(at, engine=engine, threads=1).classify(["a b c"]) for engine in ("torch", "ctranslate2")]


def _import(at: Path) -> object:
    to = at.with_name("imported")
    shutil.rmtree(to, ignore_errors=True)
    import_bert(at, to)
    return load_model(to)


def _tokens(at: Path) -> object:
    shards = Shards(at / "pairs")
    return [shards.ids(number) for number in range(min(len(shards), 9))], len(Stream.open(at / "text"))


CHECKPOINT = ["manifest.json", "state.json", "weights.safetensors", "training.safetensors"]
SAVED = [f"step-00000002/{name}" for name in CHECKPOINT]


def _checkpoint(content: bytes, at: Path) -> object:
    """A checkpoint with one file replaced; but for the manifest, with the checksum of what is there now."""
    name, new = _choice(content, CHECKPOINT)
    shutil.rmtree(at)
    seeds.checkpoints(at)
    saved = checkpoints.folder_of(at, 2)
    (saved / name).write_bytes(new)
    if name != checkpoints.MANIFEST:
        checkpoints._write_manifest(saved, {name: checkpoints._fingerprint(saved / name) for name in CHECKPOINT[1:]})
    step = checkpoints.newest(at, str)
    assert step == 2
    tensors = [checkpoints.load_tensors(saved / name) for name in (checkpoints.WEIGHTS, checkpoints.TRAINING)]
    return tensors, TrainState.restored(checkpoints.load_state(at, step), saved)


FOLDER = ["config.json", "tokenizer.json", "model.safetensors"]
PUBLISHED = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
CACHED = [f"pairs/{name}" for name in ("index.json", "00000.ids", "00000.lengths", "00000.table")]
CACHED += ["text/index.json", "text/ids"]


def _transformer(at: Path) -> object:
    return seeds.model_folder(at, "transformer")


def _classifier(at: Path) -> object:
    return seeds.model_folder(at, "classifier")


def _shortlist(at: Path) -> object:
    found = open_shortlist(at, seeds.words())
    return found.candidates([5, 6], 3), found.vocabulary_map([str(number) for number in range(seeds.words().size)], 3)


def _older(at: Path) -> object:
    """A published folder without tokenizer.json."""
    seeds.published(at)
    (at / "tokenizer.json").unlink()
    return at


def _folder(names: list[str], use: Callable[[Path], object], made: Callable[[Path], object]) -> Target:
    return Target(_replaced(names, use), _files(names, made), made)


TARGETS: dict[str, Target] = {
    "parallel": Target(_parallel, lambda: [PARTING.join(PLAIN)]),
    **{
        ending[1:]: Target(_table(ending, lambda corpus: _all(corpus.pairs())), lambda ending=ending: TABLES[ending])
        for ending in TABLES
    },
    "gzip": Target(
        _table(".tsv.gz", lambda corpus: _all(corpus.pairs())), lambda: [b"\n" + gzip.compress(TSV, mtime=0)]
    ),
    "labelled": Target(_table(".tsv", lambda corpus: _all(labelled_texts(corpus))), lambda: [LABELS]),
    "check": Target(_table(".tsv", lambda corpus: check(corpus).lines()), lambda: TABLES[".tsv"]),
    "documents": Target(
        _documents,
        lambda: [
            *(_chosen(unit, text.encode()) for unit in range(3) for text in seeds.TEXTS),
            _chosen(3, b'{"text": "a\\nb"}\n{"text": "c"}\n'),
        ],
    ),
    "sentences": Target(_sentences, lambda: PLAIN),
    "recipe": Target(_recipe, lambda: RECIPES),
    "set": Target(_set, lambda: SETS),
    "config": Target(_config, _configs),
    "tokenizer": Target(
        _tokenizer, lambda: [_chosen(number, known.as_bytes()) for number, (_, known) in enumerate(_tokenizers())]
    ),
    "translator": _folder(FOLDER, _translator, _transformer),
    "translator-ctranslate2": _folder(FOLDER, _fast_translator, _transformer),
    "labeller": _folder(FOLDER, _labeller, _classifier),
    "history": _folder(["log.jsonl", "probe.jsonl"], lambda at: history_of(at).html(), _transformer),
    "shortlist": _folder(["shortlist.safetensors"], _shortlist, _transformer),
    "tokens": _folder(CACHED, _tokens, seeds.tokenised),
    "checkpoint": Target(
        _checkpoint, _files([f"step-00000002/{name}" for name in CHECKPOINT], seeds.checkpoints), seeds.checkpoints
    ),
    "import": _folder(PUBLISHED, _import, seeds.published),
    "import-vocabulary": _folder(["vocab.txt", "tokenizer_config.json"], _import, _older),
}
