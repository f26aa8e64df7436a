"""Running text: read as documents, cut into passages, learned, and gone on with."""

import json
import math
import subprocess
import sys
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import regard
from conftest import QUICK, SMALL
from regard.config import MODEL_CONFIGS, DecodeConfig, TextConfig, parse_set, read
from regard.decode.generator import Author
from regard.errors import ConfigError, DataError, FolderError
from regard.evaluation.perplexity import perplexity
from regard.models import MODELS, build
from regard.models.base import LanguageModel
from regard.text.batching.passages import PassageLoader
from regard.text.corpus import Skips
from regard.text.plain_text import Line, of_document, open_documents
from regard.text.shards.token_stream import Stream
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, Listed, learn_tokenizer
from regard.training.run import train

LANGUAGE_MODELS = [name for name, kind in MODEL_CONFIGS.items() if issubclass(MODELS[kind], LanguageModel)]
VERSE = "one two three four five\nfive four three two one\n"


def write_verses(folder: Path, lines: int = 60) -> list[str]:
    (folder / "verses.txt").write_text(VERSE * (lines // 2))
    return [str(folder / "verses.txt")]


def settings(name: str, **more: Any) -> Any:
    chosen = {key: value for key, value in QUICK.items() if not key.startswith("model.")}
    chosen |= {"model.name": name, "text.longest": 16, "train.batch_tokens": 64, "train.samples": 1}
    chosen |= {f"model.{key}": value for key, value in SMALL[name].items()}
    return read(parse_set(f"{key}={value}" for key, value in {**chosen, **more}.items()))


# Documents.


def lines_of(path: Path, content: str, unit: str) -> list[Line]:
    path.write_text(content)
    return list(open_documents([str(path)], unit=unit).lines())


def test_a_file_a_paragraph_or_a_line_is_a_document(tmp_path: Path) -> None:
    content = "a\nb\n\nc\n"
    assert lines_of(tmp_path / "t.txt", content, "file") == list(of_document("a\nb\n\nc"))
    paragraphs = lines_of(tmp_path / "t.txt", content, "paragraph")
    assert paragraphs == [Line("a\n", False), Line("b", True), Line("c", True)]
    assert lines_of(tmp_path / "t.txt", content, "line") == [Line(text, True) for text in "abc"]


def test_json_lines_are_documents_with_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"body": text}) + "\n" for text in ("a\nb", "c")))
    lines = list(open_documents([str(path)], columns="body").lines())
    assert lines == [Line("a\n", False), Line("b", True), Line("c", True)]


def test_the_built_in_text_is_split_and_english() -> None:
    texts = {split: [line.text for line in open_documents([f"builtin:python{split}"]).lines()] for split in SPLITS}
    assert "statement" in "".join(texts[""])
    assert sum(map(len, texts[""])) > 3 * sum(map(len, texts["/test"])) > 0
    assert len({open_documents([f"builtin:python{split}"]).fingerprint() for split in SPLITS}) == 3


SPLITS = ("", "/valid", "/test")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["nothing.txt"], "no file"),
        (["builtin:pyton"], "builtin:python"),
        (["blank.txt"], "holds no text"),
        (["pairs.tsv"], "is a table"),
        (["keys.jsonl"], "--columns"),
        (["broken.jsonl"], "not valid JSON"),
        (["-"], "Save it to a file"),
    ],
)
def test_text_that_cannot_be_used_is_refused(
    names: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "blank.txt": " \n \n",
        "pairs.tsv": "a\tb\n",
        "keys.jsonl": '{"words": "a"}\n',
        "broken.jsonl": "{\n",
    }.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=says):
        list(open_documents(names).lines())


@pytest.mark.parametrize("kind", ["bpe", "words", "characters"])
def test_line_breaks_survive_the_tokenizer(kind: str) -> None:
    config = TextConfig(tokenizer=kind, vocabulary=40)  # type: ignore[arg-type]
    tokenizer = learn_tokenizer([VERSE, "five\n"] * 10, config)
    for text in ("one two\nthree", "\none", "five\n", "two\n\nfour"):
        (ids,) = tokenizer.encode([text])
        assert tokenizer.decode(ids) == text


# Passages.


def loader(tokens: int, length: int = 8, rows: int = 4, **settings: bool) -> PassageLoader:
    stream = Stream(np.arange(100, 100 + tokens), bytes=tokens)
    return PassageLoader(stream, length, length * rows, seed=3, **{"carried": False, **settings})


@pytest.mark.parametrize("tokens", [5, 8, 9, 33, 200, 257])
def test_every_word_but_the_first_is_predicted_once_an_epoch(tokens: int) -> None:
    for epoch in range(3):
        ids = [batch.ids_BT[:, 1:] for batch in loader(tokens).batches(epoch)]
        predicted = sorted(int(i) for part in ids for i in part.flatten() if i != PAD)
        assert predicted == list(range(101, 100 + tokens))


def test_passages_are_cut_and_ordered_anew_each_epoch_but_alike_each_time() -> None:
    first, again, second = ([b.ids_BT.tolist() for b in loader(200).batches(epoch)] for epoch in (0, 0, 1))
    assert first == again != second
    still = loader(200, shuffle=False)
    assert [b.numbers for b in still.batches(0)] == [b.numbers for b in still.batches(1)]


def test_an_epoch_can_be_taken_up_in_the_middle() -> None:
    for carried in (False, True):
        whole = [b.ids_BT.tolist() for b in loader(200, carried=carried).batches(1)]
        assert [b.ids_BT.tolist() for b in loader(200, carried=carried).batches(1, first=2)] == whole[2:]


