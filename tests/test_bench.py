"""The bench's own arithmetic; no peer is needed."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from bench import aims, batches, plot, report
from bench.contest import Contestant, ContestError, Entry, Line, race, ratios
from bench.figures import figure
from bench.parts import student
from bench.result import Options, Result
from bench.workers import products
from regard.config import TransformerConfig
from regard.models.base import Source
from regard.models.transformer import Transformer


class Runner:
    """Does what it does in the seconds it was given, turn by turn, and writes its name in a common book."""

    def __init__(self, name: str, book: list[str], seconds: list[float]) -> None:
        self.name, self._book, self._seconds = name, book, iter(seconds)

    def go(self, **order: Any) -> dict[str, Any]:
        self._book.append(self.name)
        return {"amount": 12, "seconds": next(self._seconds)}


def test_everyone_has_a_turn_in_every_round_and_the_order_turns() -> None:
    book: list[str] = []
    race([Runner(name, book, [1, 1, 1]) for name in "abc"], rounds=2)
    assert "".join(book) == "abccbaabc"


def test_the_first_turn_does_not_count_and_the_best_and_the_middle_do() -> None:
    (line,) = race([Runner("a", [], [0.1, 4, 3, 2])], rounds=3)
    assert line.rates == [3, 4, 6]
    assert (line.best, line.median) == (6, 4)


def test_no_round_begins_when_the_time_is_over_but_for_one() -> None:
    clock = itertools.count(step=100).__next__
    (line,) = race([Runner("a", [], [1] * 9)], rounds=8, seconds=50, clock=clock)
    assert len(line.rates) == 1


def test_a_student_is_compared_with_a_model_that_is_named() -> None:
    with pytest.raises(SystemExit, match="--model DIR --student DIR"):
        student.compare(Options(Path("nowhere"), rounds=1, seconds=1, model=Path("tiny")))


def test_ratios_compare_best_with_best() -> None:
    assert ratios([Line("ours", [1, 6]), Line("theirs", [3, 2])], "ours") == {"ours": 1, "theirs": 2}


def test_a_contestant_that_cannot_start_says_why() -> None:
    with pytest.raises(ContestError, match=r"No module named .?bench\.workers\.nobody"):
        Contestant(Entry("nobody", "nobody", {}), Path(sys.executable))


def test_what_a_worker_prints_does_not_disturb_its_answers() -> None:
    code = "from bench import worker; worker.serve(lambda settings: lambda order: print('noise') or {'got': order})"
    done = subprocess.run(
        [sys.executable, "-c", code, "{}"], input='{"a": 1}\n', capture_output=True, text=True, cwd=report.ROOT
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"ready": True}, {"got": {"a": 1}}]


def test_a_worker_that_cannot_do_what_it_is_told_says_so_and_waits_for_the_next_order() -> None:
    code = "from bench import worker; worker.serve(lambda settings: lambda order: {'got': 1 / order['a']})"
    orders = '{"a": 0}\n{"a": 2}\n'
    done = subprocess.run(
        [sys.executable, "-c", code, "{}"], input=orders, capture_output=True, text=True, cwd=report.ROOT
    )
    _, refused, done_now = map(json.loads, done.stdout.splitlines())
    assert refused["error"].startswith("ZeroDivisionError") and done_now == {"got": 0.5}


def some_batch(rows: int, source: int, target: int) -> batches.Batch:
    """Full rows: nothing is padded."""
    return batches.Batch(
        np.full((rows, source), 5), np.full(rows, source), np.full((rows, target + 1), 6), np.full(rows, target + 1)
    )


def test_batches_come_back_as_they_were_stored(tmp_path: Path) -> None:
    batches.save(tmp_path / "b.npz", [some_batch(2, 3, 4), some_batch(3, 2, 2)], 11)
    found, vocabulary = batches.load(tmp_path / "b.npz")
    assert vocabulary == 11
    assert [batch.tokens for batch in found] == [8, 6]
    assert np.array_equal(found[1].target, some_batch(3, 2, 2).target)


def test_the_products_counted_are_those_that_torch_counts_in_a_training_step() -> None:
    shape = {"depth": 2, "width": 16, "inner": 24, "heads": 4}
    batch = some_batch(rows=3, source=5, target=7)
    model = Transformer(TransformerConfig(**shape), 50)
    ids, lengths, target, _ = (torch.from_numpy(array) for array in batch)
    with FlopCounterMode(display=False) as counted:
        hidden = model(Source(ids, lengths), target[:, :-1], attention=True).hidden_BTW.flatten(0, 1)
        cross_entropy(model.words(hidden), target[:, 1:].flatten()).backward()
    found = products.of_batch(batch, shape, 50, padded=True)
    assert sum(product.operations for product in found) == counted.get_total_flops()


def test_numbers_are_as_long_as_they_need_to_be() -> None:
    assert [figure(n) for n in (12345.6, 3.14159, 1.3e12)] == ["12,346", "3.14", "1,300 G"]


@pytest.fixture
def stored() -> dict[str, Any]:
    """As a run would keep it: one contest, with someone missing, and one thing that grows."""
    contest = Result("Translating", "sentences a second", "A test.", "Regard, torch", failed={"eole": "no <wheel>"})
    contest.lines = [Line("Regard, torch", [200.0, 260.0]), Line("Hugging Face generate", [130.0, 110.0])]
    contest.notes = {"Hugging Face generate": "batches of 64"}
    growth = Result("Growth", "", "A test.")
    growth.curves = {"length": [{"at": 16, "seconds": 1e-4, "before": 100.0, "most": 300.0}]}
    return {"translation": contest.as_json(), "growth": growth.as_json()}


def test_the_page_has_every_figure_and_every_failure(stored: dict[str, Any]) -> None:
    page = report.page(stored)
    assert "| Regard, torch | 260 | 230 |  |  |" in page
    assert "| Hugging Face generate | 130 | 120 | 2.00 × | batches of 64 |" in page
    assert "eole could not take part: no <wheel>" in page
    assert "| length 16 | 300 | 200 | 100 |" in page


def test_an_aim_that_is_missed_is_said_to_be(stored: dict[str, Any]) -> None:
    (said,) = aims.verdicts("translation", stored["translation"])
    assert "at least 3 ×" in said and "2.00 ×, **not reached**" in said


def test_the_picture_is_drawn_from_the_same_figures(stored: dict[str, Any]) -> None:
    drawn = ElementTree.fromstring(plot.picture(stored))
    words = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    widths = [float(bar.attrib["width"]) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert {"Hugging Face generate", "130", "260"} <= set(words)
    assert widths[0] == 2 * widths[1]


def test_a_part_that_is_measured_again_replaces_itself_alone(tmp_path: Path) -> None:
    for name, title in (("a", "first"), ("b", "other"), ("a", "second")):
        report.keep(name, Result(title, "", "", lines=[Line("x", [1.0])]), docs=tmp_path)
    report.write(["b", "a"], docs=tmp_path)
    page = (tmp_path / "benchmarks.md").read_text()
    assert page.index("## other") < page.index("## second") and "## first" not in page
