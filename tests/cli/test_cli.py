"""The command line as a person meets it: what it prints, what it refuses, and what it leaves alone."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import regard
from conftest import QUICK, write_digits
from regard.cli.main import COMMANDS, main, parser
from regard.config import MODEL_CONFIGS

SETTINGS = [part for key, value in QUICK.items() for part in ("--set", f"{key}={value}")]


def test_help_needs_no_torch() -> None:
    code = "import sys; from regard.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    check = "assert not {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'rich'} & set(sys.modules), 'slow import'"
    subprocess.run([sys.executable, "-c", code + check], check=True, capture_output=True)


NAMES = [command.__name__.rpartition(".")[2].rstrip("_").replace("_", "-") for command in COMMANDS]


@pytest.mark.parametrize("command", NAMES)
def test_every_command_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"regard {command}" in capsys.readouterr().out.split("examples:")[1]


def test_every_command_is_listed() -> None:
    assert all(re.search(f"^    {name}( |$)", parser().format_help(), re.MULTILINE) for name in NAMES)


@pytest.mark.parametrize(
    ("plain", "options"),
    [
        (["translate", "DIR", "A text."], ["--beam", "2"]),
        (["translate", "DIR"], ["--beam", "2"]),
        (["write", "DIR", "It was"], ["--n-best", "3"]),
        (["classify", "DIR", "Good."], ["--json"]),
        (["see", "DIR", "A text.", "Another."], ["--between", "one", "other"]),
        (["explain", "DIR", "A text."], ["--layer", "2"]),
        (["score", "DIR", "a.en", "a.fr"], ["--beam", "2"]),
        (["train", "a.en", "a.fr"], ["--to", "DIR"]),
        (["distill", "DIR", "a.en", "a.fr"], ["--to", "OTHER"]),
    ],
)
def test_options_may_stand_anywhere(plain: list[str], options: list[str]) -> None:
    last = parser().parse_args([*plain, *options])
    for at in range(1, len(plain)):
        assert parser().parse_args([*plain[:at], *options, *plain[at:]]) == last


def test_a_text_may_look_like_an_option() -> None:
    assert parser().parse_args(["translate", "--beam", "2", "DIR", "--", "--beam"]).text == "--beam"


def test_every_setting_is_listed_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--settings"])
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("model.width", "train.rate", "text.vocabulary", "decode.beam"))


def test_every_model_is_listed_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--vocabulary", "37000"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in MODEL_CONFIGS) and "base 63.1M" in listed


SENTENCES = ["1 2 3", "", "9", "4 0"]
RIGHT = ["one two three", "", "nine", "four zero"]


def test_the_model_learned_to_read_digits(trained: Path) -> None:
    assert regard.load(trained, device="cpu").translate(SENTENCES) == RIGHT


def test_file_stdin_argument_and_python_give_the_same(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = tmp_path / "in.txt.gz", tmp_path / "out.txt"
    source.write_bytes(gzip.compress("\n".join(SENTENCES).encode() + b"\n"))
    assert main(["translate", str(trained), "--input", str(source), "--output", str(output)]) == 0
    assert output.read_text().split("\n") == [*RIGHT, ""]
    stdin = io.TextIOWrapper(io.BytesIO("\n".join(SENTENCES).encode() + b"\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["translate", str(trained)]) == 0
    assert capsys.readouterr().out.split("\n") == [*RIGHT, ""]
    assert main(["translate", str(trained), "1 2 3"]) == 0
    assert capsys.readouterr().out == "one two three\n"


def test_only_translations_stand_on_stdout(trained: Path) -> None:
    command = [sys.executable, "-m", "regard", "translate", str(trained), "7 7"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "seven seven\n"


@pytest.mark.parametrize(
    "options",
    [
        ["--beam", "1"],
        ["--beam", "6", "--length-penalty", "1.0", "--coverage-penalty", "0.01"],
        ["--sample", "--temperature", "0.1", "--top-k", "3", "--top-p", "0.9", "--seed", "4"],
        ["--no-repeat", "3", "--max-length", "20", "--min-length", "1", "--batch-tokens", "64"],
        ["--prefix", "one", "--threads", "1", "--device", "cpu"],
    ],
    ids=" ".join,
)
def test_every_way_of_searching_can_be_asked_for(
    trained: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", str(trained), "1 2 3", *options]) == 0
    assert capsys.readouterr().out == "one two three\n"


def test_n_best_come_numbered_and_scored(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(trained), "1 2 3\n5", "--n-best", "3"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["1"] * 3 + ["2"] * 3
    assert rows[0][2] == "one two three" and float(rows[0][1]) >= float(rows[1][1])


def test_json_lines_hold_text_and_score(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(trained), "6", "--json", "--scores"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["line"] == 1 and table["translations"][0]["text"] == "six"


def test_score_says_how_good_with_signature(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_digits(tmp_path, 50)
    assert main(["score", str(trained), *data, "--json", "--output", str(tmp_path / "out")]) == 0
    table = json.loads(capsys.readouterr().out)
    bleu = table["bleu"]
    assert bleu["value"] > 95 and "tok:13a" in bleu["signature"] and bleu["low"] <= bleu["value"] <= bleu["high"] + 1e-6
    assert table["perplexity"] < 2 and len((tmp_path / "out").read_text().splitlines()) == 50
    assert main(["score", str(trained), *data, "--tokenize", "none", "--metrics", "bleu,chrf", "--beam", "2"]) == 0
    shown = capsys.readouterr().out
    assert "tok:none" in shown and "TER" not in shown


def test_check_reports_and_estimates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--set", "model.width=16", "--set", "model.inner=16", "--set", "model.depth=1", "--threads", "1"]
    assert main(["check", *write_digits(tmp_path, 100), "--json", *small, "--set", "train.batch_tokens=64"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["pairs"] == 100 and table["estimate"]["tokens_per_second"] > 0
    assert main(["check", *write_digits(tmp_path, 100), "--no-estimate"]) == 0
    assert "100" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "stdin", pytest.param("builtin", marks=pytest.mark.long)])
def test_training_reads_every_format(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(str(n), " ".join(str(n))) for n in range(60)]
    path = tmp_path / f"data.{kind}"
    text = {
        "tsv": "".join(f"{a}\t{b}\n" for a, b in rows),
        "csv": "id,word,number\n" + "".join(f"{i},{b},{a}\n" for i, (a, b) in enumerate(rows)),
        "jsonl": "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in rows),
    }
    path.write_text(text.get(kind, ""))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text["tsv"].encode())))
    data = {"stdin": "-", "builtin": "builtin:en-fr"}.get(kind, str(path))
    columns = ["--columns", "number,word"] if kind == "csv" else []
    assert main(["train", data, "--to", str(tmp_path / "m"), *columns, *SETTINGS, "--steps", "2"]) == 0
    assert (tmp_path / "m" / "model.safetensors").exists()


def test_options_recipe_and_set_meet_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("[train]\nwarm_up = 77\nrate = 0.5\n")
    arguments = ["--recipe", str(tmp_path / "recipe.toml"), "--model", "transformer", "--size", "tiny", "--seed", "5"]
    data = write_digits(tmp_path, 60)
    assert (
        main(["train", *data, "--valid", *data, "--to", str(tmp_path / "m"), *arguments, *SETTINGS, "--steps", "2"])
        == 0
    )
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["train"]["seed"] == 5 and config["train"]["steps"] == 2
    assert config["train"]["warm_up"] == 20, "--set wins over the recipe"


# Hostile and mistaken input: one line that says what to do, a code that is not 0, and nothing overwritten.


def folder_with(trained: Path, tmp_path: Path, file: str, content: bytes | None) -> Path:
    """A copy of the trained folder in which one file is replaced or missing."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in trained.iterdir():
        if path.is_file():
            (broken / path.name).write_bytes(path.read_bytes())
    (broken / file).unlink()
    if content is not None:
        (broken / file).write_bytes(content)
    return broken


