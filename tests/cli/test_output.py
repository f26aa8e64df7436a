"""Whatever ends a command, what it has finished is there, and it says where; nothing that is no file is replaced by one."""

import io
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import untrained
from regard.cli import output
from regard.cli.main import main
from regard.cli.output import open_output
from regard.errors import StorageError

COMMANDS = ["translate", "embed", "classify", "fill"]
BAD = [b"caf\xe9", b"a" * (1 << 20) + b"b"]  # not UTF-8; over a megabyte


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A folder for each command."""
    at = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    untrained.leaning(at / "translate")
    untrained.made("bert", at / "embed")
    untrained.made("classifier", at / "classify")
    untrained.made("lm", at / "write", job="text")
    found = {name: str(at / name) for name in ("translate", "embed", "classify", "write")}
    return {**found, "fill": found["embed"], "score": found["translate"]}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("a b <mask>\nc\n\n" * 500)
    return path


def run(command: str, models: dict[str, str], *options: object) -> int:
    quick = ["--max-length", "2", "--beam", "1"] if command == "translate" else []
    return main([command, models[command], *quick, *map(str, options)])


@pytest.mark.parametrize("command", [*COMMANDS, "write", "score"])
def test_a_target_that_cannot_be_is_refused_before_the_model_is_opened(
    command: str, models: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_bytes(Path(models[command], "config.json").read_bytes())  # and no weights
    more = ["a.en", "a.fr"] if command == "score" else []
    for target in (tmp_path, tmp_path / "no" / "out", tmp_path / "config.json" / "out"):
        assert main([command, str(tmp_path), *more, "--output", str(target)]) == StorageError.code
        assert "Cannot write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize("command", COMMANDS)
def test_lines_that_cannot_be_read_are_empty_and_named(
    command: str, models: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [b"a <mask>"] * 1300
    (tmp_path / "in").write_bytes(b"\n".join([*texts[:1100], BAD[0], *texts[:99], BAD[1], *texts[:99]]) + b"\n")
    options = ["--json"] if command in ("classify", "fill") else []
    assert run(command, models, "--input", tmp_path / "in", "--output", tmp_path / "out", *options) == 0
    written = (tmp_path / "out").read_text().splitlines()
    assert len(written) == 1300 and written[1100] != written[1101] and written[1200] != written[1201]
    told = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in told] == ["Line 1101 is left empty", "Line 1201 is left empty"]


def test_a_file_in_another_encoding_is_refused_before_anything_is_done(
    models: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_bytes("né\nil\n".encode("latin1") * 5000)
    assert run("translate", models, "--input", tmp_path / "in", "--output", tmp_path / "out") == 65
    assert "probably not UTF-8" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_keeps_what_is_done(
    command: str,
    models: dict[str, str],
    lines: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from regard.text import corpus

    def cut(*given: object, **named: object) -> Iterator[str]:
        for number, line in enumerate(read(*given, **named)):
            if number == 1200:
                raise KeyboardInterrupt
            yield line

    read = corpus.read_lines
    out = lines.with_name("out")
    assert run(command, models, "--input", lines, "--output", out) == 0
    whole = out.read_bytes()
    monkeypatch.setattr(corpus, "read_lines", cut)
    out.write_bytes(b"what was there")
    assert run(command, models, "--input", lines, "--output", out) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    kept = out.with_name("out.unfinished")
    assert f"What 1,000 lines gave is kept in {kept}" in said and f"tail -n +1001 {lines}" in said
    assert whole.startswith(kept.read_bytes()) and kept.read_bytes().count(b"\n") > 600
    assert out.read_bytes() == b"what was there"


def test_an_end_before_anything_is_done_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_output(tmp_path / "out") as out:
        assert (tmp_path / "out.unfinished").exists()
        raise KeyboardInterrupt
    assert not out.done and not list(tmp_path.iterdir())


def test_what_an_earlier_command_left_stays(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt), open_output(tmp_path / "out") as out:
            out.put("one")
            raise KeyboardInterrupt
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.unfinished", "out.unfinished.2", "out.unfinished.3"]


def test_with_no_room_left_the_lines_that_are_whole_are_kept(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"No room .* MB free") as told, open_output(tmp_path / "out") as out:
            for number in range(5000):
                out.put(f"line {number}", "and another")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    written = (tmp_path / "out.unfinished").read_text().splitlines()
    assert len(written) > 700 and len(written) % 2 == 0, "of an input all or nothing"
    assert f"What {len(written) // 2:,} lines gave is kept in" in told.value.__notes__[0]


def test_a_request_to_end_keeps_what_is_done(models: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "regard", "translate", models["translate"], "--beam", "1", "--max-length", "2"]
    command += ["--output", str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b"a b\n" * 1000)
        process.stdin.flush()
        while not any(path.stat().st_size for path in tmp_path.glob("out.unfinished")):
            assert process.poll() is None
        process.terminate()
        said = process.stderr.read().decode().splitlines()
    assert process.returncode == 143 and said[-1].startswith("regard: ended by SIGTERM. What 1,000 lines gave is kept")
    assert (tmp_path / "out.unfinished").read_text().count("\n") == 1000


def test_a_pipe_is_written_to_and_stays_a_pipe(models: dict[str, str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    code = run("translate", models, "a b", "--output", pipe)
    reader.join(timeout=20)
    assert code == 0 and read[0].endswith("\n") and stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_device_is_written_to_and_stays_a_device(models: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("translate", models, "a b", "--output", os.devnull) == 0
    assert run("translate", models, "a b", "--output", "/dev/full") == StorageError.code
    assert "No room to write /dev/full" in capsys.readouterr().err
    assert all(stat.S_ISCHR(Path(name).stat().st_mode) for name in (os.devnull, "/dev/full"))


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_any_name_loses_nothing_that_was_there(name: str, tmp_path: Path) -> None:
    code = "import pathlib, sys; from regard.cli.output import open_output\nwith open_output(pathlib.Path(sys.argv[1])) as out: "
    code += "out.put('b')"
    (tmp_path / "log").write_text("a\n")
    with open(tmp_path / "log", "a") as log:
        subprocess.run([sys.executable, "-c", code, name], check=True, stdout=log)
    assert (tmp_path / "log").read_text() == "a\nb\n"


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with open_output(tmp_path / "link") as out:
        out.put("new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new\n"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


def test_a_matrix_is_as_whole_as_its_rows(models: dict[str, str], lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = lines.with_name("out.npy")
    assert run("embed", models, "--input", lines, "--output", out) == 0
    assert run("embed", models, "--input", lines, "--output", lines.with_name("out.jsonl")) == 0
    whole = np.load(out)
    rows = [json.loads(line) for line in lines.with_name("out.jsonl").read_text().splitlines()]
    assert whole.dtype == np.float32 and np.allclose(whole, rows, atol=1e-6)

    def cut(_: object) -> Iterator[list[str]]:
        yield ["a"] * 1000
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.cli.embed.portions", cut)
    assert run("embed", models, "--input", lines, "--output", out) == 130
    assert np.load(out.with_name("out.npy.unfinished")).shape == (1000, whole.shape[1])


def test_score_keeps_translations_whatever_becomes_of_the_scores(
    models: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [str(tmp_path / name) for name in ("in.en", "in.fr")]
    for name in data:
        Path(name).write_text("a b\nc\n" * 20)
    assert run("score", models, *data, "--output", tmp_path / "out") == 0
    monkeypatch.setattr("regard.evaluation.metrics.exact_match", lambda *_: signal.raise_signal(signal.SIGINT))
    assert run("score", models, *data, "--output", tmp_path / "again") == 130
    assert (tmp_path / "again.unfinished").read_bytes() == (tmp_path / "out").read_bytes() != b""
    assert "is kept in" in capsys.readouterr().err


def test_results_are_written_as_they_come(tmp_path: Path) -> None:
    with open_output(tmp_path / "out") as out:
        for _ in range(5000):
            out.put("a" * 100)
        assert out.done == 5000 and not out._waiting
        out.put_bytes(b"a" * (1 << 20))
        assert not out._waiting, "much of it does not wait for more"


def test_a_text_from_standard_input_may_be_any_bytes(
    models: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\n")))
    assert run("write", models, "-", "--max-length", "3") == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9\n")))
    assert run("write", models, "-", "--max-length", "3") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("caf\ufffd")


def test_what_was_half_written_when_the_command_was_ended_is_not_written_again() -> None:
    written: list[bytes] = []

    def ended_within(content: bytes) -> None:
        written.append(content[:1])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), contextmanager(output._flushed)(output.Output(ended_within)) as out:
        out.put("a" * 10)
        out.flush()
    assert written == [b"a"]


@pytest.mark.parametrize(
    ("source", "told"), [("a b.txt", "tail -n +4 'a b.txt'"), ("c.gz", "zcat c.gz | tail -n +4"), ("-", "")]
)
def test_how_to_go_on_can_be_pasted(source: str, told: str) -> None:
    assert output._how_to_go_on(Path("kept"), 3, source).partition("The rest begins with: ")[2] == told
