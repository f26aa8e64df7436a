"""What does "it" mean? The demo's model, trained as the demo trains it, is asked where it decides, and whether that is so."""

from dataclasses import replace
from pathlib import Path

import pytest

from regard.cli.main import main
from regard.experiments import demo
from regard.experiments.demo import Result
from regard.interpret.contrast import contrast
from regard.text.builtin import grammar

pytestmark = pytest.mark.long
TIRED, WIDE = (pair.source for pair in grammar.LECTURE[:2])


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Three minutes of one core."""
    config = demo.config()
    found = demo.demo(
        tmp_path_factory.mktemp("demo") / "demo", replace(config, train=replace(config.train, validate_steps=1000))
    )
    assert found is not None
    return found


def test_the_demo_translates_the_lectures_sentences(result: Result) -> None:
    assert all(written == pair.target for pair, written in result.lecture[:2])
    assert result.exact_match > 75, "guessing what decides gives 50"


def test_one_head_turns_from_one_noun_to_the_other(result: Result) -> None:
    exhibit = result.exhibit
    move = exhibit.move
    assert move is not None and (move.one, move.other) == demo.BETWEEN
    assert move.move >= 0.5, move.sentence()
    again = contrast(exhibit.traces[1], exhibit.traces[0], *demo.BETWEEN)[0]
    assert again.move == pytest.approx(-move.move), "the other way round it turns back"


def test_without_that_head_the_pronoun_is_in_doubt(result: Result) -> None:
    exhibit = result.exhibit
    assert exhibit.move is not None
    assert [off.word for off in exhibit.knockouts if off] == ["il", "elle"]
    found = zip(exhibit.knockouts, exhibit.without(exhibit.move), strict=True)
    falls = [off.probability - one.probability for off, one in found if off and one]
    assert max(falls) > 0.05 and len(falls) == 2
    for off, one in zip(exhibit.knockouts, exhibit.without(exhibit.move), strict=True):
        assert off and one and one.instead in ("il", "elle"), "what is in doubt is the pronoun, not the sentence"


def test_the_page_begins_with_that_head(result: Result) -> None:
    page = result.page.read_text()
    assert result.page == result.page.parent / "attention.html"
    assert '"view": "contrast"' in page and TIRED in page and WIDE in page


def test_it_can_be_printed_too(result: Result, tmp_path: Path) -> None:
    move, folder = result.exhibit.move, str(result.page.parent)
    assert move is not None
    chosen = ["--kind", move.kind, "--layer", str(move.layer + 1), "--head", str(move.head + 1), "--word", "tired"]
    assert main(["see", folder, TIRED, "--to", str(tmp_path / "it.svg"), *chosen]) == 0
    assert "animal" in (tmp_path / "it.svg").read_text()
