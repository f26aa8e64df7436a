"""Text that models write for others: what is in it, what is not, and that nothing is written twice."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

import regard
from conftest import QUICK
from regard.cli.main import main
from regard.config import parse_set, read
from regard.decode.translation import TextTranslator
from regard.errors import ConfigError, DataError, FolderError
from regard.evaluation import metrics
from regard.experiments import synthetic
from regard.experiments.synthetic import Models, back_translate, distill
from regard.folder import layout
from regard.text.corpus import open_corpus
from regard.training.loop import Display
from untrained import leaning

SOURCES = [f"{one} {other}" for one in "abcdefg" for other in "hijkl"]
CONFIG = read(parse_set(f"{key}={value}" for key, value in {**QUICK, "train.steps": 3, "text.columns": "2,1"}.items()))
SETTINGS = [part for key, value in {**QUICK, "train.steps": 3}.items() for part in ("--set", f"{key}={value}")]


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return leaning(tmp_path / "teacher", end=-1.0)


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    """The target first, to see that columns are heeded."""
    (tmp_path / "pairs.tsv").write_text("".join(f"x {source}\t{source}\n" for source in SOURCES))
    return [str(tmp_path / "pairs.tsv")]


def models(*folders: Path, **settings: Any) -> Models:
    return Models(folders=folders, settings=settings, engine="torch")


def pairs(path: Path) -> list[tuple[str, str]]:
    return [tuple(line.split("\t")) for line in path.read_text().splitlines()]


def asked(count: int) -> Callable[[], bool]:
    """Says stop when it has been asked so many times."""
    calls = iter(range(10**6))
    return lambda: next(calls) >= count


@pytest.fixture
def translated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was translated, five texts at a time."""
    texts: list[str] = []
    whole = TextTranslator.stream

    def stream(self: TextTranslator, lines: Sequence[str], **settings: Any) -> Any:
        texts.extend(lines)
        return whole(self, lines, **settings)

    monkeypatch.setattr(TextTranslator, "stream", stream)
    monkeypatch.setattr(synthetic, "_AT_A_TIME", 5)
    yield texts


def test_the_student_learns_what_the_teacher_writes_and_is_validated_on_what_is_true(
    tmp_path: Path, teacher: Path, data: list[str]
) -> None:
    outcome = distill(models(teacher, beam=3), data, tmp_path / "student", CONFIG)
    cache = tmp_path / "student" / "cache"
    learned, checked = pairs(cache / "distilled.tsv"), pairs(cache / "valid.tsv")
    assert outcome.step == 3 and len(checked) == len(SOURCES) // 10
    assert all(target == f"x {source}" for source, target in checked)
    sources = [source for source, _ in learned]
    assert sorted(sources + [source for source, _ in checked]) == sorted(SOURCES)
    assert [target for _, target in learned] == regard.load(teacher).translate(sources, beam=3)
    assert regard.load(tmp_path / "student").translate("a h") is not None


def test_what_is_held_out_is_learned_from_nobody(tmp_path: Path, teacher: Path, data: list[str]) -> None:
    """Neither other copies of it, nor what a teacher writes, nor sources without a translation."""
    lines = Path(data[0]).read_text().splitlines()
    Path(data[0]).write_text("".join(f"{line}\n" for line in lines * 3))
    written = regard.load(teacher).translate(SOURCES[0])
    with open(data[0], "a") as file:
        file.write("".join(f"{written}\tz {n}\n" for n in range(2)) + "rare\tz z\n")
    (tmp_path / "more.txt").write_text("\n".join([*SOURCES, "z z", "z y"]))
    notes = Notes()
    also = [str(tmp_path / "more.txt")]
    distill(models(teacher), data, tmp_path / "student", CONFIG, also=also, true_pairs="too", display=notes)
    cache = tmp_path / "student" / "cache"
    learned, checked = pairs(cache / "mixed.tsv"), pairs(cache / "valid.tsv")
    assert checked and len(learned) > len(checked)
    assert not {source for source, _ in learned} & {source for source, _ in checked}
    assert not {target for _, target in learned} & {target for _, target in checked}
    assert any("is held out too" in note for note in notes.told)


class Notes(Display):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


def test_whoever_trains_after_the_writing_has_as_many_threads_as_before(teacher: Path) -> None:
    before = torch.get_num_threads()
    with Models(folders=[teacher], engine="torch", threads=before + 1).open():
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_several_teachers_write_together(tmp_path: Path, teacher: Path, data: list[str]) -> None:
    other = leaning(tmp_path / "other", name="lm", end=-1.0)
    valid = tmp_path / "valid.tsv"
    valid.write_text("true\ta h\n")
    distill(models(teacher, other), data, tmp_path / "student", CONFIG, valid=[str(valid)])
    learned = pairs(tmp_path / "student" / "cache" / "distilled.tsv")
    assert [source for source, _ in learned] == SOURCES
    assert [target for _, target in learned] == regard.load([teacher, other]).translate(SOURCES)
    assert pairs(tmp_path / "student" / "cache" / "valid.tsv") == [("a h", "true")]


