"""N-best lists sorted anew: by what each model says of each candidate, and in no other way."""

from pathlib import Path

import pytest

import regard
from conftest import WRITERS
from regard.cli.main import main
from regard.decode.hypothesis import length_penalty
from regard.decode.translation import Translation
from regard.errors import ConfigError, FolderError
from untrained import leaning, made

TEXTS = ["a b c", "d e", "", "f"]


def by_hand(writer: Path, judge: Path, weight: float) -> list[list[Translation]]:
    """Candidates one at a time, each with the sum of its two scores."""
    first, second = regard.load(writer), regard.load(judge)
    lists = []
    for source in TEXTS:
        scored = []
        for text, score in first.n_best([source], beam=5, n_best=5)[0]:
            ((total, tokens),) = second.log_probabilities([source], [text])
            scored.append(Translation(text, score + weight * total / length_penalty(tokens, 0.6)))
        lists.append(sorted(scored, key=lambda one: -one.score))
    return lists


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_a_candidates_score_is_the_weighted_sum_of_both_models(tmp_path: Path, engine: str) -> None:
    writer, judge = leaning(tmp_path / "writer"), made("bahdanau", tmp_path / "judge")
    ours = regard.rescored(regard.load(writer, engine=engine), [judge], 0.7).n_best(
        TEXTS, beam=5, n_best=2, precision="float32"
    )
    for found, right in zip(ours, by_hand(writer, judge, 0.7), strict=True):
        assert [one.text for one in found] == [one.text for one in right[:2]]
        assert [one.score for one in found] == pytest.approx([one.score for one in right[:2]], abs=1e-3)


def test_without_weight_the_order_stays_and_with_much_the_judge_decides(tmp_path: Path) -> None:
    writer, judge = leaning(tmp_path / "writer"), made("lm", tmp_path / "judge")
    alone = regard.load(writer).n_best(["a b c"], beam=6, n_best=6)[0]
    second = regard.load(judge)

    def texts(weight: float) -> list[str]:
        found = regard.rescored(regard.load(writer), [judge], weight).n_best(["a b c"], beam=6, n_best=6)
        return [one.text for one in found[0]]

    def judged(text: str) -> float:
        ((total, tokens),) = second.log_probabilities(["a b c"], [text])
        return total / length_penalty(tokens, 0.6)

    assert texts(0.0) == [one.text for one in alone]
    assert texts(1e6) == sorted(texts(0.0), key=judged, reverse=True) != texts(0.0)


@pytest.mark.parametrize("name", [name for name in WRITERS if name in ("lm", "lstm", "memory")])
def test_a_language_model_judges_the_target_alone(tmp_path: Path, name: str) -> None:
    judge = regard.load(made(name, tmp_path / "judge", job="text"))
    together = judge.log_probabilities(["a b c", "d", "e f g h"])
    for text, (total, tokens) in zip(["a b c", "d", "e f g h"], together, strict=True):
        ((alone, count),) = judge.log_probabilities([text])
        assert total == pytest.approx(alone, abs=1e-4) and tokens == count == len(text.split()) + 1
    writer = leaning(tmp_path / "writer")
    found = regard.rescored(regard.load(writer), [tmp_path / "judge"]).n_best(["a b"], beam=3, n_best=3)[0]
    own = {one.text: one.score for one in regard.load(writer).n_best(["a b"], beam=3, n_best=3)[0]}
    for text, score in found:
        ((total, tokens),) = judge.log_probabilities([text])
        assert score == pytest.approx(own[text] + total / length_penalty(tokens, 0.6), abs=1e-4)


def test_the_command_line_translates_and_scores_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer, judge = leaning(tmp_path / "writer"), made("lm", tmp_path / "judge")
    model = regard.rescored(regard.load(writer), [judge, judge], 0.5)
    told = ["--rescore", str(judge), "--rescore", str(judge), "--rescore-weight", "0.5", "--engine", "torch"]
    assert main(["translate", str(writer), "a b c", *told]) == 0
    assert capsys.readouterr().out == model.translate("a b c") + "\n"
    (tmp_path / "test.tsv").write_text("a b c\tc\nd\te f\n")
    written = tmp_path / "written.txt"
    assert main(["score", str(writer), str(tmp_path / "test.tsv"), "--output", str(written), *told]) == 0
    assert written.read_text().splitlines() == model.translate(["a b c", "d"])


def test_what_cannot_judge_is_refused(tmp_path: Path) -> None:
    writer = leaning(tmp_path / "writer")
    with pytest.raises(FolderError, match="writes nothing"):
        regard.rescored(regard.load(writer), [made("bert", tmp_path / "bert")])
    with pytest.raises(ConfigError, match="one of them"):
        regard.rescored(regard.load(writer), [writer]).translate("a b", mbr=4)
