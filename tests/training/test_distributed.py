"""Several processes train what one would: the same weights, the same folder, and through the same faults."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import torch
from safetensors.torch import load_file

from conftest import QUICK, SMALL, write_digits
from regard.folder import checkpoints
from regard.training.distributed import World
from regard.training.log import read_log
from two_processes import saved, taken_up, trained

KILLS = int(os.environ.get("REGARD_KILLS", "1"))
# All of them take a minute more: REGARD_EVERY_MODEL=1.
NAMES = list(SMALL) if os.environ.get("REGARD_EVERY_MODEL") else ["lstm", "transformer", "bert"]
HERE = Path(__file__).parents[1]
LAUNCHER = [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend", "loopback", "--nproc-per-node"]


@pytest.fixture(scope="module", params=["whole", "shard"])
def together(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every model trained by two processes, which hold all weights (DDP) or a part of them (FSDP2)."""
    to = tmp_path_factory.mktemp(request.param)
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    command = [*LAUNCHER, "2", str(HERE / "two_processes.py"), str(to), request.param, *NAMES]
    subprocess.run(
        command,
        check=True,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"},
    )
    return to


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_learn_what_one_learns(name: str, together: Path, tmp_path: Path) -> None:
    saved(trained(name, tmp_path, World()), tmp_path / name)
    for part in ("weights", "training"):
        assert distance(load_file(tmp_path / f"{name}.{part}"), load_file(together / f"{name}.{part}")) < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_what_several_processes_saved_any_number_takes_up(name: str, together: Path, tmp_path: Path) -> None:
    saved(taken_up(name, together / name, World()), tmp_path / name)
    for part in ("weights", "training"):
        kept = load_file(together / f"{name}.{part}")
        for again in (together / f"{name}-again.{part}", tmp_path / f"{name}.{part}"):
            found = load_file(again)
            assert kept.keys() == found.keys()
            assert all(torch.equal(kept[key], found[key]) for key in kept)


def distance(weights: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> float:
    """How far apart two models are, as a share of how long the first one's weights are."""
    assert weights.keys() == others.keys()
    length = torch.cat([tensor.flatten() for tensor in weights.values()]).norm()
    return float(torch.cat([(weights[key] - others[key]).flatten() for key in weights]).norm() / length)


SETTINGS = {**QUICK, "train.steps": 60, "train.validate_steps": 20, "train.checkpoint_steps": 20, "train.ema": 0.9}
# Sums in another order differ by rounding; small steps keep it from growing.
ALONE = {**SETTINGS, "model.dropout": 0.0, "train.epsilon": 1e-6, "train.rate": 0.003}


def command(
    data: list[str], to: Path, settings: dict[str, object], *options: str, verb: tuple[str, ...] = ("train",)
) -> list[str]:
    chosen = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return ["-m", "regard", *verb, *data, "--to", str(to), *chosen, *options]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        pytest.param("muon", (), id="whole"),
        pytest.param("adam", ("--shard",), id="shard", marks=pytest.mark.long),
    ],
)
def test_a_run_goes_from_one_process_to_two_and_back(tmp_path: Path, optimizer: str, options: tuple[str, ...]) -> None:
    data = write_digits(tmp_path, 400)
    alone, moved = tmp_path / "alone", tmp_path / "moved"
    settings = {**ALONE, "train.optimizer": optimizer}
    assert run(*command(data, alone, settings)).returncode == 0
    for steps, several in ((20, False), (40, True), (60, False)):
        more = ("--processes", "2", *options) if several else ()
        done = run(*command(data, moved, {**settings, "train.steps": steps}, *more))
        assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in alone.iterdir()) == sorted(path.name for path in moved.iterdir())
    logs = [[line for line in read_log(folder / "log.jsonl") if "rate" in line] for folder in (alone, moved)]
    for one, other in zip(*logs, strict=True):
        assert [one[key] for key in ("step", "epoch", "tokens")] == [other[key] for key in ("step", "epoch", "tokens")]
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)
    weights = [load_file(folder / "checkpoints/step-00000060/weights.safetensors") for folder in (alone, moved)]
    assert distance(*weights) < 1e-4


@pytest.mark.long
def test_two_processes_distill_what_one_does(tmp_path: Path) -> None:
    data, teacher = write_digits(tmp_path, 400), tmp_path / "teacher"
    assert run(*command(data, teacher, {**QUICK, "train.steps": 40})).returncode == 0
    settings = {**ALONE, "train.steps": 30, "train.soft": 0.5}
    runs = {"alone": [], "together": ["--processes", "2"], "sharded": ["--processes", "2", "--shard"]}
    for name, several in runs.items():
        more = ("--true-too", "--engine", "torch", *several)
        done = run(*command(data, tmp_path / name, settings, *more, verb=("distill", str(teacher))))
        assert done.returncode == 0, done.stderr
    alone, *others = [tmp_path / name for name in runs]
    for other in others:
        assert (other / "cache/mixed.tsv").read_text() == (alone / "cache/mixed.tsv").read_text()
        assert distance(*(load_file(folder / "model.safetensors") for folder in (alone, other))) < 1e-3