def test_of_several_translations_the_student_learns_the_one_most_like_the_true_one(
    tmp_path: Path, teacher: Path, data: list[str]
) -> None:
    to = tmp_path / "student"
    distill(models(teacher, beam=4, n_best=4), data, to, CONFIG)
    found = regard.load(teacher)
    learned = pairs(to / "cache" / "distilled.tsv")
    for source, target in learned:
        written = [one.text for one in found.n_best([source], beam=4, n_best=4)[0]]
        assert target == metrics.nearest(written, f"x {source}")
    best = found.translate([source for source, _ in learned], beam=4)
    assert best != [target for _, target in learned], "the nearest is always the best: nothing was tested"


def test_the_student_may_learn_from_the_true_pairs_too(tmp_path: Path, teacher: Path, data: list[str]) -> None:
    cache = tmp_path / "student" / "cache"
    distill(models(teacher), data, tmp_path / "student", CONFIG, true_pairs="too")
    learned, mixed = pairs(cache / "distilled.tsv"), pairs(cache / "mixed.tsv")
    assert mixed == learned + [(source, f"x {source}") for source, _ in learned]


def test_the_student_also_learns_from_sources_without_a_translation(
    tmp_path: Path, teacher: Path, data: list[str]
) -> None:
    (tmp_path / "more.txt").write_text("a a\n\nb b\n")
    learn = partial(distill, models(teacher, n_best=2, beam=2), data, tmp_path / "student", CONFIG, valid=data)
    learn(also=[str(tmp_path / "more.txt")])
    learned = pairs(tmp_path / "student/cache/distilled.tsv")
    assert [source for source, _ in learned] == [*SOURCES, "a a", "b b"]
    assert [target for _, target in learned[-2:]] == regard.load(teacher).translate(["a a", "b b"], beam=2)
    (tmp_path / "more.txt").write_text("c c\n")
    with pytest.raises(ConfigError, match="--also"):
        learn(also=[str(tmp_path / "more.txt")])


def test_with_the_true_pairs_alone_the_teacher_translates_nothing_but_what_has_no_translation(
    tmp_path: Path, teacher: Path, data: list[str]
) -> None:
    (tmp_path / "more.txt").write_text("a a\n")
    learn = partial(distill, models(teacher), data, tmp_path / "student", CONFIG, valid=data, true_pairs="only")
    with pytest.raises(ConfigError, match=r"train\.soft.*--also"):
        learn()
    learn(also=[str(tmp_path / "more.txt")])
    translated = ("a a", regard.load(teacher).translate("a a"))
    assert pairs(tmp_path / "student/cache/mixed.tsv") == [translated, *((one, f"x {one}") for one in SOURCES)]


def test_the_true_targets_are_learned_with_other_sources_too(tmp_path: Path, teacher: Path, data: list[str]) -> None:
    back, cache = leaning(tmp_path / "back", name="lm", end=-1.0), tmp_path / "student" / "cache"
    learn = partial(distill, models(teacher), data, tmp_path / "student", CONFIG, valid=data)
    learn(back=models(back))
    targets = [f"x {source}" for source in SOURCES]
    backward = list(zip(regard.load(back).translate(targets), targets, strict=True))
    assert pairs(cache / "back.tsv") == backward
    assert pairs(cache / "mixed.tsv") == pairs(cache / "distilled.tsv") + backward
    with pytest.raises(ConfigError, match="--back"):
        learn()
    more = partial(distill, models(teacher), data, tmp_path / "more", CONFIG, valid=data, true_pairs="too")
    more(back=models(back))
    true = list(zip(SOURCES, targets, strict=True))
    assert pairs(tmp_path / "more/cache/mixed.tsv") == pairs(cache / "distilled.tsv") + true + backward


def test_a_member_of_an_ensemble_may_learn_what_all_of_them_write(
    tmp_path: Path, teacher: Path, data: list[str]
) -> None:
    other, to = leaning(tmp_path / "other", name="lm", end=-1.0), tmp_path / "student"
    told = ["--from", str(teacher), "--with", str(other), "--columns", "2,1", "--engine", "torch", "--steps", "1"]
    assert main(["distill", str(teacher), *data, "--to", str(to), *told, "--set", "train.rate=1e-9"]) == 0
    before, after = (safetensors.numpy.load_file(path / layout.MODEL) for path in (teacher, to))
    assert all(np.allclose(weight, after[name], atol=1e-6) for name, weight in before.items())
    assert regard.load(to).tokenizer.as_bytes() == regard.load(teacher).tokenizer.as_bytes()


