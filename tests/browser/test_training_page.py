"""The training page: its curves are the log's, its smoothing is honest, and its slider shows the validation it names."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opening import drawn, opener
from regard.pages.page import asset, modules
from regard.pages.training import training_page
from synthetic import TARGET, packed, random_weights, row

HOSTILE = "</script><script>document.title = 'taken over'</script><!--"
WORDS = ["The", "an|imal", "was", "too", "tired", "."]
STEPS, HEADS = (100, 200, 300, 400), 3
Open = Callable[..., Any]


def weights_at(evaluation: int) -> np.ndarray:
    """Heads, queries, keys; unlike those of any other validation."""
    return random_weights((HEADS, len(TARGET) + 1, 8), seed=evaluation)


def a_history(steps: int = 400, every: int = 2, **more: Any) -> dict[str, Any]:
    """As if a run had been read, with a spike, a gap, and texts that try to break out."""
    learned = np.arange(every, steps + 1, every)
    loss = 6 / np.sqrt(learned) + np.random.default_rng(0).uniform(0, 0.2, len(learned))
    loss[37] = 19.5
    columns = {
        "step": learned, "epoch": learned * 0, "tokens": 900 * learned, "seconds": learned / 4, "loss": loss,
        "rate": 1e-3 * learned / steps, "gradient": loss / 2, "tokens_per_second": 3600 + loss, "padding": loss * 0,
    }  # fmt: skip
    training = {name: [float(value) for value in values] for name, values in columns.items()}
    training["gradient"][5] = None  # type: ignore[call-overload]
    rows = {"source": row(WORDS, end="</s>"), "target": row(TARGET, begin="<s>"), "predicted": row(TARGET, end="</s>")}
    kind = {"kind": "cross", "title": "attention to the source", "queries": "target", "keys": "source", "causal": False}
    layer = {"number": 0, "label": "layer 0 → 1 (decoder layer 1 of 1)"}
    evaluations = [
        {
            "step": step, "tokens": 900 * step, "seconds": step / 4, "loss": 3.0 - n / 2 + (n == 3), "bleu": 7.0 * n,
            "best": n < 3, "perplexity": 20.0 - n,
            "samples": [["a b", "x b c d", "a b d"], [HOSTILE, f"made {n}", ""]],
            "sentence": 0, "weights": [[packed(weights_at(n), "u8s")]],
        }
        for n, step in enumerate(STEPS)
    ]  # fmt: skip
    return {
        "title": HOSTILE, "model": {"name": "transformer", "parameters": 12345}, "data": {"data": "my.tsv", "valid": "held out"},
        "metric": "loss", "standing": "finished", "ended": "400 steps done", "step": 400, "training": training,
        "evaluations": evaluations, "sentences": [{"rows": rows, "maps": [{**kind, "heads": HEADS, "layers": [layer]}]}],
        "averaged": None, "names": {"bleu": "BLEU", "chrf": "chrF"}, "made": "regard", **more,
    }  # fmt: skip


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    with opener(browser, tmp_path) as opened:

        def open_history(history: dict[str, Any], **how: Any) -> Any:
            page = opened(None, host=training_page(history), **how)
            drawn(page)
            return page

        yield open_history


def hook(page: Any, call: str, *given: Any) -> Any:
    return page.evaluate(f"given => window.regardTraining.{call}", list(given))


def curve(page: Any, panel: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = next(one["drawn"] for one in hook(page, "curves()") if one["id"] == panel)
    return found


def evaluation_text(page: Any) -> str:
    return str(page.locator("#scrubber .now").inner_text())


# ------------------------------------------------------------------------------------------------------------------ curves


def test_the_curves_are_the_log_s_numbers(open_page: Open) -> None:
    history = a_history()
    page = open_page(history)
    trained, validated = curve(page, "loss")
    assert np.allclose(trained["points"], np.transpose([history["training"]["step"], history["training"]["loss"]]))
    assert validated["points"] == [[one["step"], one["loss"]] for one in history["evaluations"]]
    assert [one["id"] for one in hook(page, "curves()")] == [
        "loss", "perplexity", "bleu", "rate", "gradient", "tokens_per_second",
    ]  # fmt: skip
    assert curve(page, "gradient")[0]["points"][5] == [12, None], "a gap stays a gap"


def test_the_axis_is_steps_tokens_or_time(open_page: Open) -> None:
    history = a_history()
    page = open_page(history)
    for name, column, unit in (("tokens", "tokens", 1), ("time", "seconds", 1)):
        page.get_by_role("radio", name=name, exact=True).check()
        drawn(page)
        places = [x for x, _ in curve(page, "loss")[0]["points"]]
        assert np.allclose(places, np.array(history["training"][column]) / unit)


def average(values: np.ndarray, alpha: float) -> np.ndarray:
    """By definition: every earlier value weighs alpha times as much as the one after it."""
    powers = [alpha ** np.arange(n, -1, -1) for n in range(len(values))]
    return np.array([(one * values[: len(one)]).sum() / one.sum() for one in powers])


def test_smoothing_is_off_at_first_and_forgets_as_it_says(open_page: Open) -> None:
    page = open_page(a_history())
    values = np.random.default_rng(1).normal(size=60)
    for alpha in (0.0, 0.5, 0.99):
        assert np.allclose(hook(page, "smoothed(...given)", values.tolist(), alpha), average(values, alpha))
    assert hook(page, "smoothed(...given)", values.tolist(), 0) == values.tolist()
    assert np.allclose(hook(page, "smoothed(...given)", [2.5] * 9, 0.9), 2.5), "what is constant stays so"
    whole, part = (hook(page, "smoothed(...given)", values[:n].tolist(), 0.9) for n in (60, 20))
    assert whole[:20] == part, "what comes later changes nothing"
    assert hook(page, "smoothed(...given)", [1, None, 3], 0)[1] is None
    assert page.locator("#smoothing").input_value() == "0" and len(curve(page, "loss")) == 2


def test_smoothing_draws_the_average_over_the_raw_line_and_leaves_validations(open_page: Open) -> None:
    history = a_history()
    page = open_page(history)
    page.locator("#smoothing").fill("0.9")
    drawn(page)
    raw, smooth, validated = curve(page, "loss")
    assert raw["faint"] and np.allclose([y for _, y in raw["points"]], history["training"]["loss"])
    assert np.allclose([y for _, y in smooth["points"]], average(np.array(history["training"]["loss"]), 0.9))
    assert validated["points"] == [[one["step"], one["loss"]] for one in history["evaluations"]]


def test_no_spike_is_lost_when_points_are_many(open_page: Open) -> None:
    history = a_history(steps=40_000)
    page = open_page(history)
    points = curve(page, "loss")[0]["points"]
    assert len(points) < 3000 and max(y for _, y in points) == 19.5
    assert [point for point in points if point[1] == 19.5] == [[history["training"]["step"][37], 19.5]]
    values = np.random.default_rng(2).normal(size=5000)
    kept = np.array(hook(page, "envelope(...given)", [[n, value] for n, value in enumerate(values.tolist())], 50))
    for block in range(50):
        own, all_ = kept[(kept[:, 0] // 100).clip(0, 49) == block, 1], values[100 * block : 100 * block + 100]
        assert {all_.min(), all_.max()} <= set(own)
    assert (np.diff(kept[:, 0]) > 0).all() and (kept[0, 0], kept[-1, 0]) == (0, 4999)


def test_a_logarithm_is_taken_only_of_what_is_above_zero(open_page: Open) -> None:
    page = open_page(a_history())
    page.get_by_role("checkbox", name="logarithmic").check()
    drawn(page)
    assert "logarithmic" in page.locator("#curve-loss svg").text_content()
    assert "logarithmic" not in page.locator("#curve-bleu svg").text_content(), "its first value is 0"


def test_pointing_and_arrow_keys_read_the_values(open_page: Open) -> None:
    history = a_history()
    page = open_page(history)
    box = page.locator("#curve-loss svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 90)
    told = page.locator("#curve-loss .told").inner_text()
    step = int(re.findall(r"step (\d+): training", told)[0])
    value = history["training"]["loss"][step // 2 - 1]
    assert f"training {value:.3f}" in told and 150 < step < 300
    assert f"step {step}" in page.locator("#curve-rate .told").inner_text(), "all charts follow"
    page.mouse.move(0, 0)
    page.locator("#curve-bleu svg").focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    assert page.locator("#curve-bleu .told").inner_text() == "step 200: 7.000"


def test_the_best_weights_are_marked(open_page: Open) -> None:
    page = open_page(a_history())
    assert page.locator("#curve-loss text", has_text="best weights: 2.000").count() == 1
    assert "those of step 300" in page.locator("#lede").inner_text()


def test_numbers_and_pictures_can_be_kept(open_page: Open) -> None:
    history = a_history()
    page = open_page(history)
    with page.expect_download() as got:
        page.get_by_role("button", name="Loss per token as CSV").click()
    lines = list(csv.DictReader(io.StringIO(got.value.path().read_text())))
    told = [float(line["value"]) for line in lines if line["measured in"] == "training"]
    assert told == history["training"]["loss"] and len(lines) == 204
    with page.expect_download() as got:
        page.get_by_role("button", name="Validation BLEU as SVG").click()
    drawing = got.value.path().read_text()
    assert "Validation BLEU" in [one.text for one in ET.fromstring(drawing).iter() if one.tag.endswith("title")]
    assert "var(" not in drawing and "currentColor" not in drawing
    page.locator("#curve-bleu summary").click()
    cells = page.locator("#curve-bleu tbody tr").nth(2).locator("th, td").all_inner_texts()
    assert cells == ["300", "validation", "270,000", "75.0", "14.0"]


# ------------------------------------------------------------------------------------------- the slider and what it shows


def expected(evaluation: int, head: int) -> np.ndarray:
    """As stored in a byte, set right to sum to one; the two pieces of "animal" are one word."""
    stored = np.rint(np.sqrt(weights_at(evaluation)[head]) * 255) ** 2
    stored /= stored.sum(-1, keepdims=True)
    return np.concatenate([stored[:, :1], stored[:, 1:3].sum(1, keepdims=True), stored[:, 3:]], 1)


@pytest.mark.parametrize("evaluation", range(4))
def test_the_slider_shows_the_weights_of_the_validation_it_names(open_page: Open, evaluation: int) -> None:
    page = open_page(a_history())
    page.locator("#evaluation").focus()
    page.keyboard.press("Home")
    for _ in range(evaluation):
        page.keyboard.press("ArrowRight")
    page.get_by_role("radio", name="2", exact=True).check()
    drawn(page)
    assert hook(page, "evaluation()") == evaluation
    assert evaluation_text(page).startswith(f"Step {STEPS[evaluation]} · validation {evaluation + 1} of 4")
    assert page.locator("#samples .made").nth(1).inner_text() == f"made {evaluation}"
    true = expected(evaluation, 1)
    lines = hook(page, "edges()")
    assert len(lines) > 20
    assert all(abs(line["w"] - true[line["q"], line["k"]]) < 1e-5 and line["head"] == 1 for line in lines)
    assert page.locator(".thumbs [aria-current=true]").inner_text().startswith(f"step {STEPS[evaluation]}")


def test_the_small_pictures_are_the_same_head_at_other_validations(open_page: Open) -> None:
    page = open_page(a_history())
    darkest = """n => { const canvas = document.querySelectorAll(".thumbs canvas")[n];
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return [canvas.height, canvas.width, Array.from({ length: data.length / 4 }, (_, n) => data[4 * n] + data[4 * n + 1])]; }"""
    for n in range(4):
        height, width, light = page.evaluate(darkest, n)
        assert int(np.argmin(light)) == int(expected(n, 0).argmax()) and (height, width) == (16, 7)
    page.locator(".thumbs button").nth(1).click()
    drawn(page)
    assert hook(page, "evaluation()") == 1


def test_the_mean_of_heads_and_a_chosen_word(open_page: Open) -> None:
    page = open_page(a_history())
    page.get_by_role("radio", name="mean").check()
    page.locator(".words").first.locator("li").nth(4).click()
    drawn(page)
    lines = hook(page, "edges()")
    true = np.mean([expected(3, head) for head in range(HEADS)], 0)
    assert {line["q"] for line in lines} == {4} and all(abs(line["w"] - true[4, line["k"]]) < 1e-5 for line in lines)
    page.locator("#attention summary").click()
    first = page.locator("#attention tbody tr").nth(4).locator("th, td").all_inner_texts()
    assert first[:3] == [
        "pas",
        ["The", "animal", "was", "too", "tired", ".", "</s>"][true[4].argmax()],
        f"≈{true[4].max():.2f}",
    ]


def test_playing_goes_through_the_validations_but_not_for_those_who_want_no_motion(open_page: Open) -> None:
    page = open_page(a_history())
    page.get_by_role("button", name="Play").click()
    for step in STEPS[:3]:
        page.locator("#scrubber .now", has_text=f"Step {step} ").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Play").wait_for(state="hidden")


def longest_common(one: list[str], other: list[str]) -> int:
    best = np.zeros((len(one) + 1, len(other) + 1), dtype=int)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            best[i + 1, j + 1] = best[i, j] + 1 if a == b else max(best[i, j + 1], best[i + 1, j])
    return int(best[-1, -1])


def test_words_that_differ_from_the_right_answer_are_marked(open_page: Open) -> None:
    page = open_page(a_history())
    assert page.locator("#samples .made").first.locator("mark").all_inner_texts() == ["x", "c"]
    assert page.locator("#samples .right").first.locator("mark").all_inner_texts() == ["a"]
    assert page.locator("#samples .made").nth(1).locator("mark").count() == 0, "nothing is right or wrong there"
    random = np.random.default_rng(3)
    for _ in range(20):
        one, other = ([str(word) for word in random.integers(0, 4, random.integers(0, 9))] for _ in range(2))
        same = page.evaluate(
            "([one, other]) => window.regardTraining.common(one, other).map((set) => [...set])", [one, other]
        )
        assert [one[n] for n in same[0]] == [other[n] for n in same[1]]
        assert len(same[0]) == longest_common(one, other)


# --------------------------------------------------------------------------------------------------- runs of other kinds


def test_a_run_that_is_going_on_says_so(open_page: Open) -> None:
    page = open_page(a_history(standing="running", ended=""))
    assert "Training was running when this page was made, at step 400" in page.locator("#standing").inner_text()
    assert "ended" not in page.locator("#lede").inner_text()


def test_before_the_first_validation_the_page_says_so(open_page: Open) -> None:
    page = open_page(a_history(evaluations=[], sentences=[], standing="stopped"))
    assert "There was no validation yet" in page.locator("#evaluations").inner_text()
    assert page.locator("#curve-loss").count() == 1 and page.locator("#curve-bleu").count() == 0
    nothing = {name: [] for name in a_history()["training"]}
    page = open_page(a_history(evaluations=[], sentences=[], training=nothing, step=0, standing="running"))
    assert "Nothing is logged yet" in page.locator("#curves").inner_text()


def test_a_model_without_attention_and_a_faulty_validation_are_told_in_words(open_page: Open) -> None:
    bare = [{k: v for k, v in one.items() if k not in ("weights", "sentence")} for one in a_history()["evaluations"]]
    page = open_page(a_history(evaluations=bare, sentences=[], model={"name": "seq2seq", "parameters": None}))
    assert "The seq2seq model has no attention" in page.locator("#attention").inner_text()
    history = a_history()
    history["evaluations"][3] = {**bare[3], "problem": "A row does not sum to one."}
    history["evaluations"][2]["weights"] = [[packed(weights_at(2) * 0.5, "u8s")]]
    page = open_page(history)
    assert page.locator("#attention .warning").inner_text() == "A row does not sum to one."
    page.locator("#evaluation").press("ArrowLeft")
    drawn(page)
    assert "sum to 0.5" in page.locator("#attention .warning").inner_text()
    assert not page.locator("#attention .heads").is_visible()


# ---------------------------------------------------------------------------------------------------------- for everyone


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 700, 1400])
def test_it_fits_every_width_and_scheme(open_page: Open, width: int, scheme: str) -> None:
    page = open_page(a_history(), width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() != "taken over" and page.locator("h1").inner_text() == HOSTILE
    assert page.locator("#samples .read").nth(1).inner_text() == HOSTILE
    outside = """[...document.querySelectorAll("svg.chart text")].map((text) => text.getBoundingClientRect())
      .filter((box) => box.left < 0 || box.right > innerWidth).length"""
    assert page.evaluate(outside) == 0


def test_names_of_all_modules_are_told_apart_and_nothing_is_loaded() -> None:
    programs = [asset(name) for name in modules("see/training.js")]
    names = [
        name
        for text in programs
        for name in re.findall(r"^(?:export )?(?:async )?(?:function|const) (\w+)", text, flags=re.M)
    ]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    for text in programs:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\bfetch\(|\bimport\(", text
        )
    page = training_page(a_history())
    assert set(re.findall(r"\w+://[^\s\"'<>`]+", page)) <= {"http://www.w3.org/2000/svg"}
    data = re.findall(r'id="data">(.*?)</script>', page, flags=re.S)[0]
    assert json.loads(data)["title"] == HOSTILE
