"""Published models that somebody spoiled or made up to do harm, for `regard import`. The listed ones first, then drawn."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz import seeds
from fuzz.edits import VALUES, edited
from harms import (
    DEEP,
    HUGE,
    Hostile,
    canary,
    canary_archive,
    cast,
    in_json,
    instead,
    raw_header,
    sparse,
    tensors_of,
)

FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "vocab.txt")
SETTINGS = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "type_vocab_size",
    "max_position_embeddings", "layer_norm_eps", "hidden_dropout_prob", "hidden_act", "id2label", "architectures",
)  # fmt: skip


def make_base(name: str, to: Path) -> Path:
    """A small BERT as Hugging Face's library saves it; an older one has its words in vocab.txt alone."""
    seeds.published(to)
    if name == "older":
        (to / "tokenizer.json").unlink()
    return to


def commands(folder: Path, work: Path) -> Iterator[tuple[str, list[str]]]:
    """Taking it over, and using what came."""
    yield "import", ["import", str(folder), "--to", str(work / "to")]
    yield "classify", ["classify", str(work / "to"), "the cat", "--threads", "1"]


def _listed() -> Iterator[Hostile]:
    for number, name in enumerate(SETTINGS):
        for value in (HUGE[number % len(HUGE)], HUGE[(number + 5) % len(HUGE)]):
            yield Hostile(
                f"{name}={value!r:.20}", "newer",
                lambda f, _, n=name, v=value: in_json(f / "config.json", lambda table: table.update({n: v})),
            )  # fmt: skip
    for name in FILES:
        base = "older" if name == "vocab.txt" else "newer"
        for what, put in (
            ("FIFO", os.mkfifo), ("endless", lambda p: p.symlink_to("/dev/zero")), ("a terabyte", sparse),
            ("a folder", Path.mkdir), ("deep", lambda p: p.write_text(DEEP)), ("empty", Path.touch),
            ("canary", canary), ("archive", canary_archive),
        ):  # fmt: skip
            yield Hostile(f"{name}: {what}", base, lambda f, _, n=name, p=put: instead(f / n, p))
    for value in (None, [], 7, {"a": 10**9}, {"a": "b"}, {"[PAD]": 0, "[UNK]": 0}, {"\ud800": 0}):
        yield Hostile(
            f"vocab={value!r:.20}", "newer",
            lambda f, _, v=value: in_json(f / "tokenizer.json", lambda table: table["model"].update(vocab=v)),
        )  # fmt: skip
    for header in ({}, {"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 64]}}, DEEP.encode()):
        yield Hostile("weights: a header", "newer", lambda f, _, h=header: raw_header(f / "model.safetensors", h))
    for kind in (np.int64, np.bool_, np.float16):
        yield Hostile(
            f"weights: {kind.__name__}", "newer", lambda f, _, k=kind: tensors_of(f / "model.safetensors", cast(k))
        )
    escape = {"\x1b[2J": np.zeros(3, np.float32)}
    yield Hostile(
        "weights: escape", "newer", lambda f, _: tensors_of(f / "model.safetensors", lambda w: w.update(escape))
    )
    for name in ("pytorch_model.bin", "model.pt", "training_args.bin", "flax_model.msgpack"):
        yield Hostile(f"only {name}", "newer", lambda f, _, n=name: _only(f, n, canary))
        yield Hostile(f"only {name}, an archive", "newer", lambda f, _, n=name: _only(f, n, canary_archive))


def _only(folder: Path, name: str, put: Any) -> None:
    """No safetensors, but weights that would run what they like."""
    (folder / "model.safetensors").unlink()
    put(folder / name)
    in_json(folder / "config.json", lambda table: table.update(auto_map={"AutoModel": "run.Run"}))
    (folder / "run.py").write_text(
        f"import pathlib\npathlib.Path({str(folder.with_name('outside') / 'ran')!r}).touch()\n"
    )


def drawn(number: int) -> Hostile:
    """Damage of chance."""
    random = Random(number)

    def change(folder: Path, _: Path) -> None:
        for _ in range(random.choice((1, 2))):
            path = folder / random.choice(FILES)
            if random.randrange(2) and path.suffix == ".json" and path.exists():
                table = json.loads(path.read_text()) if path.stat().st_size < 10**5 else {}
                if isinstance(table, dict) and table:
                    table[random.choice(sorted(table))] = random.choice(VALUES)
                    path.write_text(json.dumps(table))
            elif path.exists():
                path.write_bytes(edited(path.read_bytes(), *(random.getrandbits(20) for _ in range(3))))

    return Hostile(f"drawn {number}", random.choice(("newer", "older")), change)


LISTED = list(_listed())


def hostile(number: int) -> Hostile:
    """The listed ones first."""
    return LISTED[number] if number < len(LISTED) else drawn(number)
