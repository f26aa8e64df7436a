"""Preparing text: the same bytes on disk however often it is interrupted and however many processes do it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from conftest import write_digits
from regard.config import TextConfig, read
from regard.errors import FolderError, TrainingError
from regard.text.corpus import open_corpus
from regard.text.plain_text import open_documents
from regard.text.shards.pair_shards import Shards
from regard.text.shards.prepare_pairs import Prepared, prepare
from regard.text.shards.prepare_text import prepare_text
from regard.text.tokenizers import encoding
from regard.text.tokenizers.tokenizer import Tokenizer, learn_tokenizer

STEPS = {
    "tokenizers.encoding.AT_A_TIME": 10,
    "shards.prepare_pairs.SAVED_EVERY": 50,
    "shards.prepare_text.SAVED_EVERY": 50,
    "shards.pair_shards.PAIRS_IN_A_SHARD": 64,
}
WORDS = read({"text": {"tokenizer": "words", "longest": 3, "held_out": 20}}).text
SAMPLED = read({"text": {"vocabulary": 40, "sampling": 0.1}}).text


class InterruptedError(Exception):
    """Somebody pressed Ctrl-C."""


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in STEPS.items():
        monkeypatch.setattr(f"regard.text.{name}", value)


@pytest.fixture
def many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MANY", 1)
    monkeypatch.setattr(encoding, "CORES", 2)


def quiet(what: str, done: int) -> None:
    """No progress is told."""


def interrupting(calls: int) -> Callable[[str, int], None]:
    """Progress that is told so often and then never again."""
    left = iter(range(calls))

    def progress(what: str, done: int) -> None:
        if next(left, None) is None:
            raise InterruptedError

    return progress


def pairs(
    data: Path, to: Path, config: TextConfig = WORDS, progress: Callable[[str, int], None] = quiet, valid: bool = False
) -> Prepared:
    others = open_corpus(write_digits(data, 100, "valid")) if valid else None
    train = open_corpus(write_digits(data, 400))
    return prepare(train, others, config, to, 1, progress, partial(learn_tokenizer, config=config))


def text(data: Path, to: Path, progress: Callable[[str, int], None] = quiet) -> None:
    files = [file for name in ("a", "b") for file in write_digits(data, 150, name)]
    prepare_text(open_documents(files), None, WORDS, to, 1, progress, partial(learn_tokenizer, config=WORDS))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def go_on(prepare: Callable[..., object], data: Path, to: Path, every: int) -> int:
    """Interrupt again and again; how often it was."""
    for times in range(1000):
        try:
            prepare(data, to, progress=interrupting(every))
        except InterruptedError:
            continue
        return times
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("config", [WORDS, SAMPLED], ids=["words", "sampled"])
@pytest.mark.parametrize("valid", [False, True], ids=["held out", "valid"])
def test_an_interruption_anywhere_changes_nothing(tmp_path: Path, config: TextConfig, valid: bool) -> None:
    calls: list[str] = []
    make = partial(pairs, tmp_path, config=config, valid=valid)
    make(tmp_path / "whole", progress=lambda what, done: calls.append(what))
    assert calls.count("tokenising") == (50 if valid else 40)
    for call in range(0, len(calls), 16):
        with pytest.raises(InterruptedError):
            make(tmp_path / f"at {call}", progress=interrupting(call))
        make(tmp_path / f"at {call}")
        assert content(tmp_path / f"at {call}") == content(tmp_path / "whole")


@pytest.mark.parametrize("make", [pairs, text])
def test_many_interruptions_change_nothing(tmp_path: Path, make: Callable[..., object]) -> None:
    make(tmp_path, tmp_path / "whole")
    assert go_on(make, tmp_path, tmp_path / "again", every=12) > 1
    assert content(tmp_path / "again") == content(tmp_path / "whole")


def test_what_is_safe_is_not_done_again(tmp_path: Path) -> None:
    def never(sentences: list[str]) -> Tokenizer:
        raise AssertionError("the tokenizer is there")

    with pytest.raises(InterruptedError):
        pairs(tmp_path, tmp_path / "tokens", progress=interrupting(25))
    told: list[tuple[str, int]] = []
    train = open_corpus(write_digits(tmp_path, 400))
    prepare(train, None, WORDS, tmp_path / "tokens", 1, lambda *one: told.append(one), never)
    assert next(done for what, done in told if what == "tokenising") > 200


def test_what_was_written_after_the_last_journal_is_cut_off(tmp_path: Path) -> None:
    pairs(tmp_path, tmp_path / "whole")
    with pytest.raises(InterruptedError):
        pairs(tmp_path, tmp_path / "killed", progress=interrupting(30))
    unfinished = tmp_path / "killed.unfinished"
    for file in unfinished.glob("*/*"):
        if file.stem == max(other.stem for other in file.parent.iterdir()):
            file.write_bytes(file.read_bytes() + b"half a pair")
    (unfinished / "train" / "00009.ids").write_bytes(b"a shard that nobody told of")
    (unfinished / ".journal.json.00000001.tmp").write_bytes(b"half a journal")
    pairs(tmp_path, tmp_path / "killed")
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_file_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        pairs(tmp_path, tmp_path / "tokens", progress=interrupting(30))
    (tmp_path / "tokens.unfinished" / "valid" / "00000.ids").write_bytes(b"")
    with pytest.raises(FolderError, match="lost its end"):
        pairs(tmp_path, tmp_path / "tokens")


def test_other_settings_begin_anew(tmp_path: Path) -> None:
    pairs(tmp_path, tmp_path / "whole", SAMPLED)
    with pytest.raises(InterruptedError):
        pairs(tmp_path, tmp_path / "other", WORDS, interrupting(30))
    pairs(tmp_path, tmp_path / "other", SAMPLED)
    assert content(tmp_path / "other") == content(tmp_path / "whole")


KILLED = """
import os, signal, sys
from functools import partial
from pathlib import Path
from regard.config import TextConfig
from regard.text.tokenizers import encoding
from regard.text.shards import prepare_pairs
from regard.text.shards import pair_shards
from regard.text.corpus import open_corpus
from regard.text.tokenizers.tokenizer import learn_tokenizer

