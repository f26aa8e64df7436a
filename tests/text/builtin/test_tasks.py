"""The laws of the computed tasks: answers right by another way of reckoning, lengths and splits kept apart."""

import os
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime
from itertools import pairwise

import pytest

from regard.errors import DataError
from regard.text.builtin import tasks
from regard.text.builtin.tasks import TASKS, in_words, pairs
from regard.text.corpus import BUILTIN, open_corpus
from regard.text.pair import Pair

PARTS = [(task, split) for task, rule in TASKS.items() for split in rule.lengths]
ENDLESS = ("copy", "reverse", "sort", "addition")
WORDS = {
    0: "zero",
    7: "seven",
    10: "ten",
    13: "thirteen",
    20: "twenty",
    21: "twenty-one",
    99: "ninety-nine",
    100: "one hundred",
    101: "one hundred and one",
    110: "one hundred and ten",
    999: "nine hundred and ninety-nine",
    1000: "one thousand",
    1001: "one thousand and one",
    1100: "one thousand one hundred",
    4071: "four thousand and seventy-one",
    10_000: "ten thousand",
    12_345: "twelve thousand three hundred and forty-five",
    100_000: "one hundred thousand",
    100_019: "one hundred thousand and nineteen",
    840_200: "eight hundred and forty thousand two hundred",
    999_999: "nine hundred and ninety-nine thousand nine hundred and ninety-nine",
}


@pytest.fixture(scope="module")
def made() -> dict[tuple[str, str], list[Pair]]:
    """Every split, as large as the built-in corpora have it."""
    return {(task, split): pairs(task, split, tasks.COUNTS[split]) for task, split in PARTS}


def read_out(words: str) -> int:
    """The number that is said, found by adding and multiplying rather than by the rules that wrote it."""
    small = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    teens = ("thir", "four", "fif", "six", "seven", "eigh", "nine")
    tens = ("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine")
    value = {word: number for number, word in enumerate(small)}
    value |= {f"{word}teen": number for number, word in enumerate(teens, 13)}
    value |= {f"{word}ty": 10 * number for number, word in enumerate(tens, 2)}
    thousands = below = 0
    for word in re.findall(r"\w+", words):
        if word == "thousand":
            thousands, below = below * 1000, 0
        elif word == "hundred":
            below *= 100
        elif word != "and":
            below += value[word]
    return thousands + below


def by_hand(first: str, second: str) -> str:
    """Column by column, from the right, with a carry."""
    carry, columns = 0, ""
    width = max(len(first), len(second))
    for one, other in zip(reversed(first.zfill(width)), reversed(second.zfill(width)), strict=True):
        carry, digit = divmod(int(one) + int(other) + carry, 10)
        columns = f"{digit}{columns}"
    return f"1{columns}" if carry else columns


def right(task: str, source: str, target: str) -> bool:
    """Whether the target answers the source, by another way of reckoning than the one that made it."""
    given, said = source.split(), target.split()
    if task == "copy":
        return given == said
    if task == "reverse":
        return given == list(reversed(said))
    if task == "sort":
        return Counter(given) == Counter(said) and all(one <= after for one, after in pairwise(said))
    if task == "addition":
        first, second = "".join(given).split("+")
        return "".join(said) == by_hand(first, second) == str(int(first) + int(second))
    if task == "numbers":
        return read_out(target) == int(source)
    return datetime.strptime(target, "%d %B %Y") == datetime.fromisoformat(source)


@pytest.mark.parametrize(("task", "split"), PARTS)
def test_every_answer_is_right(made: dict[tuple[str, str], list[Pair]], task: str, split: str) -> None:
    for source, target in made[task, split][:2000]:
        assert right(task, source, target), (source, target)


@pytest.mark.parametrize(("task", "split"), PARTS)
def test_lengths_stay_within_their_split(made: dict[tuple[str, str], list[Pair]], task: str, split: str) -> None:
    lengths = {len(source.split() if task in ENDLESS else source) for source, _ in made[task, split]}
    assert lengths <= set(TASKS[task].lengths[split])
    assert max(lengths) > 0.95 * max(TASKS[task].lengths[split])
    assert min(lengths) <= min(TASKS[task].lengths[split]) + 10


@pytest.mark.parametrize("task", ENDLESS)
def test_lengths_are_drawn_evenly_but_for_the_shortest(made: dict[tuple[str, str], list[Pair]], task: str) -> None:
    count = Counter(len(source.split()) for source, _ in made[task, "train"])
    assert all(400 < count[length] < 650 for length in range(5, 41)), count
    # There are no more than a hundred sources of the least length.
    assert 0 < count[min(TASKS[task].lengths["train"])] < 100


@pytest.mark.parametrize("task", TASKS)
def test_no_source_comes_twice_in_a_split_or_in_two(made: dict[tuple[str, str], list[Pair]], task: str) -> None:
    sources = [source for split in TASKS[task].lengths for source, _ in made[task, split]]
    assert len(sources) == len(set(sources))
    other_seed = {source for source, _ in pairs(task, "train", 5000, seed=1)}
    assert not other_seed & {source for split in ("valid", "test") for source, _ in made[task, split]}