def test_carried_rows_go_on_where_they_ended() -> None:
    batches = list(loader(200, carried=True).batches(0))
    assert [batch.fresh for batch in batches] == [True] + [False] * (len(batches) - 1)
    for before, after in pairwise(batches):
        assert after.ids_BT[:, 0].equal(before.ids_BT[:, -1])


def test_some_passages_begin_with_begin() -> None:
    opened = torch.cat([batch.ids_BT[:, 0] == BEGIN for batch in loader(2000).batches(0)])
    assert 0.1 < opened.float().mean() < 0.3
    assert not any((batch.ids_BT == BEGIN).any() for batch in loader(2000, shuffle=False).batches(0))


# The whole way.


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_it_trains_goes_on_to_the_same_bytes_and_writes(name: str, tmp_path: Path) -> None:
    data = write_verses(tmp_path)
    config = settings(name, **{"train.steps": 14, "train.validate_steps": 7, "train.checkpoint_steps": 7})
    train(data, tmp_path / "whole", config)
    for steps in (6, 4, 100):
        asked = count()
        train(data, tmp_path / "pieces", config, stop=lambda asked=asked, steps=steps: next(asked) >= steps)
    whole, pieces = ((tmp_path / run / "model.safetensors").read_bytes() for run in ("whole", "pieces"))
    assert whole == pieces
    author = regard.load(tmp_path / "whole", device="cpu")
    assert author.write("one two", max_length=4, sample=True).startswith("one two")


@pytest.fixture(scope="module")
def poet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows one verse by heart."""
    folder = tmp_path_factory.mktemp("poet")
    torch.set_num_threads(1)
    config = settings("lm", **{"model.width": 32, "train.steps": 300, "train.validate_steps": 300})
    train(write_verses(folder, 200), folder / "model", config)
    return folder / "model"


def test_it_goes_on_with_what_it_knows_beyond_its_window(poet: Path) -> None:
    author = regard.load(poet)
    assert author.window == 16
    written = author.write("one two three", beam=1, max_length=40)
    assert written.startswith("one two three four five\nfive four three two one\none two three four five\nfive four")
    assert author.write("one two three", beam=3, max_length=8).startswith("one two three four five\nfive four")


def test_the_length_written_is_the_length_asked_for(poet: Path) -> None:
    author = regard.load(poet)
    for length in (1, 7, 15, 16, 33):
        text = author.write("one two", beam=1, max_length=length, min_length=length)
        (ids,) = author.tokenizer.encode([text])
        assert len(ids) == 2 + length


def test_samples_follow_the_seed(poet: Path) -> None:
    author = regard.load(poet)
    drawn = [
        author.n_best("one", sample=True, n_best=3, seed=seed, temperature=3.0, max_length=30) for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 3


def test_perplexity_is_the_exponential_of_the_mean_loss(poet: Path, tmp_path: Path) -> None:
    author = regard.load(poet)
    (tmp_path / "t.txt").write_text("one two three")
    report = perplexity(author, open_documents([str(tmp_path / "t.txt")]), passage=16)
    (ids,) = author.tokenizer.encode(["one two three"])
    whole = torch.tensor([[BEGIN, *ids, END]])
    nothing = regard.models.base.Source(whole[:, :0], torch.zeros(1, dtype=torch.long))
    logits = author.model.words(author.model(nothing, whole[:, :-1]).hidden_BTW)
    loss = torch.nn.functional.cross_entropy(logits[0], whole[0, 1:]).detach()
    assert report.loss == pytest.approx(float(loss), rel=1e-5)
    assert report.perplexity == pytest.approx(math.exp(report.loss))
    assert report.bits_per_byte == pytest.approx(float(loss) * 4 / math.log(2) / len("one two three"))


def test_a_recurrent_model_carries_its_memory_from_passage_to_passage() -> None:
    model = build(settings("lstm").model, 20).eval()
    ids = torch.randint(4, 20, (33,))
    listed = Listed("words", [str(n) for n in range(16)])
    author = Author(model, listed, DecodeConfig())  # type: ignore[arg-type]

    class Once:
        skipped = Skips()

        def lines(self) -> list[Line]:
            return [Line(listed.decode(ids.tolist()), closes=True)]

    short, long = (perplexity(author, Once(), passage=passage).loss for passage in (5, 100))  # type: ignore[arg-type]
    assert_close(short, long, rtol=1e-5, atol=1e-6)


def test_a_translator_is_not_an_author(poet: Path, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="regard write"):
        regard.score(poet, write_verses(tmp_path) * 2)


@pytest.mark.parametrize(
    ("name", "data", "more", "says"),
    [
        ("transformer", ["builtin:python"], {}, "learns from pairs"),
        ("transformer", ["verses.txt"], {"text.kind": "text"}, "learns from pairs"),
        ("lm", ["verses.txt"], {"train.metric": "bleu"}, "not measured"),
        ("lm", ["verses.txt"], {"text.longest": 40, "model.longest": 32}, "model.longest=40"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    name: str, data: list[str], more: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_verses(tmp_path)
    with pytest.raises((DataError, ConfigError), match=says):
        train(data, tmp_path / "model", settings(name, **more))


def command(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "regard", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_write_and_score_from_the_command_line(poet: Path, tmp_path: Path) -> None:
    assert command("write", str(poet), "one two", "--beam", "1", "--max-length", "3") == "one two three four five\n"
    drawn = command("write", str(poet), "one", "--n-best", "2", "--max-length", "3", "--json").splitlines()
    assert [json.loads(line)["number"] for line in drawn] == [1, 2]
    report = json.loads(command("score", str(poet), *write_verses(tmp_path), "--json"))
    assert 1 <= report["perplexity"] < 2 and report["bytes"] == len(VERSE) * 30 - 1
