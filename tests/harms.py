"""What somebody may have done to a model folder: each kind of harm by itself."""

import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from regard.folder import checkpoints

TRAINED = "trained"
FILES = ("config.json", "tokenizer.json", "model.safetensors", "log.jsonl", "probe.jsonl", "shortlist.safetensors")
SAVED = Path("checkpoints", "step-00000004")
SEALED = (checkpoints.WEIGHTS, checkpoints.TRAINING, checkpoints.STATE)


class Hostile(NamedTuple):
    """A base and what is done to it; the second folder lies outside, and it may lead there."""

    name: str
    base: str
    change: Callable[[Path, Path], object]


def in_json(path: Path, change: Callable[[Any], object]) -> Path:
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table))
    return path.parent


def set_about(folder: Path, given: dict[str, Any]) -> Path:
    return in_json(folder / "config.json", lambda table: table["about"].update(given))


def set_in(folder: Path, section: str, **given: Any) -> Path:
    return in_json(folder / "config.json", lambda table: table[section].update(given))


def instead(path: Path, put: Callable[[Path], object]) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    put(path)


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def raw_header(path: Path, header: Any, length: int | None = None) -> None:
    """A file that begins as safetensors do, whatever the header says."""
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(content) if length is None else length) + content + bytes(64))


def tensors_of(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    weights = safetensors.numpy.load_file(path)
    change(weights)
    safetensors.numpy.save_file(weights, path)


def _filled(value: float) -> Callable[[dict[str, Any]], None]:
    def fill(weights: dict[str, Any]) -> None:
        for weight in weights.values():
            weight[...] = value

    return fill


def cast(kind: Any) -> Callable[[dict[str, Any]], None]:
    def change(weights: dict[str, Any]) -> None:
        weights.update({name: weight.astype(kind) for name, weight in weights.items()})

    return change


def _sealed(folder: Path, change: Callable[[Path], object]) -> None:
    """Change a checkpoint and write its checksums anew; all other checkpoints go."""
    for other in folder.glob("checkpoints/step-*"):
        if other != folder / SAVED:
            shutil.rmtree(other)
    change(folder / SAVED)
    there = [folder / SAVED / name for name in SEALED if (folder / SAVED / name).exists()]
    checkpoints._write_manifest(folder / SAVED, {path.name: checkpoints._fingerprint(path) for path in there})


def _state(folder: Path, key: str, value: Any) -> None:
    _sealed(folder, lambda saved: in_json(saved / checkpoints.STATE, lambda table: table.update({key: value})))


def canary(path: Path) -> None:
    """A pickle that makes a file outside, if anything loads it."""
    command = f"touch '{path.absolute().parents[1 if path.parent.name == 'hostile' else 2] / 'outside' / 'ran'}'"
    path.write_bytes(b"\x80\x02cposix\nsystem\nX" + struct.pack("<I", len(command)) + command.encode() + b"\x85R.")


def canary_archive(path: Path) -> None:
    """The same as torch.save writes it."""
    canary(path)
    content = path.read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")


DEEP = "[" * 100_000 + "]" * 100_000
HUGE = (10**5, 10**9, 10**12, 10**18, 2**63, 10**400, -1, 0, 1.5, 1e300, "x", None, True, [1])
SETTINGS = [
    *((base, "model", name) for base in ("transformer", "lm", "bert") for name in ("depth", "width", "inner", "heads")),
    *(("transformer", "model", name) for name in ("decoder_depth", "span", "longest", "offset")),
    *(("universal", "model", name) for name in ("depth", "ponder", "threshold", "width")),
    *(("memory", "model", name) for name in ("block", "kernel", "depth")),
    *(("conv", "model", name) for name in ("kernel", "depth", "longest", "width")),
    *(("rnn", "model", name) for name in ("width", "depth")),
    *(("bahdanau", "model", name) for name in ("width", "depth")),
    *(("bert", "model", name) for name in ("longest", "epsilon")),
    *(("transformer", "decode", name) for name in ("beam", "n_best", "mbr", "length_penalty", "coverage_penalty")),
    *(("transformer", "decode", name) for name in ("max_length", "min_length", "no_repeat", "batch_tokens", "top_k")),
    *(("text", "decode", name) for name in ("beam", "max_length", "min_length", "seed")),
    *(("text", "text", name) for name in ("longest", "vocabulary")),
    *((TRAINED, "train", name) for name in ("threads", "keep", "seed", "steps")),
]


def _alone() -> Iterator[Hostile]:
    """Every kind of harm, by itself."""
    for number, (base, section, name) in enumerate(SETTINGS):
        for value in HUGE[number % 3 : 3] if number % 2 else (HUGE[3 + number % (len(HUGE) - 3)], HUGE[1]):
            yield Hostile(
                f"{section}.{name}={value!r:.20}", base, lambda f, _, s=section, n=name, v=value: set_in(f, s, **{n: v})
            )
    for base in ("transformer", "bert"):
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            yield Hostile(f"{name}: FIFO", base, lambda f, _, n=name: instead(f / n, os.mkfifo))
            yield Hostile(
                f"{name}: endless", base, lambda f, _, n=name: instead(f / n, lambda p: p.symlink_to("/dev/zero"))
            )
            yield Hostile(f"{name}: a terabyte", base, lambda f, _, n=name: instead(f / n, sparse))
            yield Hostile(f"{name}: a folder", base, lambda f, _, n=name: instead(f / n, Path.mkdir))
            yield Hostile(f"{name}: itself", base, lambda f, _, n=name: instead(f / n, lambda p: p.symlink_to(p.name)))
    for name in ("log.jsonl", "probe.jsonl", "shortlist.safetensors", ".lock", "README.md"):
        yield Hostile(f"{name}: FIFO", "transformer", lambda f, _, n=name: instead(f / n, os.mkfifo))
        yield Hostile(
            f"{name}: endless", "transformer", lambda f, _, n=name: instead(f / n, lambda p: p.symlink_to("/dev/zero"))
        )
    yield from _tables()
    yield from _weights()
    yield from _trained()


def _tables() -> Iterator[Hostile]:
    for name in ("config.json", "tokenizer.json", "log.jsonl", "probe.jsonl"):
        for number, content in enumerate(
            (DEEP, "{}", "[]", "null\n", '"\\ud800"\n', "\udcff", '{"a":' * 9000, "[1]\n", "")
        ):

            def put(folder: Path, _: Path, name: str = name, content: str = content) -> None:
                (folder / name).write_text(content, errors="surrogateescape")

            yield Hostile(f"{name}: {number}", "classifier" if number % 2 else "transformer", put)
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    for base in ("transformer", "bert", "classifier", "text"):
        for key in ("job", "labels", "heads", "parameters", "data", "finished", "text"):
            for value in ([], {"a": deep}, 7, "\x1b[2J", "\ud800", None)[len(key) % 3 :: 2]:
                yield Hostile(f"about.{key}={value!r:.20}", base, lambda f, _, k=key, v=value: set_about(f, {k: v}))
    for about in (None, [], "a", 7, {"job": "masking"}, {"job": "labelling"}, {"job": "pairs"}, {"job": "text"}):
        for base in ("transformer", "bert", "classifier"):
            yield Hostile(
                f"about={about!r:.30}",
                base,
                lambda f, _, a=about: in_json(f / "config.json", lambda t: t.update(about=a)),
            )
    for key in ("kind", "symbols"):
        for value in (None, 7, "words", [], [[1]], ["\ud800", "\x1b[2J"], ["a"] * 12, {"a": 1}, deep):
            yield Hostile(
                f"tokenizer.{key}={value!r:.20}",
                "bert" if key == "kind" else "transformer",
                lambda f, _, k=key, v=value: in_json(f / "tokenizer.json", lambda t: t.update({k: v})),
            )
    for kind in ("bpe", "unigram", "wordpiece", "characters"):
        yield Hostile(f"text.tokenizer={kind}", "bert", lambda f, _, k=kind: set_in(f, "text", tokenizer=k))


def _weights() -> Iterator[Hostile]:
    far = {"a": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 64]}}
    wide = {"a": {"dtype": "F32", "shape": [0, 1 << 62], "data_offsets": [0, 0]}}
    many = {f"layers.{n}.x": {"dtype": "F32", "shape": [], "data_offsets": [0, 0]} for n in range(9000)}
    for number, header in enumerate(
        ({}, far, wide, many, DEEP.encode(), b"\0" * 99, [], {"__metadata__": {"a": "b" * 10**6}})
    ):
        yield Hostile(
            f"weights: header {number}", "transformer", lambda f, _, h=header: raw_header(f / "model.safetensors", h)
        )
    yield Hostile("weights: a header without end", "bert", lambda f, _: raw_header(f / "model.safetensors", {}, 2**63))
    for base in ("transformer", "bert", "text"):
        for value in (float("nan"), float("inf"), 1e38, -1e38, 0.0):
            yield Hostile(
                f"weights: {value}", base, lambda f, _, v=value: tensors_of(f / "model.safetensors", _filled(v))
            )
        for kind in (np.float16, np.float64, np.int64, np.bool_, np.uint8):
            yield Hostile(
                f"weights: {kind.__name__}", base, lambda f, _, k=kind: tensors_of(f / "model.safetensors", cast(k))
            )
        escape = {"\x1b[2J\x1b]0;owned\x07": np.zeros(1, np.float32), "\u202eb": np.zeros(1, np.float32)}
        yield Hostile(
            "weights: escape",
            base,
            lambda f, _, e=escape: tensors_of(f / "model.safetensors", partial(dict.update, **e)),
        )
        yield Hostile("weights: none", base, lambda f, _: tensors_of(f / "model.safetensors", dict.clear))
    yield Hostile("width 8,192", "transformer", lambda f, _: set_in(f, "model", width=8192, inner=32768))
    yield Hostile("longest 10^6", "lm", lambda f, _: set_in(f, "model", longest=10**6, positions="learned"))
    for name, change in (
        ("no metadata", lambda f: safetensors.numpy.save_file({"likeliest": np.zeros((19, 9), np.int32)}, f)),
        ("float", lambda f: _shortlist(f, np.zeros((19, 100), np.float32), np.zeros(3, np.float32))),
        ("far ids", lambda f: _shortlist(f, np.full((19, 100), 10**6, np.int32), np.array([-5, 10**6], np.int32))),
        ("small", lambda f: _shortlist(f, np.zeros((2, 2), np.int32), np.zeros((3, 3), np.int32))),
        ("flat", lambda f: _shortlist(f, np.zeros(19, np.int32), np.array(3, np.int32))),
        ("text", lambda f: f.write_bytes(b"a" * 99)),
    ):
        yield Hostile(f"shortlist: {name}", "transformer", lambda f, _, c=change: c(f / "shortlist.safetensors"))