def test_what_is_written_looks_as_promised(made: dict[tuple[str, str], list[Pair]]) -> None:
    digit, number = "[0-9]", "(0|[1-9]( [0-9])*)"
    forms = {
        "copy": "[0-9a-z]( [0-9a-z])*",
        "reverse": "[0-9a-z]( [0-9a-z])*",
        "sort": f"{digit}( {digit})*",
        "addition": rf"{number} \+ {number}",
        "numbers": "0|[1-9][0-9]{0,5}",
        "dates": "[12][0-9]{3}-[01][0-9]-[0-3][0-9]",
    }
    for (task, _), some in made.items():
        assert all(re.fullmatch(forms[task], source) for source, _ in some[:1000])


def test_sums_carry_into_a_new_column_and_often(made: dict[tuple[str, str], list[Pair]]) -> None:
    longer = [len(max(source.split("+"), key=len).split()) for source, _ in made["addition", "train"]]
    answers = [len(target.split()) for _, target in made["addition", "train"]]
    assert sum(answer == length + 1 for answer, length in zip(answers, longer, strict=True)) > 200


@pytest.mark.parametrize("number", WORDS)
def test_numbers_are_read_out_as_a_person_would(number: int) -> None:
    assert in_words(number) == WORDS[number]
    assert read_out(WORDS[number]) == number


def test_no_two_numbers_are_read_out_alike() -> None:
    for number in [*range(12_000), *range(12_000, 1_000_000, 97)]:
        assert read_out(in_words(number)) == number


def test_the_same_seed_gives_the_same_pairs_in_every_process() -> None:
    program = (
        "from regard.text.builtin.tasks import *; print([pairs(t, s, 5, 3) for t in TASKS for s in TASKS[t].lengths])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": salt}, capture_output=True, check=True
        ).stdout
        for salt in ("1", "2")
    }
    assert outputs == {f"{[pairs(task, split, 5, 3) for task, split in PARTS]}{os.linesep}".encode()}


@pytest.mark.parametrize("task", TASKS)
def test_seeds_differ_and_a_smaller_count_is_the_beginning_of_a_larger(task: str) -> None:
    assert pairs(task, "train", 50) == pairs(task, "train", 80)[:50] != pairs(task, "train", 50, seed=1)
    assert pairs(task, "train", 0) == []


@pytest.mark.parametrize(("task", "split"), PARTS)
def test_every_split_opens_as_a_built_in_corpus(made: dict[tuple[str, str], list[Pair]], task: str, split: str) -> None:
    name = f"builtin:{task}" if split == "train" else f"builtin:{task}/{split}"
    assert BUILTIN[name].count == tasks.COUNTS[split]
    assert [pair for _, pair in open_corpus([name]).pairs()] == made[task, split]


@pytest.mark.parametrize(
    ("task", "length"), [(task, length) for task in ENDLESS for length in (3, 40, 41, 80, 400)] + [("numbers", 6)]
)
def test_a_number_for_a_split_holds_right_answers_of_that_length_alone_and_held_out(
    made: dict[tuple[str, str], list[Pair]], task: str, length: int
) -> None:
    some = [pair for _, pair in open_corpus([f"builtin:{task}/{length}"]).pairs()]
    assert len(some) == len(set(some)) == 200 or (length == 3 and 0 < len(some) < 200)
    assert {len(source.split() if task in ENDLESS else source) for source, _ in some} == {length}
    assert all(right(task, source, target) for source, target in some)
    assert not {source for source, _ in some} & {source for source, _ in made[task, "train"] + made[task, "valid"]}
    # Of a length that is trained, none can come in the training text of any seed.
    assert length > 40 or {tasks.split_of(source) for source, _ in some} == {"test"}


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: pairs("cpoy", "train", 1), "Did you mean copy?"),
        (lambda: pairs("copy", "dev", 1), "train, valid, test, long"),
        (lambda: pairs("numbers", "long", 1), "numbers has no split long"),
        (lambda: pairs("sort", "train", -1), "-1"),
        (lambda: pairs("numbers", "test", 10**6), "gave out"),
        (lambda: in_words(10**6), "1000000"),
        (lambda: in_words(-1), "-1"),
        (lambda: open_corpus(["builtin:copy/lnog"]), "Did you mean builtin:copy/long?"),
        (lambda: open_corpus(["builtin:dates/long"]), "builtin:dates"),
        (lambda: open_corpus(["builtin:copy/8o"]), "such as builtin:copy/80"),
        (lambda: open_corpus(["builtin:copy/401"]), "a length from 1 to 400"),
        (lambda: open_corpus(["builtin:copy/0"]), "a length from 1 to 400"),
        (lambda: open_corpus(["builtin:addition/2"]), "a length from 3 to 400"),
        (lambda: open_corpus(["builtin:dates/9"]), "or 10."),
    ],
)
def test_what_is_not_there_is_refused(call, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PATIENCE", 100)
    with pytest.raises(DataError) as caught:
        call()
    assert part in str(caught.value) and "\n" not in str(caught.value)
