"""Several models on the same terms: what is compared, what is refused, and that nothing is done twice."""

import contextlib
import csv
import io
import json
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from conftest import write_digits
from regard.cli.main import main
from regard.config import read
from regard.errors import ConfigError
from regard.experiments.compare import comparison
from regard.experiments.compare.comparison import compare
from regard.experiments.compare.length_buckets import halves, quantiles
from regard.experiments.compare.match_parameters import parameters
from regard.experiments.compare.model_facts import KINDS
from regard.experiments.compare.plan import Request, chosen, make_plan
from regard.experiments.compare.table import said
from regard.experiments.compare.worker import Order, carry_out, learning_curve, peak_memory, tokens_per_second
from regard.training.log import read_log

WRITERS = chosen("all")
RECURRENT = [
    "text.tokenizer=words", "model.width=32", "model.depth=1", "model.dropout=0", "train.batch_tokens=256",
    "train.rate=0.02", "train.warm_up=5", "train.threads=1", "train.precision=float32", "decode.beam=1",
]  # fmt: skip
QUICK = [*RECURRENT, "model.heads=2", "model.inner=64"]
OPTIONS = [part for setting in RECURRENT for part in ("--set", setting)]


def in_process(order: Order, path: Path, stop: Callable[[], bool]) -> str | None:
    """What a child process does, without one: starting torch anew takes seconds."""
    order.write(path)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = carry_out(Order.read(path), stop)
    return out.getvalue().strip() if code else None


def never(*_: Any) -> str | None:
    raise AssertionError("nothing was to be trained")


