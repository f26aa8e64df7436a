"""What a person does with a model that reads: fill, classify, embed; in Python and on the command line."""

import io
import json
import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from conftest import small
from regard.cli.main import main
from regard.config import Config, parse_set, read
from regard.encode.torch_classify import Labeller
from regard.encode.torch_encoder import ModelReader
from regard.encode.torch_fill import Filler
from regard.errors import ConfigError, FolderError
from regard.folder import layout
from regard.folder.weights import save_weights, weights_of
from regard.models import build
from regard.text.batching.batch import pad
from regard.text.tokenizers.tokenizer import BEGIN, END, MASK, Tokenizer, learn_tokenizer

ANIMALS = {"cat": "meows", "dog": "barks", "cow": "moos", "bird": "sings"}
TEXTS = [f"The {animal} {sound} at {other}." for animal, sound in ANIMALS.items() for other in ("me", "you", "them")]
LABELS = ["at me", "at them", "at you"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn_tokenizer(TEXTS, read(parse_set(["text.tokenizer=words"])).text, mask=True)


def learn(model: Any, loss: Any) -> Any:
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def filler(tokenizer: Tokenizer) -> Filler:
    """A model that has seen every sound hidden."""
    torch.manual_seed(0)
    model = build(small("bert", width=32).model, tokenizer.size)
    ids, lengths = pad(tokenizer.encode(TEXTS), begin=True)
    right = ids[:, 3].clone()
    ids[:, 3] = MASK
    return Filler(
        learn(model, lambda: F.cross_entropy(model.guess(model(ids, lengths).hidden_BTW[:, 3]), right)), tokenizer
    )


@pytest.fixture(scope="module")
def labeller(tokenizer: Tokenizer) -> Labeller:
    """A model that tells at whom."""
    torch.manual_seed(0)
    model = build(small("classifier", width=32).model, tokenizer.size, 3)
    ids, lengths = pad(tokenizer.encode(TEXTS), begin=True)
    right = torch.tensor([0, 2, 1] * 4)
    learned = learn(model, lambda: F.cross_entropy(model.label(model(ids, lengths).hidden_BTW), right))
    return Labeller(learned, tokenizer, LABELS)


# ---------------------------------------------------------------------------------------------------------------- fill


def test_the_hidden_word_is_guessed_from_what_stands_around_it(filler: Filler) -> None:
    for animal, sound in ANIMALS.items():
        (gap,) = filler.fill(f"The {animal} <mask> at you.", top=2)
        assert (gap[0].word, gap[0].joined) == (sound, False)
        assert 1 > gap[0].probability > gap[1].probability > 0


def test_probabilities_are_the_models_over_all_words_but_no_special_one_is_told(filler: Filler) -> None:
    (gap,) = filler.fill("The cat <mask> at me.", top=1000)
    (ids,) = filler.tokenizer.encode(["The cat <mask> at me."])
    ids = [BEGIN, *ids, END]
    with torch.inference_mode():
        hidden = filler.model(torch.tensor([ids]), torch.tensor([len(ids)])).hidden_BTW
        chances = filler.model.guess(hidden[0, ids.index(MASK)]).softmax(-1)
    assert [guess.probability for guess in gap] == pytest.approx(sorted(chances[MASK + 1 :].tolist(), reverse=True))
    pieces = [guess.word if guess.joined else f"▁{guess.word}" for guess in gap]
    assert sorted(pieces) == sorted(filler.tokenizer.pieces(range(MASK + 1, filler.tokenizer.size)))


def test_both_marks_several_gaps_and_texts_without_any(filler: Filler) -> None:
    found = filler.fill(["The <mask> [MASK] at you.", "", "The cat meows.", "  ", "<mask>"], top=1)
    assert [len(gaps) for gaps in found] == [2, 0, 0, 0, 1]
    assert found[0] == filler.fill("The [MASK] <mask> at you.", top=1)


def test_punctuation_and_endings_say_that_they_join(filler: Filler) -> None:
    (gap,) = filler.fill("The cat meows at me<mask>", top=100)
    assert {guess.word: guess.joined for guess in gap}["."]


def test_a_model_that_came_without_its_guesses_says_so(filler: Filler) -> None:
    for without in (
        Filler(filler.model, filler.tokenizer, guesses=False),
        Filler(filler.model, learn_tokenizer(TEXTS, read(parse_set(["text.tokenizer=words"])).text)),
    ):
        with pytest.raises(FolderError, match="embed"):
            without.fill("A <mask>.")
    with pytest.raises(ConfigError, match="at least 1"):
        filler.fill("A <mask>.", top=0)


# ------------------------------------------------------------------------------------------------------------ classify


def test_labels_come_with_probabilities_that_sum_to_one(labeller: Labeller) -> None:
    found = labeller.classify(TEXTS)
    assert [each.label for each in found] == ["at me", "at you", "at them"] * 4
    for each in found:
        assert list(each.probabilities) == sorted(LABELS, key=lambda label: -each.probabilities[label])
        assert sum(each.probabilities.values()) == pytest.approx(1)
        assert each.probability == each.probabilities[each.label] > 0.5
    assert labeller.classify(TEXTS[4]).label == "at you"


def test_a_blank_text_has_no_label(labeller: Labeller) -> None:
    found = labeller.classify(["", TEXTS[0], " \t"])
    assert [each.label for each in found] == ["", "at me", ""]
    assert found[0].probabilities == {}


# --------------------------------------------------------------------------------------------------------------- embed


def test_vectors_are_the_mean_or_the_first_of_the_last_layer(labeller: Labeller) -> None:
    text = "The cow moos."
    ids = [BEGIN, *labeller.tokenizer.encode([text])[0], END]
    with torch.inference_mode():
        hidden = labeller.model(torch.tensor([ids]), torch.tensor([len(ids)])).hidden_BTW[0]
    longer = [text, "The cow moos at them at them at them."]
    np.testing.assert_allclose(labeller.embed(longer)[0], hidden.mean(0), atol=1e-6)
    np.testing.assert_allclose(labeller.embed(longer, pool="first")[0], hidden[0], atol=1e-6)
    unit = labeller.embed(longer, normalize=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(unit[0], hidden.mean(0) / hidden.mean(0).norm(), atol=1e-6)


def test_blank_texts_have_vectors_of_zeros_and_no_texts_none(labeller: Labeller) -> None:
    vectors = labeller.embed(["", TEXTS[0]], normalize=True)
    assert (vectors.shape, vectors.dtype, vectors[0].any(), bool(vectors[1].any())) == ((2, 32), "float32", False, True)
    assert labeller.embed([]).shape == (0, 32)


# ----------------------------------------------------------------------------------------------------------- all three


def test_alone_and_in_company_the_same_and_in_order(filler: Filler, labeller: Labeller) -> None:
    texts = [" ".join(TEXTS[: 1 + n % 4])[: 40 + n].replace("at", "<mask>", 1) for n in range(24)]
    shuffled = random.Random(1).sample(texts, len(texts))
    alone = {text: (filler.fill(text, top=1), labeller.classify(text), filler.embed([text])[0]) for text in texts}
    for tokens in (1, 40, 10_000):
        filler.batch_tokens = labeller.batch_tokens = tokens
        filled, labels, vectors = filler.fill(shuffled, top=1), labeller.classify(shuffled), filler.embed(shuffled)
        for text, gaps, label, vector in zip(shuffled, filled, labels, vectors, strict=True):
            assert [gap[0].word for gap in gaps] == [gap[0].word for gap in alone[text][0]]
            assert label.probabilities == pytest.approx(alone[text][1].probabilities, abs=1e-5)
            np.testing.assert_allclose(vector, alone[text][2], atol=1e-5)


def test_of_a_long_text_the_beginning_is_read_with_a_warning(
    labeller: Labeller, caplog: pytest.LogCaptureFixture
) -> None:
    words = "The cat meows at me " * 20
    with caplog.at_level(logging.WARNING):
        long, cut = labeller.embed(["The dog.", words])[1], labeller.embed([" ".join(words.split()[:30])])[0]
    np.testing.assert_allclose(long, cut, atol=1e-6)
    assert "1 of 2 texts are longer than the 30 tokens" in caplog.text


def test_progress_is_told_and_training_goes_on_as_it_was(labeller: Labeller) -> None:
    told: list[tuple[int, int]] = []
    labeller.batch_tokens = 20
    labeller.model.train()
    labeller.classify(["", *TEXTS], progress=lambda done, total: told.append((done, total)))
    assert labeller.model.training
    labeller.model.eval()
    assert told == sorted(told)
    assert told[-1] == (13, 13)
    assert len(told) > 3


# ----------------------------------------------------------------------------------------------------- on the command line


def saved(to: Path, reader: ModelReader, config: Config, **about: Any) -> Path:
    to.mkdir()
    layout.save_config(to, config, about)
    save_weights(to, weights_of(reader.model))
    (to / reader.tokenizer.file_name).write_bytes(reader.tokenizer.as_bytes())
    return to


@pytest.fixture(scope="module")
def bert(filler: Filler, tmp_path_factory: pytest.TempPathFactory) -> str:
    config = read({"model": {"name": "bert", **shape()}, "text": {"tokenizer": "words"}})
    return str(saved(tmp_path_factory.mktemp("a") / "bert", filler, config, job="masking"))


@pytest.fixture(scope="module")
def classifier(labeller: Labeller, tmp_path_factory: pytest.TempPathFactory) -> str:
    config = read({"model": {"name": "classifier", **shape()}, "text": {"tokenizer": "words"}})
    to = tmp_path_factory.mktemp("b") / "classifier"
    return str(saved(to, labeller, config, job="labelling", labels=LABELS))


def shape() -> dict[str, Any]:
    return {"width": 32, "heads": 2, "depth": 2, "inner": 24, "longest": 32, "dropout": 0.0}


def test_fill_shows_the_likeliest_words(bert: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fill", bert, "The cat <mask> at me.", "--top", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("%  meows")
    assert float(first.split("%")[0]) > float(second.split("%")[0])
    assert main(["fill", bert, "The [MASK] <mask>.", "--top", "1"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()][::2] == ["gap", "gap"]


def test_fill_numbers_the_guesses_of_a_files_lines(
    bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "gaps.txt"
    lines.write_text("The cow <mask> at me.\n\nThe <mask> <mask> at me.\n")
    assert main(["fill", bert, "--input", str(lines), "--top", "1"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["1", "1"], ["3", "1"], ["3", "2"]]
    assert rows[0][3] == "moos"
    assert main(["fill", bert, "--input", str(lines), "--top", "1", "--json"]) == 0
    tables = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(table["line"], len(table["gaps"])) for table in tables] == [(1, 1), (2, 0), (3, 2)]
    assert tables[0]["gaps"][0][0]["word"] == "moos"


def test_fill_without_a_gap_is_refused(bert: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fill", bert, "Nothing is hidden."]) == 65
    assert "<mask>" in capsys.readouterr().err


def test_classify_gives_a_line_for_a_line(
    classifier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{TEXTS[0]}\n\n{TEXTS[2]}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["classify", classifier]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in out] == ["at me", "", "at them"]
    (tmp_path / "texts").write_text(text)
    command = ["classify", classifier, "--input", str(tmp_path / "texts"), "--output", str(tmp_path / "labels")]
    assert main([*command, "--json"]) == 0
    tables = [json.loads(line) for line in (tmp_path / "labels").read_text().splitlines()]
    assert [table["label"] for table in tables] == ["at me", None, "at them"]


def test_classify_can_tell_all_probabilities(classifier: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify", classifier, TEXTS[1], "--all"]) == 0
    parts = capsys.readouterr().out.strip().split("\t")
    assert parts[0] == "at you"
    assert sorted(parts[::2]) == LABELS
    assert sum(map(float, parts[1::2])) == pytest.approx(1, abs=0.001)


def test_embed_prints_vectors_or_saves_a_matrix(
    bert: str, classifier: str, filler: Filler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", bert, f"{TEXTS[0]}\n\n{TEXTS[1]}", "--pool", "first"]) == 0
    printed = np.array([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    np.testing.assert_allclose(printed, filler.embed([TEXTS[0], "", TEXTS[1]], pool="first"), atol=1e-6)
    assert main(["embed", bert, TEXTS[0], "--normalize", "--output", str(tmp_path / "v.npy")]) == 0
    matrix = np.load(tmp_path / "v.npy", allow_pickle=False)
    np.testing.assert_allclose(matrix, filler.embed([TEXTS[0]], normalize=True), atol=1e-6)
    assert main(["embed", classifier, TEXTS[0]]) == 0


def test_a_command_for_another_kind_of_model_says_which_to_use(
    bert: str, classifier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout.save_config(tmp_path, small("transformer"), {"job": "pairs"})
    for command, asked, use in (
        ("fill", classifier, "regard classify"),
        ("classify", bert, "regard fill"),
        ("embed", str(tmp_path), "regard translate"),
        ("translate", bert, "regard fill"),
    ):
        assert main([command, asked, "A <mask>."]) == 66
        assert use in capsys.readouterr().err


def test_a_text_and_a_file_are_one_too_many(bert: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", bert, "text", "--input", "file"]) == 2
    assert "Give one of them" in capsys.readouterr().err
