"""Whatever is in a folder, a command ends soon, in little memory, with one line, and writes nothing outside.

`make torture PART=folders` and PART=imports try every harm with every command. Here are some of each, and the rules by
which it holds.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import safetensors.numpy
import torch

import hostile
import hostile_imports
from fuzz import seeds
from harms import DEEP, in_json, set_in, sparse
from regard.config import MODEL_CONFIGS, DecodeConfig, TextConfig, TrainConfig, read
from regard.config.setting import most_of
from regard.errors import ConfigError, FolderError
from regard.folder import layout
from regard.folder.checkpoints import load_tensors, newest, steps
from regard.folder.weights import check_folder, load_model
from regard.interop.huggingface import import_bert
from regard.system import files
from regard.training.loop import TrainState

ROOT = Path(__file__).parents[2]
KINDS: dict[str, type] = {"text": TextConfig, "train": TrainConfig, "decode": DecodeConfig, **MODEL_CONFIGS}
# One of a kind, each with five commands.
FOLDERS = (
    "model.depth=1000000000",
    "decode.beam=1",
    "model.safetensors: FIFO",
    "config.json: endless",
    "weights: escape",
)
FOLDERS += ("about.job=[]", "width 8,192", "shortlist: far ids", "state.window=None", ".lock leads outside")
FOLDERS += ("model.safetensors: a pickle", "probe.jsonl: 0")
PUBLISHED = ("vocab_size=", "config.json: FIFO", "vocab.txt: a terabyte", "model.safetensors: archive", "vocab=None")
PUBLISHED += ("only pytorch_model.bin", "num_hidden_layers=", "weights: a header", "tokenizer.json: deep")
RUN = """
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from torture.parts.folders import in_processes
scratch, kind, *numbers = sys.argv[1:]
module = import_module(kind)
bases = cache(lambda name: module.make_base(name, Path(scratch, name)))
whole, random = module.commands, Random(1)
module.commands = lambda at, work: random.sample(found := list(whole(at, work)), min(5, len(found)))
tried = list(in_processes(Path(scratch), bases, module, map(int, numbers)))
print([(name, one.command, one.fault) for name, one in tried if one.fault], len(tried) > len(numbers))
"""


@pytest.mark.parametrize(
    ("kind", "names"), [(hostile, FOLDERS), (hostile_imports, PUBLISHED)], ids=["folders", "published"]
)
def test_some_of_every_kind_of_harm_are_refused_in_one_line(kind: Any, names: tuple[str, ...], tmp_path: Path) -> None:
    numbers = [next(n for n, one in enumerate(kind.LISTED) if one.name.startswith(name)) for name in names]
    command = [sys.executable, "-c", RUN, str(tmp_path), kind.__name__, *map(str, numbers), str(len(kind.LISTED))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[] True\n", done.stdout + done.stderr


@pytest.mark.parametrize("name", KINDS)
def test_every_number_that_can_be_set_has_a_limit(name: str) -> None:
    hints = get_type_hints(KINDS[name])
    section, chosen = (name, {}) if name not in MODEL_CONFIGS else ("model", {"name": name})
    for one in fields(KINDS[name]):
        if hints[one.name] in (int, float):
            with pytest.raises(ConfigError, match=rf"{section}\.{one.name} "):
                read({section: {**chosen, one.name: 10.0**30}})


def test_a_limit_can_be_reached_but_not_passed() -> None:
    (most,) = [most_of(one) for one in fields(DecodeConfig) if one.name == "beam"]
    assert DecodeConfig(beam=int(most or 0)).beam == most
    with pytest.raises(ConfigError, match=r"decode\.beam 1000001 is too large; it must be at most 1,000,000\."):
        DecodeConfig(beam=1_000_001)


def test_a_folder_asks_by_itself_for_no_more_than_a_search_that_ends_soon(tmp_path: Path) -> None:
    set_in(seeds.model_folder(tmp_path / "a", "transformer"), "decode", beam=1001)
    with pytest.raises(FolderError, match=r"decode\.beam 1001 is too large for a model's default, at most 1000\."):
        layout.load_config(tmp_path / "a")


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (os.mkfifo, "a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (Path.mkdir, "a folder"),
        (sparse, "more than the"),
        (lambda path: path.write_text(DEEP), "nested too deeply"),
        (lambda path: path.write_text("[" + "[]," * 10**6 + "[]]"), "more than the 2,000,000 values"),
        (lambda path: path.write_text('{"a": "\\ud800"}'), "half a character"),
        (lambda path: path.write_bytes(b'{"a": "\xed\xa0\x80"}'), "utf-8"),
        (lambda path: path.write_text("[1]"), "not a table"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_only_a_plain_bounded_file_of_text_is_read(put: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    put(tmp_path / "a.json")
    with pytest.raises(ValueError, match=said):
        files.table(tmp_path / "a.json")


def test_settings_that_do_not_fit_the_weights_cost_no_memory(tmp_path: Path) -> None:
    set_in(seeds.model_folder(tmp_path / "a", "transformer"), "model", width=2048, inner=16384)  # 350 MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for refused in (load_model, check_folder):
        with pytest.raises(FolderError, match=r"is \(8,\), not \(2048,\)"):
            refused(tmp_path / "a")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_message_cannot_steer_a_terminal_or_fill_it() -> None:
    assert str(FolderError("a\x1b[2J\u202e\ud800 é\u00a0b")) == "a\\x1b[2J\\u202e\\ud800 é\u00a0b"
    assert len(str(FolderError("a" * 10**6 + " Do this."))) < 2100
    assert str(FolderError("a" * 10**6 + " Do this.")).endswith("Do this.")


def test_a_model_has_a_job_that_it_can_learn(tmp_path: Path) -> None:
    at = seeds.model_folder(tmp_path / "a", "transformer")
    for job in ("text", "masking", "labelling"):
        in_json(at / "config.json", lambda table, job=job: table["about"].update(job=job))
        with pytest.raises(FolderError, match=f"'{job}' is not what a transformer learns"):
            layout.load_config(at)


@pytest.mark.parametrize("name", ["cache", "checkpoints", "log.jsonl", ".lock"])
def test_what_leads_out_of_a_folder_is_not_written_to(name: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    at = seeds.model_folder(tmp_path / "a", "transformer")
    (at / name).unlink(missing_ok=True)
    (at / name).symlink_to(tmp_path / "outside")
    with pytest.raises(FolderError, match="leads out"), layout.held(at):
        pytest.fail("it is held")
    assert not any((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("content", [{"step": -1}, {"window": {"a": []}}, {"batch": 10**25}, {"a": 1}, {"best": "x"}])
def test_a_state_that_no_training_saved_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(FolderError, match=f"{next(iter(content))} is"):
        TrainState.restored(content, Path("step-1/state.json"))


def test_a_manifest_that_names_other_files_is_a_damage(tmp_path: Path) -> None:
    seeds.checkpoints(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "step-00000002" / "manifest.json").write_text('{"files": {"../pipe": {}}}')
    (tmp_path / "step-3").mkdir()
    said: list[str] = []
    with pytest.raises(FolderError, match="None of the 1 checkpoints"):
        newest(tmp_path, said.append)
    assert steps(tmp_path) == [2]
    assert len(said) == 1


def test_a_header_is_bounded_before_the_library_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes((64 << 20).to_bytes(8, "little") + b"{" * 99)
    with pytest.raises(FolderError, match="its header has"):
        load_tensors(tmp_path / "a.safetensors")


def test_a_published_model_of_other_sizes_is_refused_before_it_is_built(tmp_path: Path) -> None:
    at = seeds.published(tmp_path / "a")
    for name, value in (("vocab_size", 900_000), ("hidden_size", 60_000), ("intermediate_size", 10**6)):
        whole = (at / "config.json").read_text()
        in_json(at / "config.json", lambda table, name=name, value=value: table.update({name: value}))
        with pytest.raises(FolderError, match=r"does not fit its config\.json"):
            import_bert(at, tmp_path / "b")
        (at / "config.json").write_text(whole)
    assert not (tmp_path / "b").exists()


def test_weights_are_imported_one_by_one_and_only_numbers_with_a_point(tmp_path: Path) -> None:
    at = seeds.published(tmp_path / "a")
    weights = safetensors.numpy.load_file(at / "model.safetensors")
    safetensors.numpy.save_file({name: weight.astype("int64") for name, weight in weights.items()}, at / layout.MODEL)
    with pytest.raises(FolderError, match="as I64"):
        import_bert(at, tmp_path / "b")
    safetensors.numpy.save_file({name: weight.astype("float64") for name, weight in weights.items()}, at / layout.MODEL)
    import_bert(at, tmp_path / "b")
    own = load_tensors(tmp_path / "b" / layout.MODEL)["body.pooler.weight"]
    assert torch.equal(own, torch.from_numpy(weights["bert.pooler.dense.weight"]))
