"""Whatever characters a text holds, it is read: half a character becomes U+FFFD at the door, and nothing falls over.

`make torture PART=unicode` draws 2,000 texts; here are the worst ones.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import regard
from conftest import QUICK, write_digits
from damage import bounded
from regard.cli.main import main
from regard.config import TextConfig
from regard.interpret.exhibit import look
from regard.text.arguments import mended
from regard.text.tokenizers.tokenizer import Tokenizer, learn_tokenizer
from regard.text.tokenizers.wordpiece import WordPiece
from untrained import SENTENCES, made

BAD = ["caf\udce9", "half \ud83d", "\ude00\ud83d", "a\udc80b <mask>"]
ODD = [
    "\0",
    "a\0b",
    "\ufffe",
    "\uffff",
    "e" + "\u0301" * 1000,
    "\u202egnirts\u202c",
    "\U0001f469\u200d" * 9,
    "\u2028a\u2029",
]
ODD += ["\u2581\u2581", "\u2424", "\ue000"]
KINDS = {
    "bpe": {},
    "unigram": {},
    "bpe bytes": {"byte_fallback": True, "vocabulary": 330},
    "bpe none": {"normalize": "none", "lowercase": True},
    "words": {},
    "characters": {},
}


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "wordpiece":
        return WordPiece(["the", "cat", "caf", "##é", "\ufffd"], lowercase=True, strip_accents=True, split_chinese=True)
    config = TextConfig(**{"tokenizer": kind.split()[0], "vocabulary": 60, **KINDS[kind]})  # type: ignore[arg-type]
    return learn_tokenizer(SENTENCES, config, mask=True)


@pytest.mark.parametrize("kind", [*KINDS, "wordpiece"])
@pytest.mark.parametrize("text", BAD + ODD)
def test_every_tokenizer_cuts_any_text_and_takes_half_a_character_for_the_replacement(kind: str, text: str) -> None:
    ours = tokenizer(kind)
    assert ours.encode([text]) == ours.encode([mended(text)])
    assert mended(ours.decode(ours.encode([text])[0])) == ours.decode(ours.encode([text])[0])
    if kind in ("bpe", "unigram", "bpe bytes"):
        assert ours.sample([text], 0.5, seed=1) == ours.sample([mended(text)], 0.5, seed=1)


@bounded(200)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
def test_what_is_mended_can_be_written_as_utf8_and_nothing_else_changes(text: str) -> None:
    found = mended(text)
    found.encode()
    pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert found == pairs and mended(found) == found
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert found == text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    @cache
    def of(name: str, job: str = "", subwords: str = "bpe") -> Path:
        return made(name, tmp_path_factory.mktemp(name) / "model", job, subwords=subwords)

    return of


COMMANDS = {
    "translate": ("transformer", "", ["TEXT", "--json"]),
    "translate by torch": ("gru", "", ["TEXT", "--prefix", "TEXT", "--max-length", "3", "--n-best", "2"]),
    "write": ("lm", "text", ["TEXT", "--max-length", "3"]),
    "fill": ("bert", "", ["TEXT <mask>"]),
    "embed": ("bert", "", ["TEXT"]),
    "classify": ("classifier", "", ["TEXT"]),
    "see": (
        "transformer",
        "",
        ["TEXT", "TEXT.", "--target", "TEXT", "--between", "TEXT", "TEXT", "--no-knock-out", "--to", "OUT.html"],
    ),
    "see one": ("transformer", "", ["TEXT", "--terminal"]),
    "see bert": ("bert", "", ["TEXT <mask>", "--to", "OUT.html"]),
    "explain": ("transformer", "", ["TEXT", "--target", "TEXT"]),
}


@pytest.mark.parametrize("subwords", ["bpe", "unigram"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_half_a_character(
    command: str, subwords: str, folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, job, given = COMMANDS[command]
    path = folder(name, job, subwords)
    for bad, good in (("caf\udce9", "caf\ufffd"), ("\ud83d!", "\ufffd!"), ("\ud83d\ude00", "😀")):
        said = []
        for text in (bad, good):
            out = tmp_path / "out.html"
            options = [one.replace("TEXT", text).replace("OUT.html", str(out)) for one in given]
            code = main([command.split()[0], str(path), *options])
            said.append((code, capsys.readouterr(), out.read_text() if out.exists() else ""))
        assert said[0] == said[1] and said[0][0] in (0, 65), said[0]  # 65: what --between names is not in the text


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("subwords", ["bpe", "unigram", ""])
def test_every_method_reads_any_text_as_what_it_becomes(engine: str, subwords: str, folder) -> None:
    texts = [text[:90] for text in BAD + ODD]
    whole = list(map(mended, texts))
    translator = regard.load(folder("transformer", "", subwords), engine=engine, device="cpu")
    assert translator.n_best(texts) == translator.n_best(whole) == list(translator.stream(texts))
    reader = regard.load(folder("bert", "", subwords), engine=engine, device="cpu")
    labeller = regard.load(folder("classifier", "", subwords), engine=engine, device="cpu")
    assert np.array_equal(reader.embed(texts), reader.embed(whole)) and np.isfinite(reader.embed(texts)).all()
    assert reader.fill(texts) == reader.fill(whole) and labeller.classify(texts) == labeller.classify(whole)
    json.dumps([reader.fill(texts), labeller.classify(texts), translator.n_best(texts)], ensure_ascii=False).encode()


def test_what_shows_and_writes_reads_any_text(folder) -> None:
    author = regard.load(folder("lm", "text"), device="cpu")
    for text in (BAD[0], BAD[3]):
        assert author.write(text, max_length=3, beam=1) == author.write(mended(text), max_length=3, beam=1)
        author.attention(text).html().encode()
    look([regard.load(folder("transformer"), device="cpu")], BAD[:2], knock_out=False).html().encode()


def test_a_probe_of_half_a_character_is_followed_as_its_replacement(tmp_path: Path) -> None:
    settings = {**QUICK, "train.steps": 5, "train.probe": "1 caf\udce9", "text.tokenizer": "bpe", "text.vocabulary": 40}
    regard.train(write_digits(tmp_path, 60), tmp_path / "model", settings=settings)
    assert (tmp_path / "model" / "model.safetensors").exists()


def test_half_a_character_in_a_table_of_running_text_is_scored(tmp_path: Path, folder, capsys: Any) -> None:
    (tmp_path / "test.jsonl").write_text('{"text": "the caf\\ud83d"}\n')
    assert main(["score", str(folder("lm", "text")), str(tmp_path / "test.jsonl")]) == 0