def test_what_was_stopped_goes_on_and_translates_nothing_twice(
    tmp_path: Path, teacher: Path, data: list[str], translated: list[str]
) -> None:
    to = tmp_path / "student"
    assert distill(models(teacher), data, to, CONFIG, stop=asked(3)).reason is None
    unfinished = to / "cache" / "distilled.tsv.unfinished"
    assert len(pairs(unfinished)) == 15
    with open(unfinished, "a") as file:
        file.write("a torn li")
    assert distill(models(teacher), data, to, CONFIG).step == 3
    assert translated == [source for source, _ in pairs(to / "cache" / "distilled.tsv")]
    assert [target for _, target in pairs(to / "cache" / "distilled.tsv")] == regard.load(teacher).translate(translated)
    before = len(translated)
    distill(models(teacher), data, to, CONFIG)
    assert len(translated) == before


def test_a_student_may_go_on_with_other_settings_if_that_is_meant(
    tmp_path: Path, teacher: Path, data: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    distill(models(teacher), data, tmp_path / "student", CONFIG)
    settings = {**QUICK, "train.steps": 4, "train.rate": 0.02, "text.columns": "2,1"}
    command = ["distill", str(teacher), *data, "--to", str(tmp_path / "student"), "--engine", "torch"]
    command += [f"--set={key}={value}" for key, value in settings.items()]
    assert main(command) == ConfigError.code and "--override" in capsys.readouterr().err
    assert main([*command, "--override"]) == 0 and "Done at step 4" in capsys.readouterr().err


def test_another_teacher_does_not_go_on_with_the_text_of_the_first(
    tmp_path: Path, teacher: Path, data: list[str]
) -> None:
    distill(models(teacher), data, tmp_path / "student", CONFIG, stop=asked(0))
    for other in (models(leaning(tmp_path / "other")), models(teacher, beam=2)):
        with pytest.raises(ConfigError, match="other teachers"):
            distill(other, data, tmp_path / "student", CONFIG)


def test_sources_are_made_up_for_targets_that_are_real(tmp_path: Path, teacher: Path, translated: list[str]) -> None:
    (tmp_path / "one.txt").write_text("a b\n\n  c d e \n")
    (tmp_path / "two.txt").write_text("f\ng g\nh i\nj\n")
    texts = [str(tmp_path / "one.txt"), str(tmp_path / "two.txt")]
    lines, to = ["a b", "c d e", "f", "g g", "h i", "j"], tmp_path / "made.tsv"
    drawn = models(teacher, sample=True, seed=3)
    assert not back_translate(drawn, texts, to, stop=asked(1))
    assert not to.exists()
    assert back_translate(drawn, texts, to)
    made = regard.load(teacher).translate(lines, sample=True, seed=3)
    assert pairs(to) == list(zip(made, lines, strict=True)) and translated == lines
    assert sorted(path.name for path in tmp_path.glob("made*")) == ["made.tsv"]
    assert {pair.target for _, pair in open_corpus([str(to)]).pairs()} <= set(lines)


def test_an_unfinished_file_of_other_settings_begins_anew(tmp_path: Path, teacher: Path, translated: list[str]) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{source}\n" for source in SOURCES))
    text, to = [str(tmp_path / "text.txt")], tmp_path / "made.tsv"
    back_translate(models(teacher, beam=1), text, to, stop=asked(2))
    assert back_translate(models(teacher, beam=5), text, to)
    assert [made for made, _ in pairs(to)] == regard.load(teacher).translate(SOURCES, beam=5)


def test_the_commands_do_it_in_one_line(
    tmp_path: Path, teacher: Path, data: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "student"
    told = ["--columns", "2,1", "--beam", "2", "--engine", "torch", *SETTINGS]
    assert main(["distill", str(teacher), *data, "--to", str(to), *told]) == 0
    learned = pairs(to / "cache" / "distilled.tsv")
    assert [target for _, target in learned] == regard.load(teacher).translate([s for s, _ in learned], beam=2)
    assert f"regard translate {to}" in capsys.readouterr().err
    (tmp_path / "text.txt").write_text("a b\n")
    made = tmp_path / "made.tsv"
    command = ["back-translate", str(teacher), str(tmp_path / "text.txt"), "--to", str(made), "--engine", "torch"]
    assert main(command) == 0
    assert pairs(made) == [(regard.load(teacher).translate("a b"), "a b")]
    assert main(command) == ConfigError.code and "there already" in capsys.readouterr().err


def test_text_that_is_not_there_leaves_no_student_behind(tmp_path: Path, teacher: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.tsv"):
        distill(models(teacher), [str(tmp_path / "nowhere.tsv")], tmp_path / "student", CONFIG)
    assert not (tmp_path / "student").exists()


def test_what_cannot_be_read_again_or_is_not_ours_is_refused(tmp_path: Path, teacher: Path, data: list[str]) -> None:
    with pytest.raises(DataError, match="standard input"):
        distill(models(teacher), ["-"], tmp_path / "student", CONFIG)
    with pytest.raises(DataError, match="standard input"):
        back_translate(models(teacher), ["-"], tmp_path / "made.tsv")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(FolderError, match="stay untouched"):
        distill(models(teacher), data, tmp_path / "full", CONFIG)