def test_killing_a_process_changes_nothing(tmp_path: Path) -> None:
    data = write_digits(tmp_path, 400)
    settings = {**SETTINGS, "train.steps": 200, "model.dropout": 0.3}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(*command(data, whole, settings, "--processes", "2")).returncode == 0
    arguments = command(data, killed, settings, "--processes", "2", "--max-restarts", str(KILLS))
    with subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True) as process:
        moments, kills = random.Random(KILLS), 0
        while kills < KILLS and process.poll() is None:
            time.sleep(moments.uniform(3, 6))
            if ranks := children(process.pid):
                os.kill(moments.choice(ranks), signal.SIGKILL)
                kills += 1
        _, told = process.communicate(timeout=120)
    assert kills and process.returncode == 0, told
    for file in ("model.safetensors", "checkpoints/step-00000200/weights.safetensors", "probe.jsonl"):
        assert (whole / file).read_bytes() == (killed / file).read_bytes(), file


def children(pid: int) -> list[int]:
    """The processes that a launcher started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.parametrize(("processes", "code"), [("", 3), ("1", 3), ("2", 0)])
def test_one_of_several_processes_leaves_before_python_cleans_up(processes: str, code: int) -> None:
    # What Python does then may end it by SIGABRT, if a thread of gloo still holds a tensor; here it is another end.
    ends = "import atexit, os, sys; atexit.register(os._exit, 3); sys.argv = ['regard', 'models']"
    done = subprocess.run(
        [sys.executable, "-c", f"{ends}; from regard.cli.main import run; run()"],
        env={**os.environ, "WORLD_SIZE": processes},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code and "transformer" in done.stdout


@contextmanager
def going_on(folder: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Two processes that train until they are told to stop, past their first steps; and what they say."""
    data = write_digits(folder, 400)
    arguments = command(data, folder / "model", {**SETTINGS, "train.steps": 100_000}, "--processes", "2")
    with subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("step"):
                break
        yield process, process.stderr


def test_a_signal_to_one_process_saves_and_ends_all(tmp_path: Path) -> None:
    with going_on(tmp_path) as (process, told):
        os.kill(children(process.pid)[1], signal.SIGTERM)
        rest = told.read()
        assert process.wait(timeout=30) == 0
    assert rest.count("Saved at step") == 1
    assert checkpoints.steps(tmp_path / "model" / "checkpoints")


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_a_signal_to_the_launcher_is_passed_on_saves_and_ends_all(number: int, code: int, tmp_path: Path) -> None:
    with going_on(tmp_path) as (process, told):
        process.send_signal(number)
        rest = told.read()
        assert process.wait(timeout=60) == code
    assert rest.count("Saved at step") == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise DataError('The disk is gone. Mend it.')", ": The disk is gone. Mend it."),
        ("import torch; torch.empty(10**15)", " is out of memory."),
    ],
)
def test_who_fails_says_so_once_with_its_name(tmp_path: Path, fault: str, said: str) -> None:
    data = write_digits(tmp_path, 400)
    script = tmp_path / "fails.py"
    script.write_text(
        "import os, regard\n"
        "from regard.text.shards.pair_shards import Shards\n"
        "from regard.errors import DataError\n"
        f"def fail(*_): {fault}\n"
        "if os.environ['RANK'] == '1': Shards.ids = fail\n"
        f"try: regard.train({data!r}, {str(tmp_path / 'model')!r}, settings={SETTINGS!r})\n"
        "except regard.RegardError as error: print('SAID', error); raise SystemExit(error.code)\n"
    )
    done = run("-m", "torch.distributed.run", "--rdzv-backend", "loopback", "--nproc-per-node", "2", str(script))
    assert done.returncode != 0
    lines = [line for line in done.stdout.splitlines() if line.startswith("SAID")]
    assert len(lines) == 1 and lines[0].startswith(f"SAID Process 1 on {socket.gethostname()}{said}")


def test_nothing_can_be_reached_from_another_machine(tmp_path: Path) -> None:
    with going_on(tmp_path) as (process, told):
        hosts = {host for pid in (process.pid, *children(process.pid)) for host in listening(pid)}
        process.send_signal(signal.SIGTERM)
        told.read()
    assert process.returncode == 143
    assert hosts == {"127.0.0.1"}


def listening(pid: int) -> set[str]:
    """The addresses at which a process waits for others."""
    own = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    hosts = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            local, state, inode = fields[1], fields[3], fields[9]
            if state == "0A" and f"socket:[{inode}]" in own:
                words = bytes.fromhex(local.split(":")[0])
                hosts.add(socket.inet_ntop(family, b"".join(words[n : n + 4][::-1] for n in range(0, len(words), 4))))
    return hosts


@pytest.mark.parametrize(
    ("options", "told"),
    [(("--shard",), "Add --processes"), (("--processes", "0"), "--processes: '0' is too small")],
)
def test_what_cannot_be_is_refused(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    done = run(*command(write_digits(tmp_path), tmp_path / "model", SETTINGS, *options))
    assert done.returncode == 2 and told in done.stderr and not (tmp_path / "model").exists()


def test_several_processes_do_not_read_standard_input(tmp_path: Path) -> None:
    done = run(*command(["-"], tmp_path / "model", SETTINGS, "--processes", "2"))
    assert done.returncode == 65 and done.stderr.count("standard input") == 1