encoding.AT_A_TIME, encoding.MANY, encoding.CORES = 10, 1, 2
prepare_pairs.SAVED_EVERY, pair_shards.PAIRS_IN_A_SHARD = 50, 64

def progress(what, done):
    if (what, done) == ("tokenising", 270):
        os.kill(os.getpid(), signal.SIGKILL)

config = TextConfig(tokenizer="words", longest=3, held_out=20)
learn = partial(learn_tokenizer, config=config)
prepare_pairs.prepare(open_corpus(sys.argv[2:]), None, config, Path(sys.argv[1]), 1, progress, learn)
"""


def test_a_killed_process_leaves_what_the_next_goes_on_from(tmp_path: Path) -> None:
    pairs(tmp_path, tmp_path / "whole")
    arguments = [str(tmp_path / "killed"), *write_digits(tmp_path, 400)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")
    journal = json.loads((tmp_path / "killed.unfinished" / "journal.json").read_text())
    assert journal["done"]["tokenised"]["pairs"] == 250
    pairs(tmp_path, tmp_path / "killed")
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


@pytest.mark.parametrize("config", [WORDS, SAMPLED], ids=["words", "sampled"])
def test_many_processes_write_what_one_does(tmp_path: Path, config: TextConfig, request: pytest.FixtureRequest) -> None:
    pairs(tmp_path, tmp_path / "alone", config)
    request.getfixturevalue("many_processes")
    pairs(tmp_path, tmp_path / "together", config)
    assert content(tmp_path / "together") == content(tmp_path / "alone")


def test_other_processes_do_not_wait_for_torch(tmp_path: Path) -> None:
    code = "import sys, regard.text.tokenizers.encoding; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("many_processes")
def test_a_process_that_died_is_told_of_and_what_was_done_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Started(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[call-overload]
            started.append(self)

    def progress(what: str, done: int) -> None:
        if (what, done) == ("tokenising", 100):
            os.kill(started[0].pid, signal.SIGKILL)

    monkeypatch.setattr(subprocess, "Popen", Started)
    with pytest.raises(TrainingError, match=r"ended \(-9\).*same command again"):
        pairs(tmp_path, tmp_path / "tokens", progress=progress)
    assert all(process.poll() is not None for process in started)
    assert len(pairs(tmp_path, tmp_path / "tokens").train) > 0


def test_pairs_are_those_of_the_text(tmp_path: Path) -> None:
    """Read back against the tokenizer itself: what is too long is left out, what is held out is in the other folder."""
    made = pairs(tmp_path, tmp_path / "tokens")
    corpus = dict(open_corpus(write_digits(tmp_path, 400)).pairs())
    fitting = {line for line, pair in corpus.items() if max(map(len, made.tokenizer.encode(pair))) <= WORDS.longest}
    sides: list[Shards] = [made.train, made.valid]
    lines = [[shards.line(number) for number in range(len(shards))] for shards in sides]
    assert len(lines[1]) == 20 and set(lines[0]) == fitting - set(lines[1])
    assert all(side == sorted(side) for side in lines)
    for shards, numbers in zip(sides, lines, strict=True):
        for number, line in enumerate(numbers):
            assert [ids.tolist() for ids in shards.ids(number)] == made.tokenizer.encode(corpus[line])
    assert [made.valid.text(number) for number in range(20)] == [corpus[line] for line in lines[1]]