BROKEN_FOLDERS = [
    ("config.json", None),
    ("config.json", b""),
    ("config.json", b"[]"),
    ("config.json", b'{"format": 99}'),
    ("config.json", b'{"format": 1, "model": {"name": "transformer", "width": 9999}}'),
    ("config.json", b'{"format": 1, "model": {"widht": 128}}'),
    ("config.json", b"\xff\xfe"),
    ("model.safetensors", None),
    ("model.safetensors", b""),
    ("model.safetensors", b"\x80\x02}q\x00." * 10),
    ("model.safetensors", b"\xff" * 64),
    ("tokenizer.json", None),
    ("tokenizer.json", b"{"),
    ("tokenizer.json", b'{"kind": "words", "symbols": []}'),
]


@pytest.mark.parametrize(("file", "content"), BROKEN_FOLDERS, ids=str)
def test_a_broken_model_folder_is_explained(
    trained: Path, tmp_path: Path, file: str, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = folder_with(trained, tmp_path, file, content)
    refused(["translate", str(broken), "1 2"], capsys, says=str(broken))


def test_a_cut_model_file_is_explained(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (trained / "model.safetensors").read_bytes()
    broken = folder_with(trained, tmp_path, "model.safetensors", whole[:-7])
    refused(["translate", str(broken), "1 2"], capsys, says="Copy the folder again")


Mistake = Callable[[Path, Path], tuple[list[str], str]]
MISTAKES: dict[str, Mistake] = {
    "no such model": lambda t, d: (["translate", str(d / "nowhere"), "x"], "Train one with"),
    "a file as model": lambda t, d: (["translate", write_digits(d)[0], "x"], "no model folder"),
    "text and input": lambda t, d: (["translate", str(t), "x", "--input", "y"], "Give one of them"),
    "no such input": lambda t, d: (["translate", str(t), "--input", str(d / "no.txt")], "no.txt"),
    "output nowhere": lambda t, d: (["translate", str(t), "1", "--output", str(d / "no" / "out")], "Cannot write"),
    "beam of none": lambda t, d: (["translate", str(t), "1", "--beam", "0"], "decode.beam"),
    "n-best over beam": lambda t, d: (["translate", str(t), "1", "--beam", "2", "--n-best", "3"], "--beam 3"),
    "no such device": lambda t, d: (["translate", str(t), "1", "--device", "tpu"], "tpu"),
    "no such tokenizer": lambda t, d: (["score", str(t), *write_digits(d), "--tokenize", "nine"], "none"),
    "no such metric": lambda t, d: (["score", str(t), *write_digits(d), "--metrics", "blue"], "bleu"),
    "missing data": lambda t, d: (["train", str(d / "a.en"), str(d / "a.fr"), "--to", str(d / "m")], "a.en"),
    "unknown format": lambda t, d: (["train", write_digits(d)[0], "--to", str(d / "m")], "tsv"),
    "unknown builtin": lambda t, d: (["train", "builtin:en-fx", "--to", str(d / "m")], "builtin:en-fr"),
    "unknown setting": lambda t, d: (
        ["train", *write_digits(d), "--to", str(d / "m"), "--set", "train.raet=1"],
        "train.rate",
    ),
    "no such recipe": lambda t, d: (
        ["train", *write_digits(d), "--to", str(d / "m"), "--recipe", "no.toml"],
        "no.toml",
    ),
    "no such size": lambda t, d: (["train", *write_digits(d), "--to", str(d / "m"), "--size", "huge"], "tiny"),
    "no such model name": lambda t, d: (
        ["train", *write_digits(d), "--to", str(d / "m"), "--model", "bort"],
        "transformer",
    ),
    "a file as folder": lambda t, d: (["train", *write_digits(d), "--to", write_digits(d)[1]], "Name a folder"),
    "too few pairs": lambda t, d: (["train", *write_digits(d, 5), "--to", str(d / "m"), *SETTINGS], "Give --valid"),
    "stdin to validate": lambda t, d: (["train", *write_digits(d), "--valid", "-", "--to", str(d / "m")], "file"),
    "three files": lambda t, d: (["check", *write_digits(d), "x"], "two"),
    "other settings": lambda t, d: (["train", *write_digits(d.parent, 400), "--to", str(t)], "settings"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line(
    mistake: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    arguments, says = MISTAKES[mistake](trained, place)
    refused(arguments, capsys, says)
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file() and path.name != ".lock"} == {
        path: content for path, content in before.items() if path.name != ".lock"
    }


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], says: str) -> None:
    code = main(arguments)
    printed = capsys.readouterr()
    last = printed.err.splitlines()[-1]
    assert code != 0 and printed.out == ""
    assert last.startswith("regard: ") and says in last
    assert "Traceback" not in printed.err


def test_a_reader_that_closes_early_is_no_fault(trained: Path) -> None:
    command = f"yes '1 2 3' | head -3000 | {sys.executable} -m regard translate {trained} | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert done.stdout == "one two three\n" and "Traceback" not in done.stderr


def test_nor_is_one_that_has_seen_enough_of_the_settings() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "regard", "train", "--settings"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_that_breaks_because_of_ctrl_c_is_no_end_of_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_options: object) -> int:
        try:
            raise KeyboardInterrupt
        finally:
            raise BrokenPipeError  # as a pool's may, when its processes are ended

    monkeypatch.setattr("regard.cli.models.run", interrupted)
    assert main(["models"]) == 130
    assert capsys.readouterr().err == "regard: interrupted\n"
