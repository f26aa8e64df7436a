"""Which search suits a model: every one is tried, and the best is the best."""

import json
from pathlib import Path

import pytest

import regard
from regard.cli.main import main
from regard.errors import ConfigError, DataError
from regard.evaluation import metrics
from regard.evaluation.search_grid import try_searches
from regard.folder.layout import load_config
from regard.text.pair import Pair
from untrained import leaning, made

PAIRS = [Pair("a b c", "c d"), Pair("d e", "e f g"), Pair("f", "a b")]


@pytest.mark.parametrize("metric", ["chrf", "ter"])
def test_each_search_has_the_score_of_its_translations_and_the_best_comes_first(tmp_path: Path, metric: str) -> None:
    model = regard.load(leaning(tmp_path / "model", end=-0.5))
    found = try_searches(model, PAIRS, metric=metric, beams=(1, 3), penalties=(0.0, 2.0)).trials
    assert {(one.beam, one.length_penalty) for one in found} == {(1, 0.6), (3, 0.0), (3, 2.0)}
    targets = [pair.target for pair in PAIRS]
    for one in found:
        written = model.translate([p.source for p in PAIRS], beam=one.beam, length_penalty=one.length_penalty)
        assert one.score == metrics.scorer(metric, interval=False)(written, targets).value
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=metric != "ter")


def test_the_command_lists_them_and_keeps_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = leaning(tmp_path / "model", end=-0.5)
    (tmp_path / "valid.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS))
    before = load_config(model)
    command = ["score", str(model), str(tmp_path / "valid.tsv"), "--tune", "--metrics", "chrf", "--engine", "torch"]
    assert main([*command, "--json"]) == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    assert len(trials) == 16 and load_config(model) == before
    assert main([*command, "--keep"]) == 0
    best = f"--beam {trials[0]['beam']} --length-penalty {trials[0]['length_penalty']:g}"
    assert best in capsys.readouterr().out
    kept = load_config(model)[0].decode
    assert (kept.beam, kept.length_penalty) == (trials[0]["beam"], trials[0]["length_penalty"])


@pytest.mark.parametrize(
    ("given", "key", "count"), [(("--beam", "3"), "beam", 5), (("--length-penalty", "2"), "length_penalty", 4)]
)
def test_what_is_given_is_not_varied(
    given: tuple[str, str], key: str, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = leaning(tmp_path / "model", end=-0.5)
    (tmp_path / "valid.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS))
    command = ["score", str(model), str(tmp_path / "valid.tsv"), "--tune", "--metrics", "chrf", "--engine", "torch"]
    assert main([*command, *given, "--json"]) == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    assert len(trials) == count and {str(trial[key]).removesuffix(".0") for trial in trials if trial["beam"] > 1} == {
        given[1]
    }


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    model, labels = leaning(tmp_path / "model"), made("classifier", tmp_path / "labels")
    assert main(["score", str(model), "x.tsv", "--keep"]) == ConfigError.code
    assert main(["score", str(labels), "x.tsv", "--tune"]) == ConfigError.code
    with pytest.raises(DataError):
        try_searches(regard.load(model), [])
