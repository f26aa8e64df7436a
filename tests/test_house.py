"""House rules: what is only written down drifts; what fails a build does not."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from executing import executing

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "regard"


def rooms() -> Iterator[tuple[str, Path]]:
    """Every file of the package, with the folder it belongs to; or its own name, at the root."""
    for path in sorted(SRC.rglob("*.py")):
        yield path.relative_to(SRC).parts[0].removesuffix(".py"), path


def imported_modules(path: Path, *, on_import: bool = False) -> Iterator[str]:
    """What a file imports: anywhere in it, or only as soon as it is imported itself."""
    program = ast.parse(path.read_text())
    nodes = list(ast.walk(program))
    if on_import:
        nodes = [node for node in program.body if not isinstance(node, ast.If)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def file_of(module: str) -> Path | None:
    """The file that a dotted name, or what it is part of, stands for."""
    parts = module.split(".")
    for size in range(len(parts), 1, -1):
        base = SRC.joinpath(*parts[1:size])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if parts[0] == "regard" and path.is_file():
                return path
    return None


def order_of_the_readme() -> list[str]:
    (tree,) = re.findall(r"```\nsrc/regard/\n(.*?)```", readme(), flags=re.DOTALL)
    return [name.removesuffix(".py") for name in re.findall(r"^  (\w+)", tree, flags=re.MULTILINE)]


# Imports against the order that are still to be cut.
TO_CUT = {
    ("folder", "training"),
    ("training", "decode"),
    ("training", "encode"),
    ("training", "evaluation"),
    ("training", "interpret"),
    ("decode", "interpret"),
    ("encode", "interpret"),
}


def test_folders_import_only_those_above_them() -> None:
    order = order_of_the_readme()
    place = {name: number for number, name in enumerate([*order, "__init__", "__main__"])}
    wrong = []
    for here, path in rooms():
        for module in imported_modules(path):
            there = module.split(".")[1] if module.startswith("regard.") and module.count(".") else here
            if there in place and place[there] > place[here] and (here, there) not in TO_CUT:
                wrong.append(f"{path.relative_to(SRC)} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_a_model_never_imports_another() -> None:
    for path in (SRC / "models").glob("[!_]*.py"):
        modules = re.findall(r"from regard\.models(?:\.(\w+))? import", path.read_text())
        assert set(modules) <= {"base"}, path.name


def brought_along(path: Path, seen: dict[Path, str]) -> None:
    """All that importing a file imports, with the way it came."""
    for module in imported_modules(path, on_import=True):
        if module.split(".")[0] == "torch":
            seen[Path("torch")] = seen[path]
        there = file_of(module)
        if there and there not in seen:
            seen[there] = f"{seen[path]} -> {module}"
            brought_along(there, seen)


@pytest.mark.parametrize(
    "place",
    [
        *("config", "fast", "text/builtin", "text/tokenizers", "text/shards", "text/checks.py", "text/corpus.py"),
        *("evaluation/metrics.py", "evaluation/search_grid.py", "folder/layout.py", "inference/load.py", "cli/main.py"),
        *("training/gpu_plan.py", "training/torchrun.py", "decode/process_pool.py", "decode/translation.py"),
        *("encode/embed.py", "encode/fill.py", "encode/classify.py"),
    ],
)
def test_what_needs_no_torch_does_not_import_it(place: str) -> None:
    """Not even by way of another module."""
    files = sorted((SRC / place).glob("*.py")) if (SRC / place).is_dir() else [SRC / place]
    for path in files:
        seen = {path: path.name}
        brought_along(path, seen)
        assert Path("torch") not in seen, seen[Path("torch")]


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    bench = [path for folder in (".", "parts", "workers") for path in (ROOT / "bench" / folder).glob("*.py")]
    whole = [path for folder in ("src", "tests", "torture") for path in (ROOT / folder).rglob("*.py")]
    files = [*whole, *(ROOT / "fuzz").glob("*.py"), *bench]
    long = {p.name: n for p in files if (n := len(p.read_text().splitlines())) > 400}
    assert not long, f"split these before adding to them: {long}"


def test_no_function_is_longer_than_sixty_lines() -> None:
    functions = [
        (node.end_lineno - node.lineno + 1, f"{path.name}:{node.name}")
        for _, path in rooms()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno
    ]
    assert max(functions)[0] <= 60, max(functions)


HARMLESS = {
    ("__init__.py", "importlib.import_module"): "our own modules, when they are first asked for",
    ("system/allocator.py", "ctypes"): "one function of the C library",
    ("system/allocator.py", "ctypes.CDLL"): "one function of the C library",
    ("fast/loaded_models.py", "ctypes"): "a reference that is never given back, so that nothing is ended",
    ("fast/loaded_models.py", "ctypes.py_object"): "the same",
    ("fast/loaded_models.py", "ctypes.pythonapi"): "the same",
    ("fast/loaded_models.py", "ctypes.pythonapi.Py_IncRef"): "the same",
}


def test_nothing_can_execute_what_it_reads() -> None:
    found = [(str(path.relative_to(SRC)), name) for _, path in rooms() for _, name in executing(path.read_text())]
    assert set(found) == set(HARMLESS)


@pytest.mark.parametrize(
    "line",
    [
        'eval("x")',
        "run = exec",
        'exec(compile(text, "a", "exec"))',
        'import builtins as b; b.eval("x")',
        'getattr(builtins, "eval")("x")',
        '__import__("pickle")',
        "import pickle as p",
        'from importlib import import_module as get; get("pickle")',
        "from _pickle import loads",
        "import marshal, shelve",
        "from torch import load",
        "from torch import *",
        'import torch as t; t.load("a")',
        'from torch import jit as j; j.load("a")',
        "import joblib.numpy_pickle",
        "from dill import loads",
        "import cloudpickle",
        "from os import system",
        'import os; os.popen("ls")',
        "from yaml import load as safe",
        'import yaml; yaml.unsafe_load("a")',
        'import subprocess; subprocess.run("ls", shell=True)',
        'subprocess.run("ls", **{"shell": 1})',
        'import numpy as np; np.load("a", allow_pickle=True)',
        'Model.from_pretrained("a", trust_remote_code=yes)',
        'getattr(__builtins__, "eval")("x")',
        '__builtins__["eval"]("x")',
        'import builtins; vars(builtins)["eval"]("x")',
        'import builtins; builtins.__dict__["eval"]("x")',
        'import torch; t = torch; t.load("a")',
        'import torch; getattr(torch, "lo" + "ad")("a")',
        'import torch; vars(torch)["load"]("a")',
        'import importlib; importlib.import_module(name).load("a")',
        'import importlib; importlib.import_module("torch").load("a")',
        'import sys; sys.modules["pickle"].loads(b"")',
        'from sys import modules; modules["torch"].load("a")',
        'import importlib.util; importlib.util.spec_from_file_location("a", "b.py")',
        "from importlib.machinery import SourceFileLoader",
        'import numpy as np; np.load("a", None, True)',
        "import numpy as np; np.lib.format.read_array(file, True)",
        'options["shell"] = True',
        'from regard.folder.weights import torch as w; w.load("a")',
        'import regard.folder.weights as w; w.torch.load("a")',
        'import torch as t; t.load("a"); import regard as t',
        "import torch.distributed.checkpoint as dcp; dcp.load(state)",
        "from torch.distributed import checkpoint",
        "from torch.utils.cpp_extension import load",
        'import torch; torch.hub.load_state_dict_from_url("a")',
        'import torch; torch.ops.load_library("a.so")',
        'import ctypes; ctypes.CDLL("a.so")',
        "from yaml import UnsafeLoader",
        "import yaml; yaml.load_all(text, Loader=yaml.FullLoader)",
        'from ruamel.yaml import YAML; YAML(typ="unsafe")',
        'import logging.config; logging.config.fileConfig("a")',
        "import timeit; timeit.timeit(text)",
        'import os; os.execv("a", [])',
        'import os; os.spawnlp(0, "a")',
        "from os import posix_spawn",
        'import pty; pty.spawn("a")',
        "import code; code.interact()",
        'import operator, torch; operator.attrgetter("load")(torch)("a")',
        "def f(t=torch): pass",
        "().__class__.__base__.__subclasses__()",
        'f.__globals__["x"]',
        "import types; types.FunctionType(a, {})",
        'import pydoc; pydoc.locate("os.system")',
        'import pkgutil; pkgutil.resolve_name("os:system")',
        "from multiprocessing.reduction import ForkingPickler",
        "from multiprocessing.connection import Client",
        "import jinja2",
        'import pandas as pd; pd.eval("x")',
        "import zipimport",
        "from runpy import run_path",
        'import subprocess; subprocess.Popen("ls", -1, None, None, None, None, None, True, True)',
    ],
)
def test_what_executes_is_found_under_any_name(line: str) -> None:
    assert list(executing(line))


def test_what_only_sounds_like_it_passes() -> None:
    lines = """
        model.eval(); re.compile("a"); torch.compile(model); safetensors.torch.load_file(path); json.load(file)
        np.load("a", allow_pickle=False); subprocess.run(["ls"], shell=False); "never eval(text) a pickle"; ast.literal_eval("1")
    """
    program = "import torch, re, numpy as np; from ast import literal_eval; from multiprocessing import Pool\n"
    assert not list(executing(program + "\n".join(line.strip() for line in lines.splitlines())))


@pytest.mark.parametrize("module", ["regard", "regard.api", "regard.cli.main"])
def test_importing_is_silent(module: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", f"import {module}"], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_importing_regard_does_not_wait_for_torch() -> None:
    code = "import sys, regard; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_sorted_and_there() -> None:
    assert regard.__all__ == sorted(regard.__all__)
    for name in regard.__all__:
        assert getattr(regard, name).__doc__, name
    with pytest.raises(AttributeError):
        _ = regard.nothing_of_that_name


def readme() -> str:
    return (ROOT / "README.md").read_text()


def test_the_readme_comes_to_the_point() -> None:
    assert len(readme().split("```")[0].split()) < 80


def test_every_file_of_the_tree_in_the_readme_exists() -> None:
    (tree,) = re.findall(r"```\nsrc/regard/\n(.*?)```", readme(), flags=re.DOTALL)
    named = re.findall(r"^  ([\w./]+)", tree, flags=re.MULTILINE)
    missing = [name for name in named if not (SRC / name).exists()]
    unnamed = {path.name for path in SRC.iterdir()} - {name.rstrip("/") for name in named}
    assert not missing
    assert unnamed <= {"__pycache__", "__init__.py", "__main__.py", "py.typed"}, unnamed


def test_the_commands_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `regard` line of the README, on a small corpus, for a few steps."""
    from conftest import QUICK, write_digits
    from regard.cli.main import main

    monkeypatch.chdir(tmp_path)

    for name, written in zip(("my.en", "my.fr"), write_digits(tmp_path, 60), strict=True):
        Path(written).rename(tmp_path / name)
    (tmp_path / "labelled.tsv").write_text("".join(f"a {word} day\t{word}\n" for word in ("good", "bad") * 20))
    settings = {key: ["--set", f"{key}={value}"] for key, value in QUICK.items()}
    quick = [part for setting in settings.values() for part in setting]
    # What begins with another model takes its shape and tokenizer from there.
    again = [part for key, setting in settings.items() if key.startswith("train.") for part in setting]
    commands = [line for line in re.findall(r"^regard .*", readme(), flags=re.MULTILINE) if "demo" not in line]
    assert len(commands) >= 4
    for line in commands:
        arguments = [part.strip('"') for part in re.findall(r'"[^"]*"|\S+', line.split("#")[0])][1:]
        extra = [*(again if "--from" in arguments else quick), "--steps", "3"] if arguments[0] == "train" else []
        extra = ["--no-estimate"] if arguments[0] == "check" else extra
        extra = ["--models", "seq2seq,transformer", "--steps", "3"] if arguments[0] == "compare" else extra
        assert main([*arguments, *extra]) == 0, line
    blocks = re.findall(r"```python\n(.*?)```", readme(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True, capture_output=True)


def test_the_project_speaks_of_itself_alone() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    # Assembled, so that this file does not find itself.
    wrong = re.compile("/" + "work/|/" + "root/|TO" + "DO|FIX" + "ME")
    found = [
        name for name in files if (ROOT / name).is_file() and wrong.search((ROOT / name).read_text(errors="ignore"))
    ]
    assert not found
