"""What a run keeps of itself for the training page: it says what happened, costs the training nothing, and survives kills."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import QUICK, SMALL, small, write_digits
from regard.config import parse_set, read
from regard.decode.translator import Translator
from regard.errors import ConfigError, FolderError, TraceError
from regard.folder import checkpoints
from regard.folder.weights import load_model, load_weights
from regard.interpret import probe
from regard.interpret.pack import unpack
from regard.interpret.trace import Facts, Trace
from regard.interpret.training_history import History, history_of
from regard.models import build
from regard.models.base import Writer
from regard.system.storage import locked
from regard.text.tokenizers.tokenizer import BEGIN, END, Listed, learn_tokenizer
from regard.training.log import read_log
from regard.training.run import train


def run(home: Path, to: str = "model", stop: Callable[[], bool] = lambda: False, **settings: Any) -> Path:
    """Digits in words; validated, and saved, every tenth step."""
    given = {**QUICK, "train.validate_steps": 10, **{key.replace("__", "."): value for key, value in settings.items()}}
    train(
        write_digits(home, 120), home / to, read(parse_set(f"{key}={value}" for key, value in given.items())), stop=stop
    )
    return home / to


def after(steps: int) -> Callable[[], bool]:
    calls = iter(range(10**6))
    return lambda: next(calls) >= steps


def seen_in(model: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (model / probe.FILE).read_text().split("\n") if line]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return run(tmp_path_factory.mktemp("digits"), train__ema=0.5)


# What is kept.


def test_every_validation_keeps_samples_and_the_same_words(digits: Path) -> None:
    lines = seen_in(digits)
    assert [line["step"] for line in lines] == [10, 20, 30, 40]
    assert all(len(line["samples"]) == 2 and len(line["samples"][0]) == 3 for line in lines)
    assert all(line["rows"] == lines[0]["rows"] for line in lines), "the target is the reference, whatever is written"
    read_first = [line["samples"][0][0] for line in lines]
    assert len(set(read_first)) == 1


@pytest.mark.parametrize("step", [20, 40])
def test_the_weights_kept_are_those_of_the_model_at_that_step(digits: Path, step: int) -> None:
    line = next(line for line in seen_in(digits) if line["step"] == step)
    model, tokenizer, config, _ = load_model(digits)
    weights = checkpoints.load_tensors(checkpoints.folder_of(digits / "checkpoints", step) / checkpoints.WEIGHTS)
    load_weights(model, weights, digits)
    assert isinstance(model, Writer)
    source, target = line["rows"]["source"]["text"], line["rows"]["target"]["text"]
    trace = Translator(model, tokenizer, config.decode).attention(source, target)
    assert [one["kind"] for one in line["maps"]] == trace.kinds == ["encoder", "decoder", "cross"]
    for kept in line["maps"]:
        (layer,) = kept["layers"]
        true_HQK = trace.map(kept["kind"], 1).weights_HQK
        assert np.abs(np.sqrt(unpack(layer["weights"])) - np.sqrt(true_HQK)).max() <= 0.5 / 255 + 1e-4
        assert true_HQK.std() > 0.01, "weights that are all alike would prove nothing"


def test_looking_changes_nothing_of_the_training(tmp_path: Path) -> None:
    models = [run(tmp_path, "one"), run(tmp_path, "other", train__probe="1 2 3 ||| one two three")]
    texts = [seen_in(model)[0]["rows"]["source"]["text"] for model in models]
    assert texts[0] != texts[1] == "1 2 3"
    one, other = ((model / "model.safetensors").read_bytes() for model in models)
    assert one == other


def test_it_is_cut_back_with_the_log_and_written_again(tmp_path: Path) -> None:
    whole = run(tmp_path, "whole", train__checkpoint_steps=15)
    pieces = tmp_path / "pieces"
    for steps in (12, 3, 9):
        run(tmp_path, "pieces", stop=after(steps), train__checkpoint_steps=15)
        # As if it had been killed after a validation that no checkpoint knows of.
        with open(pieces / probe.FILE, "ab") as file:
            file.write(b'{"step": 99, "samples": []}\n{"step": 100, "sam')
    run(tmp_path, "pieces", train__checkpoint_steps=15)
    assert (whole / probe.FILE).read_bytes() == (pieces / probe.FILE).read_bytes()


def other_job(name: str, home: Path) -> list[str]:
    if name == "classifier":
        (home / "data.tsv").write_text("".join(f"a very {word} day for us\t{word}\n" for word in ("good", "bad") * 40))
        return [str(home / "data.tsv")]
    lines = [f"{number} two three four five six {number + 1}" for number in range(100)]
    (home / "data.txt").write_text("\n\n".join(lines))
    return [str(home / "data.txt")]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("lm", ["decoder"]),
        ("bert", ["encoder"]),
        ("classifier", ["encoder"]),
        ("memory", ["local", "compressed"]),
        ("gru", []),
    ],
)
def test_other_jobs_keep_the_attention_to_a_text_if_the_model_has_any(
    name: str, kinds: list[str], tmp_path: Path
) -> None:
    given = {key: value for key, value in QUICK.items() if not key.startswith("model.")}
    given |= {"model.name": name, "text.longest": 24, "train.steps": 2, "train.validate_steps": 1}
    given |= {f"model.{key}": value for key, value in SMALL[name].items()}
    given |= {"model.next_sentence": "false"} if name == "bert" else {}
    train(other_job(name, tmp_path), tmp_path / "model", read(parse_set(f"{k}={v}" for k, v in given.items())))
    lines = seen_in(tmp_path / "model")
    assert [line["step"] for line in lines] == [1, 2] and all(line["samples"] for line in lines)
    assert [one["kind"] for one in lines[0].get("maps", [])] == kinds
    if kinds:
        assert len(lines[0]["rows"]["text"]["tokens"]) >= probe.SHORTEST
    assert len(history_of(tmp_path / "model").sentences) == bool(kinds)


# Which text is looked at.


@pytest.mark.parametrize(
    ("sources", "targets", "chosen"),
    [
        ([3, 9, 12], [3, 5, 12], 2),  # the first has too few words, the second too few on one side
        ([80, 30, 24], [9, 9, 24], 2),
        ([2, 4, 3], [2, 4, 3], 1),  # none fits: the one that comes nearest
        ([200, 90, 120], [9, 9, 9], 1),
    ],
)
def test_the_first_text_neither_short_nor_long_is_chosen(sources: list[int], targets: list[int], chosen: int) -> None:
    assert probe.fitting(np.array(sources), np.array(targets)) == chosen


def letters() -> Listed:
    found = learn_tokenizer(["abcdefghij" * 2], read({"text": {"tokenizer": "characters"}}).text)
    assert isinstance(found, Listed)
    return found


def test_of_running_text_the_first_document_of_some_length_is_chosen() -> None:
    tokenizer = letters()
    documents = [[BEGIN, *tokenizer.encode([text])[0], END] for text in ("abc", "abcdefgh" * 9, "hgfedcba")]
    stream = np.array([i for document in documents for i in document])
    assert probe.passage(tokenizer, stream) == "abcdefgh" * 3


def test_a_text_of_the_user_s_own_must_not_be_too_long(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.probe has 70 tokens; 64 at most"):
        run(tmp_path, train__probe="1 " * 70)


def test_a_source_alone_is_followed_with_the_model_s_own_translation(tmp_path: Path) -> None:
    model = run(tmp_path, train__probe="4 2")
    lines = seen_in(model)
    assert all(line["rows"]["source"]["text"] == "4 2" for line in lines)
    assert all(len(line["rows"]["target"]["tokens"]) <= 1 + probe.MOST for line in lines)


def test_what_cannot_be_seen_is_said_and_stops_nothing() -> None:
    def look(_: Any) -> Trace:
        raise TraceError("A row does not sum to one.")

    assert probe.recorder(look)(build(small("transformer").model, 9)) == {"problem": "A row does not sum to one."}
    assert probe.recorded(Trace(Facts("rnn"), {}, ())) == {}


# Reading a run.


def log_of(model: Path, name: str) -> Any:
    return np.array([line[name] for line in read_log(model / "log.jsonl") if name in line and "averaged" not in line])


def test_the_history_is_the_log(digits: Path) -> None:
    history = history_of(digits)
    for name in ("loss", "rate", "gradient", "tokens_per_second"):
        assert np.array_equal(history.training[name], log_of(digits, name)) and len(history.training[name]) == 8
    for name in ("loss", "perplexity", "bleu", "chrf"):
        assert [one[name] for one in history.evaluations] == log_of(digits, f"valid_{name}").tolist()
    at = dict(zip(history.training["step"], history.training["tokens"], strict=True))
    assert [one["tokens"] for one in history.evaluations] == [at[step] for step in (10, 20, 30, 40)]
    assert (history.standing, history.step, len(history.sentences)) == ("finished", 40, 1)
    assert history.averaged is not None and history.averaged["steps"] == [30, 40]
    best = [one["loss"] for one in history.evaluations if one["best"]]
    assert best[-1] == min(one["loss"] for one in history.evaluations)


def copied(digits: Path, home: Path) -> Path:
    home.mkdir()
    for name in ("config.json", "log.jsonl", probe.FILE):
        (home / name).write_bytes((digits / name).read_bytes())
    return home


def test_a_line_that_is_just_being_written_does_not_count_yet(digits: Path, tmp_path: Path) -> None:
    half = copied(digits, tmp_path / "half")
    for name in ("log.jsonl", probe.FILE):
        lines = (half / name).read_bytes().splitlines(keepends=True)
        # Cut in the middle of the last line, and then in the middle of a letter of two bytes.
        (half / name).write_bytes(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2] + "é".encode()[:1])
    history = history_of(half)
    assert [one["step"] for one in history.evaluations] == [10, 20, 30, 40] and history.averaged is None
    assert ["weights" in one for one in history.evaluations] == [True, True, True, False]


def test_texts_may_hold_any_break_but_lines_end_only_where_they_end(digits: Path, tmp_path: Path) -> None:
    home = copied(digits, tmp_path / "breaks")
    line = {"step": 10, "samples": [["a\u2028b\x85c\x0bd", "", ""]]}
    (home / probe.FILE).write_text(json.dumps(line, ensure_ascii=False) + "\n")
    assert history_of(home).evaluations[0]["samples"] == line["samples"]


def test_what_is_not_a_number_is_a_gap(digits: Path, tmp_path: Path) -> None:
    home = copied(digits, tmp_path / "gap")
    with open(home / "log.jsonl", "a") as file:
        file.write('{"step": 50, "valid_loss": NaN, "valid_perplexity": Infinity, "best": false, "seconds": 9.0}\n')
    history = history_of(home)
    assert (history.evaluations[-1]["loss"], history.evaluations[-1]["perplexity"]) == (None, None)
    assert "<html" in history.html()


def test_whoever_trains_now_is_noticed(digits: Path, tmp_path: Path) -> None:
    home = copied(digits, tmp_path / "busy")
    assert history_of(home).standing == "finished"
    with locked(home / ".lock"):
        assert history_of(home).standing == "running"
    assert history_of(home).standing == "finished"
    assert history_of(run(tmp_path, "stopped", stop=after(5))).standing == "stopped"


def test_a_changed_probe_is_another_sentence(tmp_path: Path) -> None:
    run(tmp_path, stop=after(26))
    history = history_of(run(tmp_path, train__probe="4 2 ||| four two"))
    assert [one["sentence"] for one in history.evaluations] == [0, 0, 1, 1]
    assert history.sentences[1]["rows"]["source"]["text"] == "4 2"


def test_a_run_from_before_all_this_still_has_its_curves(digits: Path, tmp_path: Path) -> None:
    home = copied(digits, tmp_path / "old")
    (home / probe.FILE).unlink()
    history = history_of(home)
    assert isinstance(history, History) and len(history.evaluations) == 4 and history.sentences == []
    with pytest.raises(FolderError, match="not a model folder"):
        history_of(tmp_path)
