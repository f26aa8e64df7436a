"""A score is of every line of the test set: nothing is left out in silence, and --output keeps in step with the input."""

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.cli.main import main
from regard.errors import DataError
from untrained import made

PAIRS = [("a b", "b a"), ("", "c"), ("d", ""), ("", ""), ("e\0f", "e"), ("g", "h")]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("transformer", tmp_path_factory.mktemp("pairs") / "model")


def written(folder: Path, kind: str, pairs: list[tuple[str, str]] = PAIRS) -> list[str]:
    """The pairs as a test set of this kind."""
    path = folder / f"test.{kind}"
    if kind == "lines":
        for side, name in enumerate(("test.a", "test.b")):
            (folder / name).write_text("".join(pair[side] + "\n" for pair in pairs))
        return [str(folder / "test.a"), str(folder / "test.b")]
    if kind == "tsv":
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    elif kind == "csv":
        path.write_text("source,target\n" + "".join(f"{source},{target}\n" for source, target in pairs))
    else:
        path.write_text("".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in pairs))
    return [str(path)]


@pytest.mark.parametrize("kind", ["lines", "tsv", "csv", "jsonl"])
def test_a_pair_with_an_empty_side_is_scored_and_the_output_keeps_in_step(
    kind: str, translator: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = written(tmp_path, kind), tmp_path / "out"
    assert (
        main(
            [
                "score",
                str(translator),
                *data,
                "--output",
                str(output),
                "--json",
                "--metrics",
                "bleu,chrf,ter,wer,rouge1",
            ]
        )
        == 0
    )
    model = regard.load(translator)
    translated = regard.load(translator, engine="auto").translate([source for source, _ in PAIRS])
    assert output.read_text().split("\n") == [*translated, ""]
    assert json.loads(capsys.readouterr().out)["sentences"] == len(PAIRS)
    report = regard.score(translator, data)
    judged = model.judge(*zip(*PAIRS, strict=True))
    assert report.sentences == len(PAIRS) and report.hypotheses[1] == report.hypotheses[3] == ""
    assert report.guessed == pytest.approx(100 * sum(one.guessed for one in judged) / sum(one.tokens for one in judged))


@pytest.mark.parametrize("name", ["universal", "conv", "luong", "memory", "lm"])
def test_every_kind_of_model_can_be_scored_on_empty_sides(name: str, tmp_path: Path) -> None:
    model = made(name, tmp_path / "model")
    assert regard.score(model, written(tmp_path, "lines"), max_length=3).sentences == len(PAIRS)


def test_further_references_stand_beside_every_line(translator: Path, tmp_path: Path, capsys: Any) -> None:
    data = written(tmp_path, "lines")
    (tmp_path / "more").write_text("c\n" * len(PAIRS))
    assert main(["score", str(translator), *data, "--references", str(tmp_path / "more")]) == 0
    assert main(["score", str(translator), *data, "--tune", "--beam", "1", "--metrics", "chrf"]) == 0


def test_a_line_that_is_not_utf8_is_scored_and_told(translator: Path, tmp_path: Path, caplog: Any) -> None:
    data = written(tmp_path, "tsv")
    Path(data[0]).write_bytes(b"caf\xe9\tb\n" + Path(data[0]).read_bytes())
    assert regard.score(translator, data).sentences == len(PAIRS) + 1
    assert (
        "1 line is not valid UTF-8 and scored with \ufffd in its place (first: " in caplog.text
        and "test.tsv:1" in caplog.text
    )


@pytest.mark.parametrize(("line", "said"), [("alone\n", "too few columns"), (f"{'a' * (1 << 20)}\tb\n", "longer than")])
def test_a_line_that_is_no_pair_is_refused_by_its_place(line: str, said: str, translator: Path, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("a\tb\n" + line + "c\td\n")
    with pytest.raises(DataError, match=rf"test\.tsv:2.*{said}"):
        regard.score(translator, tmp_path / "test.tsv")


def test_training_still_leaves_out_what_has_an_empty_side(tmp_path: Path) -> None:
    from regard.text.corpus import open_corpus

    corpus = open_corpus(written(tmp_path, "lines"))
    assert [pair for _, pair in corpus.pairs()] == [("a b", "b a"), ("g", "h")] and corpus.skipped.total == 4
    (tmp_path / "test.tsv").write_text("\t\na\t\n")
    with pytest.raises(DataError, match="no usable pair"):
        list(open_corpus([str(tmp_path / "test.tsv")]).all_pairs())


def test_a_classifier_is_scored_on_blank_texts_and_texts_without_a_label_are_told(tmp_path: Path, capsys: Any) -> None:
    model, output = made("classifier", tmp_path / "model"), tmp_path / "out"
    (tmp_path / "test.tsv").write_text("text\tlabel\na b\tgood\n\tbad\nc\t\nd\tbad\n")
    command = ["score", str(model), str(tmp_path / "test.tsv"), "--output", str(output), "--json"]
    assert main(command) == 0
    guessed = [found.label for found in regard.load(model).classify(["a b", "", "c", "d"])]
    assert output.read_text().split("\n") == [*guessed, ""] and guessed[1] == ""
    out, said = capsys.readouterr()
    table = json.loads(out)
    assert table["texts"] == 3 and table["accuracy"] == pytest.approx(
        100 * ((guessed[0] == "good") + (guessed[3] == "bad")) / 3
    )
    assert "1 text has no label, and is not scored (first: " in said and "test.tsv:4" in said


def test_lines_that_a_language_model_is_not_scored_on_are_told(tmp_path: Path, caplog: Any, capsys: Any) -> None:
    model = made("lstm", tmp_path / "model", "text")
    (tmp_path / "test.txt").write_bytes(b"a b\ncaf\xe9\nd\0e\nf\n")
    assert main(["score", str(model), str(tmp_path / "test.txt")]) == 0
    assert "left out 2 lines: 1 not valid UTF-8 (first: " in caplog.text and "1 with a NUL character" in caplog.text
