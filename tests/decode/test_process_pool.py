"""Several processes translate as one would."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.cli.main import main
from regard.decode.process_pool import Crew
from regard.decode.translation import TextTranslator
from regard.errors import DataError, WorkerError
from regard.inference.load import Opening

LINES = [" ".join(str(7919 * i % 10 ** (1 + i % 5))) for i in range(1, 60)] + ["", " "]


@pytest.fixture(scope="module")
def opening(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Opening:
    own = tmp_path_factory.mktemp("crew") / "model"  # a shortlist will be learned into it
    return Opening(Path(shutil.copytree(trained, own)), "auto", "cpu")


@pytest.fixture(scope="module")
def alone(opening: Opening) -> TextTranslator:
    return opening(2)


@pytest.fixture(scope="module")
def crew(opening: Opening) -> Iterator[Crew]:
    with Crew(opening, processes=2, threads=2) as both:
        yield both


@pytest.mark.parametrize(
    "settings",
    [
        {"beam": 1},
        {"beam": 5, "n_best": 3, "batch_tokens": 100},
        {"beam": 3, "shortlist": 20, "batch_tokens": 60},
        {"sample": True, "n_best": 2, "seed": 7, "batch_tokens": 40},
        {"beam": 2, "prefix": "seven", "batch_tokens": 40},
        {"beam": 4, "max_length": 2, "precision": "float32"},
    ],
    ids=str,
)
def test_two_processes_write_what_one_writes(alone: TextTranslator, crew: Crew, settings: dict[str, Any]) -> None:
    one, two = (list(translator.stream(LINES, chunk=25, **settings)) for translator in (alone, crew))
    assert two == one
    assert len({found[0].text for found in one}) > 5, "texts that are all alike would prove nothing"


def test_a_line_that_cannot_be_read_is_left_empty_and_told_once(
    alone: TextTranslator, crew: Crew, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [*LINES[:5], "1 " * 1500, *LINES[5:9]]
    two = list(crew.stream(lines, chunk=4))
    assert [record.getMessage().partition(".")[0] for record in caplog.records] == ["Line 6 is left empty"]
    assert two == list(alone.stream(lines, chunk=4))
    with pytest.raises(DataError, match="too long"):
        crew.n_best(lines)


def test_progress_is_told_for_all_together(crew: Crew) -> None:
    told: list[tuple[int, int]] = []
    crew.n_best(LINES, batch_tokens=100, progress=lambda done, total: told.append((done, total)))
    assert len(told) > 2 and told == sorted(told) and told[-1] == (len(LINES), len(LINES))


def test_lines_are_read_as_they_are_needed(crew: Crew) -> None:
    read = []
    found = crew.stream((read.append(line) or line for line in LINES), chunk=10)  # type: ignore[func-returns-value]
    next(found)
    assert len(read) == 20
    assert sum(1 for _ in found) == len(LINES) - 1


def test_a_process_that_dies_is_told_of_and_the_others_end(opening: Opening) -> None:
    before = set(multiprocessing.active_children())
    with pytest.raises(WorkerError, match="fewer --processes"), Crew(opening, processes=2, threads=2) as crew:
        crew.n_best(["1 2"])
        for process in set(multiprocessing.active_children()) - before:
            os.kill(process.pid or 0, signal.SIGKILL)
        crew.n_best(["3 4"])
    assert set(multiprocessing.active_children()) == before


def test_the_command_writes_the_same_file(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(line + "\n" for line in LINES))
    for count in ("1", "2"):
        command = ["translate", str(trained), "--input", str(tmp_path / "in"), "--output", str(tmp_path / count)]
        assert main([*command, "--processes", count, "--n-best", "2", "--json"]) == 0
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_so_does_the_command_that_translates_back(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{line} 1\n" for line in LINES))
    for count in ("1", "2"):
        command = ["back-translate", str(trained), str(tmp_path / "in"), "--to", str(tmp_path / count)]
        assert main([*command, "--processes", count]) == 0
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_no_process_is_not_enough(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(trained), "--input", "-", "--processes", "0"]) == 2
    assert "--processes: '0' is too small" in capsys.readouterr().err


def test_ctrl_c_ends_all_of_them_without_a_traceback(trained: Path) -> None:
    command = [sys.executable, "-m", "regard", "translate", str(trained), "--processes", "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, **pipes) as running:  # type: ignore[call-overload]
        running.stdin.write(b"1 2\n" * 2500)
        running.stdin.flush()
        assert running.stdout.readline() == b"one two\n"  # they are at work, and more lines may come
        os.killpg(running.pid, signal.SIGINT)
        _, told = running.communicate()
    assert running.returncode == 130
    assert told == b"regard: interrupted\n"
    for _ in range(100):
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process is left")