def _shortlist(path: Path, likeliest: Any, frequent: Any) -> None:
    with safetensors.safe_open(path, "np") as file:
        about = file.metadata()
    safetensors.numpy.save_file({"likeliest": likeliest, "frequent": frequent}, path, about)


def _trained() -> Iterator[Hostile]:
    for key, value in (
        *(("step", v) for v in (-1, "4", 10**30, None, 1.5, [1])),
        *(("window", v) for v in (None, {"loss": "a"}, {"a": {}}, [])),
        *((key, v) for key in ("epoch", "batch", "best", "log_bytes", "seconds") for v in (-5, "x", 10**25)),
        ("unknown", 1),
    ):
        yield Hostile(f"state.{key}={value!r:.20}", TRAINED, lambda f, _, k=key, v=value: _state(f, k, v))
    for content in (DEEP, "[]", "7", "", '{"step": '):
        yield Hostile(
            f"state: {content:.9}",
            TRAINED,
            lambda f, _, c=content: _sealed(f, lambda s: (s / "state.json").write_text(c)),
        )
    for name in (checkpoints.WEIGHTS, checkpoints.TRAINING):
        for value in (1, 2):

            def lose(weights: dict[str, Any], value: int = value) -> None:
                key = max(weights)
                weights[key] = np.zeros((3, 1), np.float32) if value == 1 else weights[key]
                if value == 2:
                    del weights[key]

            yield Hostile(
                f"{name}: {value}", TRAINED, lambda f, _, n=name, c=lose: _sealed(f, lambda s: tensors_of(s / n, c))
            )
    for content in (
        DEEP,
        "[]",
        "{}",
        '{"files": {"../../config.json": {}}}',
        '{"files": {"\\u001b[2J": 1}}',
        '{"files": 7}',
    ):
        yield Hostile(
            f"manifest: {content:.30}", TRAINED, lambda f, _, c=content: (f / SAVED / "manifest.json").write_text(c)
        )
    for name in ("weights.safetensors", "manifest.json", "state.json"):
        yield Hostile(f"{name}: FIFO", TRAINED, lambda f, _, n=name: instead(f / SAVED / n, os.mkfifo))
        yield Hostile(
            f"{name}: endless",
            TRAINED,
            lambda f, _, n=name: instead(f / SAVED / n, lambda p: p.symlink_to("/dev/zero")),
        )
    for name in (
        "cache",
        "checkpoints",
        "log.jsonl",
        "probe.jsonl",
        ".lock",
        "model.safetensors",
        "config.json",
        "README.md",
    ):
        yield Hostile(f"{name} leads outside", TRAINED, lambda f, out, n=name: _lead(f / n, out))
    yield Hostile(
        "cache leads outside", "transformer", lambda f, out: instead(f / "cache", lambda p: p.symlink_to(out))
    )
    yield Hostile(
        "cache/ctranslate2 leads outside", "bert",
        lambda f, out: instead((f / "cache").mkdir() or f / "cache" / "ctranslate2", lambda p: p.symlink_to(out)),
    )  # fmt: skip
    yield Hostile("cache/tokens leads outside", TRAINED, lambda f, out: _lead(f / "cache" / "tokens", out))
    for name in ("step-1", "step-" + "9" * 200, "step-٣", ".step-00000004.tmp"):
        yield Hostile(f"checkpoints/{name:.20}", TRAINED, lambda f, _, n=name: (f / "checkpoints" / n).mkdir())


