"""Of a prompt only that is cut which does not fit beside what is to be written, and it is said."""

from pathlib import Path
from typing import Any

import pytest

import regard
from regard.cli.main import main
from regard.decode import generator as writing
from regard.decode.generator import Author
from regard.errors import DataError
from untrained import made

PROMPTS = (0, 36, 47, 60, 63, 100)
WINDOW = 64  # begin counted


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Author:
    found: Author = regard.load(made("lm", tmp_path_factory.mktemp("text") / "model", "text"), device="cpu")
    assert found.window == WINDOW
    return found


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Of each page how many tokens were read, and how many at most were to be written."""
    seen: list[tuple[int, int]] = []

    def greedy(model: Any, source: Any, config: Any, prefixes: Any, *_: Any) -> Any:
        seen.append((len(prefixes[0]), config.max_length - len(prefixes[0])))
        return search(model, source, config, prefixes)

    search = writing.greedy
    monkeypatch.setattr(writing, "greedy", greedy)
    return seen


@pytest.mark.parametrize("room", [3, 20, 62, 200])
@pytest.mark.parametrize("tokens", PROMPTS)
def test_a_prompt_is_cut_by_no_more_than_does_not_fit(
    tokens: int, room: int, author: Author, pages: list[tuple[int, int]], caplog: Any
) -> None:
    text = author.write(" ".join("abcdefg"[n % 7] for n in range(tokens)), beam=1, max_length=room, min_length=room)
    assert len(author.tokenizer.encode([text])[0]) == tokens + room
    read, _ = pages[0]
    assert tokens - read <= max(0, tokens + room - (WINDOW - 1))
    assert all(1 <= written <= WINDOW - 1 - read for read, written in pages)
    cut = f"Of the prompt's {tokens} tokens only the last {read} are read"
    assert (cut in caplog.text) == (read < tokens) and len(caplog.records) == (read < tokens)
    assert len(pages) == 1 or tokens + room > WINDOW - 1, "what fits is one page"


def test_a_model_without_a_window_reads_any_prompt_whole(tmp_path: Path, pages: list[tuple[int, int]]) -> None:
    free: Author = regard.load(made("gru", tmp_path / "model", "text"), device="cpu")
    free.write("a " * 1000, beam=1, max_length=3, min_length=3)
    assert pages == [(1000, 3)]


def test_a_prompt_from_a_pipe_need_not_be_utf8(author: Author, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    import io
    import sys

    path = made("lm", tmp_path / "model", "text")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a caf\xe9\n"), "utf-8"))
    assert main(["write", str(path), "-", "--max-length", "2"]) == 0
    assert capsys.readouterr().out.startswith("a caf\ufffd")


def test_a_text_that_would_take_for_ever_to_judge_is_refused(tmp_path: Path) -> None:
    path = made("lm", tmp_path / "model", "text", {"positions": "sinusoidal"})
    with pytest.raises(DataError, match="A text of 20,002 tokens is too long to be judged"):
        regard.load(path, device="cpu").log_probabilities(["a", "a " * 20_000])