def request(folder: Path, **changes: Any) -> Request:
    """Two small models on the digits."""
    wanted = Request(
        data=write_digits(folder, 200), valid=write_digits(folder, 30, "valid"), test=write_digits(folder, 41, "test"),
        to=folder / "compared", models="seq2seq,transformer", steps=30, settings=QUICK,
    )  # fmt: skip
    return replace(wanted, **changes)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A comparison of two models and its table. Read it, do not change it."""
    folder = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "in_child", in_process)
        result = compare(request(folder, command="regard compare these"))
    assert not result.stopped and not result.failed
    yield folder, result.table


def test_every_model_that_writes_can_be_compared() -> None:
    assert set(WRITERS) == set(KINDS)
    assert not {"bert", "classifier"} & set(WRITERS)


@pytest.mark.parametrize(("vocabulary", "size"), [(40, "tiny"), (2000, "tiny"), (37000, "tiny"), (8000, "small")])
def test_matched_models_have_as_many_parameters_within_a_tenth(vocabulary: int, size: str) -> None:
    found = make_plan(Request(data=[], to=Path(), size=size)).contenders(vocabulary)
    (wanted,) = (one.parameters for one in found if one.name == "transformer")
    assert wanted == parameters(read({"model": {"size": size, "norm": "before"}}).model, vocabulary)
    for one in found:
        assert one.parameters == parameters(one.config.model, vocabulary)
        assert abs(one.parameters - wanted) <= 0.1 * wanted, one.name


def test_unmatched_models_keep_their_own_sizes() -> None:
    for one in make_plan(Request(data=[], to=Path(), match="none")).contenders(1000):
        own = read({"model": {"name": one.name, **KINDS[one.name].settings.get("model", {})}}).model
        assert one.config.model == own


def test_without_a_transformer_the_first_model_is_the_measure() -> None:
    plan = make_plan(Request(data=[], to=Path(), models="conv,gru", settings=["conv:model.width=96"]))
    first, second = plan.contenders(500)
    assert first.config.model.width == 96
    assert abs(second.parameters - first.parameters) <= 0.1 * first.parameters


def test_settings_come_from_us_then_the_recipe_then_all_then_one(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[model]\nname = "conv"\n[train]\nwarm_up = 7\nrate = 0.5\nsteps = 9\n[text]\nvocabulary = 99\n')
    settings = ["train.warm_up=8", "model.heads=2", "conv:train.warm_up=9"]
    asked = Request(data=[], to=Path(), models="seq2seq,conv,lm", recipe=recipe, settings=settings)
    configs = make_plan(asked).configs
    assert [configs[name].train.warm_up for name in ("seq2seq", "conv", "lm")] == [8, 9, 8]
    assert {config.train.rate for config in configs.values()} == {0.5}
    assert {config.train.steps for config in configs.values()} == {9}, "a budget in the recipe is a budget"
    assert len({config.text for config in configs.values()}) == 1 and configs["lm"].text.vocabulary == 99
    assert configs["lm"].model == read({"model": {"name": "lm", "heads": 2}}).model
    rates = {name: config.train.rate for name, config in make_plan(replace(asked, recipe=None)).configs.items()}
    assert rates["conv"] > rates["seq2seq"], "each kind has a rate that suits it"


def test_a_budget_is_five_minutes_unless_told() -> None:
    asked = Request(data=[], to=Path())
    assert make_plan(asked).budget == "5 minutes"
    assert make_plan(replace(asked, minutes=0.5)).budget == "0.5 minutes"
    assert make_plan(replace(asked, steps=70)).budget == "70 steps"


REFUSED = {
    "unknown model": ({"models": "seq2seq,transfromer"}, "Did you mean transformer"),
    "a reader": ({"models": "bert"}, "does not write"),
    "no model": ({"models": " , "}, "names no model"),
    "two budgets": ({"minutes": 1.0, "steps": 5}, "Give one"),
    "no time": ({"minutes": 0.0}, "more than 0"),
    "a text for one model": ({"settings": ["lm:text.vocabulary=9"]}, "same for all"),
    "a budget for one model": ({"settings": ["lm:train.steps=9"]}, "same for all"),
    "a setting of a model that is not there": ({"models": "lm", "settings": ["conv:train.rate=1"]}, "not compared"),
    "a setting of no model": ({"models": "gru", "settings": ["model.heads=2"]}, "model.heads"),
    "a model by setting": ({"settings": ["model.name=lm"]}, "--models"),
    "a wrong value": ({"settings": ["train.rate=fast"]}, "train.rate"),
    "no such size": ({"size": "huge"}, "tiny"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_compared_is_refused(case: str) -> None:
    changes, says = REFUSED[case]
    with pytest.raises(ConfigError, match=re.escape(says)):
        make_plan(Request(**{"data": [], "to": Path(), **changes}))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["gru:model.width=64"], "--match none"),
        (["transformer:model.width=4", "universal:model.heads=16"], "cannot be"),
    ],
)
def test_a_width_that_cannot_be_matched_is_refused(settings: list[str], says: str) -> None:
    plan = make_plan(Request(data=[], to=Path(), models="gru,universal,transformer", settings=settings))
    with pytest.raises(ConfigError, match=says):
        plan.contenders(50)


MISTAKES: dict[str, Callable[[Path], tuple[list[str], str]]] = {
    "standard input": lambda d: (["-", "--to", str(d / "c")], "Save it to a file"),
    "no such data": lambda d: ([str(d / "no.tsv"), "--to", str(d / "c")], "no.tsv"),
    "no such test": lambda d: (["builtin:copy", "--test", str(d / "no.tsv"), "--to", str(d / "c")], "no.tsv"),
    "a folder of something else": lambda d: (["builtin:copy", "--to", str(d)], "stay untouched"),
    "a file as folder": lambda d: (["builtin:copy", "--to", str(d / "note.txt")], "Name a folder"),
    "a folder that cannot be": lambda d: (["builtin:copy", "--to", str(d / "note.txt" / "c")], "Cannot write"),
    "no such tokenizer": lambda d: (["builtin:copy", "--tokenize", "nine", "--to", str(d / "c")], "nine"),
    "a reader": lambda d: (["builtin:copy", "--models", "bert", "--to", str(d / "c")], "does not write"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_and_nothing_is_touched(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note.txt").write_text("mine")
    arguments, says = MISTAKES[mistake](tmp_path)
    assert main(["compare", *arguments]) not in (0, 1)
    printed = capsys.readouterr()
    assert printed.err.startswith("regard: ") and printed.err.count("\n") == 1 and says in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"] and (tmp_path / "note.txt").read_text() == "mine"


def test_table_csv_and_page_say_the_same(compared: tuple[Path, dict[str, Any]]) -> None:
    folder, table = compared[0] / "compared", compared[1]
    assert json.loads((folder / "table.json").read_text()) == table
    with open(folder / "table.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["model"] for line in lines] == [row["model"] for row in table["rows"]]
    for line, row in zip(lines, table["rows"], strict=True):
        assert float(line["bleu"]) == row["bleu"]["value"] and float(line["chrf_high"]) == row["chrf"]["high"]
        assert float(line["bleu_long"]) == row["halves"][1]["bleu"]["value"]
        for name in ("parameters", "exact_match", "perplexity", "tokens_per_second", "sentences_per_second"):
            assert float(line[name]) == row[name], name
    page = (folder / "compare.html").read_text()
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert json.loads(data) == {"table": table, "paths": None}


def test_a_row_is_what_the_model_folder_gives(compared: tuple[Path, dict[str, Any]]) -> None:
    folder, table = compared
    scores = [row["bleu"]["value"] for row in table["rows"]]
    assert scores == sorted(scores, reverse=True)
    for row in table["rows"]:
        home = folder / "compared" / row["model"]
        report = regard.score(home, [str(folder / "test.num"), str(folder / "test.en")], device="cpu")
        assert report.scores["bleu"].value == pytest.approx(row["bleu"]["value"])
        assert report.perplexity == pytest.approx(row["perplexity"])
        loss = [
            line["valid_loss"] for line in read_log(home / "log.jsonl") if "seconds" in line and "valid_loss" in line
        ]
        assert [point["loss"] for point in row["curve"]["valid"]] == loss
        assert sum(half["sentences"] for half in row["halves"]) == table["test"]["sentences"] == 41


def test_all_models_had_the_same_tokenizer_and_text(compared: tuple[Path, dict[str, Any]]) -> None:
    folder, table = compared
    homes = [folder / "compared" / row["model"] for row in table["rows"]]
    assert len({(home / "tokenizer.json").read_bytes() for home in homes}) == 1
    assert {row["tokenizer"] for row in table["rows"]} == {table["tokenizer"]["hash"]}
    ready = "cache/tokens/train/00000.ids"
    assert all((home / ready).samefile(folder / "compared" / ready) for home in homes), "made ready once for all"
    configs = [json.loads((home / "config.json").read_text()) for home in homes]
    assert configs[0]["text"] == configs[1]["text"] and configs[0]["about"]["text"] == configs[1]["about"]["text"]


def test_what_was_measured_is_not_measured_again(
    compared: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, table = compared
    monkeypatch.setattr(comparison, "in_child", never)
    again = compare(request(folder, command="regard compare these")).table
    assert again == table
    with pytest.raises(AssertionError, match="trained"):
        compare(request(folder, steps=31))


def test_another_test_set_is_measured_without_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "in_child", in_process)
    first = compare(request(tmp_path, models="gru", settings=RECURRENT)).table["rows"][0]
    log = (tmp_path / "compared" / "gru" / "log.jsonl").read_bytes()
    table = compare(request(tmp_path, models="gru", settings=RECURRENT, test=())).table
    assert table["test"]["held_out"] and "validation pairs" in table["test"]["name"]
    assert table["test"]["sentences"] == 30 and table["rows"][0]["perplexity"] != first["perplexity"]
    assert table["rows"][0]["peak_memory"] == first["peak_memory"], "of training, which was not repeated"
    assert (tmp_path / "compared" / "gru" / "log.jsonl").read_bytes() == log


def test_a_folder_keeps_the_terms_it_began_with(
    compared: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = compared
    data = [str(folder / "train.num"), str(folder / "train.en")]
    arguments = ["compare", *data, "--to", str(folder / "compared"), *OPTIONS, "--set", "text.vocabulary=15"]
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert "text.vocabulary 8000 -> 15" in told and "other text" in told, "and no --valid was given this time"


def test_one_failure_does_not_end_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison, "in_child", in_process)
    data = write_digits(tmp_path, 200)
    arguments = ["compare", *data, "--to", str(tmp_path / "c"), "--models", "gru,rnn", "--steps", "30", *OPTIONS]
    too_much = ["--set", "gru:train.rate=1000", "--set", "gru:train.weight_decay=1000"]
    assert main([*arguments, *too_much]) == 1
    out = capsys.readouterr().out
    table = json.loads((tmp_path / "c" / "table.json").read_text())
    assert [(row["model"], bool(row["failed"])) for row in table["rows"]] == [("rnn", False), ("gru", True)]
    assert "not finite" in table["rows"][1]["failed"] and "gru failed" in out and "rnn ★" in out


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'No luck.'; exit 70", "No luck."),
        ("exit 9", "code 9"),
        ("kill -9 $$", "SIGKILL, perhaps"),
        ("", "left before"),
    ],
)
def test_a_worker_that_ends_badly_is_a_row_that_says_so(
    script: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\n{script}\n")
    worker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(worker))
    result = compare(request(tmp_path, models="gru", settings=RECURRENT))
    assert result.failed == ["gru"] and says in result.table["rows"][0]["failed"]


def test_stopped_it_saves_and_tells_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seldom = ["train.validate_steps=100000", "train.checkpoint_steps=100000", "train.log_steps=1"]
    asked = request(tmp_path, models="gru,rnn", valid=(), test=(), settings=[*RECURRENT, *seldom])
    options = [part for setting in asked.settings for part in ("--set", setting)]
    arguments = [*asked.data, "--to", str(asked.to), "--models", "gru,rnn", *options, "--steps", "100000"]
    command = [sys.executable, "-m", "regard", "compare", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "step 1 " in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait() == 130
    assert f"regard compare {asked.data[0]}" in rest
    (saved,) = (int(path.name.removeprefix("step-")) for path in (asked.to / "gru" / "checkpoints").glob("step-*"))
    assert not (asked.to / "rnn").exists()
    monkeypatch.setattr(comparison, "in_child", in_process)
    rows = compare(replace(asked, steps=saved + 40)).table["rows"]
    assert {row["model"]: row["step"] for row in rows} == {"gru": saved + 40, "rnn": saved + 40}
    assert f"gru         going on from step {saved:,}\n" in capsys.readouterr().err


def test_lengths_are_parted_into_like_shares() -> None:
    lengths = np.random.default_rng(1).integers(1, 40, 300).tolist()
    median, both = halves(lengths)
    parts = quantiles(lengths)
    assert median == sorted(lengths)[149] and [half.longest <= median for half in both] == [True, False]
    for buckets in (both, parts):
        assert sorted(number for bucket in buckets for number in bucket.numbers) == list(range(300))
        assert all(a.longest < b.shortest for a, b in pairwise(buckets))
    assert len(parts) == 5 and all(45 <= len(part.numbers) <= 75 for part in parts)
    assert len(quantiles([3] * 7)) == len(halves([3] * 7)[1]) == 1


LOG = [
    {"step": 10, "loss": 4.0, "tokens": 1000, "tokens_per_second": 500.0, "seconds": 2.0},
    {"step": 20, "loss": 3.0, "tokens": 3000, "tokens_per_second": 250.0, "seconds": 11.0},
    {"step": 15, "valid_loss": 3.5, "valid_bleu": 1.0, "seconds": 6.0},
    {"step": 30, "valid_loss": 2.5, "valid_bleu": 2.0, "seconds": 15.0},
    {"step": 30, "averaged": [10, 20], "valid_loss": 2.4, "valid_bleu": 2.1},
]


def test_the_curve_and_the_speed_are_those_of_the_log() -> None:
    assert tokens_per_second(LOG) == pytest.approx(3000 / (1000 / 500 + 2000 / 250))
    assert tokens_per_second(LOG[2:]) is None
    curve = learning_curve(LOG)
    assert [(point["step"], point["tokens"]) for point in curve["valid"]] == [(15, 2000.0), (30, 4500.0)]
    assert [point["loss"] for point in curve["train"]] == [4.0, 3.0]


def test_memory_is_what_the_process_held_at_its_peak() -> None:
    assert peak_memory() == pytest.approx(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, rel=0.05)


def row(model: str, value: float, short: float, long: float, **other: Any) -> dict[str, Any]:
    """A row of a table, as far as sentences need it."""
    score = {"value": value, "low": value - 1, "high": value + 1}
    parts = [{"sentences": n, "bleu": {"value": v}} for n, v in ((60, short), (40, long))]
    return {"model": model, "path_across": KINDS[model].across, "failed": None, "bleu": score, "halves": parts, **other}


def test_sentences_say_what_the_table_shows() -> None:
    rows = [row("luong", 80, 82, 78), row("conv", 79, 80, 77.5), row("seq2seq", 50, 66.5, 30)]
    table = {"metric": "bleu", "test": {"median": 9}, "rows": [*rows, {"model": "lm", "failed": "Too large."}]}
    best, long, short, change, failed = said(table)
    assert best == "luong has the best BLEU, 80.0 [79.0, 81.0]; the intervals of conv overlap with it."
    assert "the 40 sentences longer than the median (9 tokens)" in long
    assert "luong 78.0 and conv 77.5; seq2seq, which has none, 30.0" in long
    assert "the 60 sentences of at most 9 tokens" in short and "66.5" in short
    assert "−36.5 for seq2seq" in change and "−2.5 for conv" in change
    assert failed == "lm failed: Too large."
