"""Standard streams closed, broken, full or of another encoding: one line and an exit code, or all that was asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from conftest import write_digits
from regard.cli.main import main

RUN = [sys.executable, "-m", "regard"]


def shell(line: str, at: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["sh", "-c", line.replace("regard", f"{sys.executable} -m regard")],
        cwd=at,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    return done


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0 and capsys.readouterr().out == f"regard {regard.__version__}\n"


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("regard train --settings >&-", 74, "Standard output is closed"),
        ("regard train --settings >/dev/full", 74, "No space left"),
        ("regard train --settings >/dev/full 2>&-", 74, ""),
        ("regard --help <&- >&- 2>&-", 74, ""),
        ("regard translate model <&-", 65, "Standard input (-) is closed"),
        ("regard write text - <&-", 65, "Standard input (-) is closed"),
    ],
)
def test_a_stream_that_is_not_there_is_told_in_one_line(line: str, code: int, says: str, tmp_path: Path) -> None:
    import untrained

    untrained.made("transformer", tmp_path / "model")
    untrained.made("lm", tmp_path / "text", job="text")
    done = shell(line, tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (code, bool(says)) and says in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_report_is_shown_in_any_encoding(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_digits(tmp_path)
    Path(data[1]).write_text("“é日本”\n" * 200)
    line = f"regard check {data[0]} {data[1]} --no-estimate"
    told = shell(line, tmp_path, PYTHONIOENCODING=encoding)
    assert told.returncode == 0 and "200" in told.stdout
    table = shell(f"{line} --json", tmp_path, PYTHONIOENCODING=encoding)
    assert table.returncode == 0 and table.stdout.isascii()


def test_threads_are_counted_in_english(tmp_path: Path) -> None:
    data = write_digits(tmp_path)
    small = ["--set", "model.width=16", "--set", "model.inner=16", "--set", "model.depth=1", "--steps", "1"]
    done = subprocess.run(
        [*RUN, "train", *data, "--to", "m", *small, "--threads", "1"], capture_output=True, text=True, cwd=tmp_path
    )
    assert "1 thread;" in done.stderr