def _lead(path: Path, outside: Path) -> None:
    """The same content, outside."""
    shutil.move(path, outside / path.name)
    path.symlink_to(outside / path.name)


def _canaries() -> Iterator[Hostile]:
    names = [
        *FILES,
        "tokenizer.model",
        "wordpiece.json",
        "README.md",
        ".lock",
        "model.pt",
        "pytorch_model.bin",
        "a.pkl",
        "x.npy",
    ]
    for number, name in enumerate([*names, *(str(SAVED / name) for name in (*SEALED, "manifest.json", "state.pt"))]):
        put = canary_archive if number % 2 else canary
        base = TRAINED if "/" in name else ("transformer", "classifier")[number // 2 % 2]
        yield Hostile(f"{name}: a pickle", base, lambda f, _, n=name, p=put: instead(f / n, p))
    for name in SEALED:
        yield Hostile(f"{name}: a pickle, sealed", TRAINED, lambda f, _, n=name: _sealed(f, lambda s: canary(s / n)))
    for kind in ("bpe", "wordpiece"):
        name = {"bpe": "tokenizer.model", "wordpiece": "wordpiece.json"}[kind]
        yield Hostile(
            f"{name}: a pickle, read",
            "bert",
            lambda f, _, k=kind, n=name: (set_in(f, "text", tokenizer=k), canary(f / n)),
        )
    yield Hostile("cache: pickles", "transformer", lambda f, _: _pickled_cache(f))


def _pickled_cache(folder: Path) -> None:
    at = folder / "cache" / "ctranslate2" / "int8-0123456789abcdef"
    at.mkdir(parents=True)
    for name in ("model.bin", "config.json", "shared_vocabulary.json", "manifest.json"):
        path = at / name
        canary(folder / "a")
        (folder / "a").rename(path)


def listed() -> list[Hostile]:
    """All of them."""
    return [*_alone(), *_canaries()]
