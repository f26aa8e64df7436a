"""Tables: which first line is a heading and which is a pair, and fields as long as a line may be."""

from pathlib import Path

import pytest
from hypothesis import given

from damage import bounded, whole_lines
from regard.errors import DataError
from regard.text.batching.labelled import labelled_texts
from regard.text.corpus import Corpus, open_corpus
from regard.text.formats import LONGEST_LINE, Reason
from regard.text.headings import pairs_heading
from regard.text.pair import Pair

LONG = "A sentence as they stand in texts.\tUne phrase comme elles se trouvent dans les textes."
SHORT = "house\tmaison"


def opened(to: Path, content: str) -> Corpus:
    to.write_text(content, encoding="utf-8")
    return open_corpus([str(to)])


def first(corpus: Corpus) -> int:
    """The line of the first pair."""
    return next(iter(corpus.pairs()))[0]


NAMES = ["source\ttarget", "src\ttgt", "Source\tTarget", "target\tsource", "English\tFrench", "Deutsch\tEnglish"]
CODES = ["en\tfr", "EN\tFR", "fr\tde", "en-US\tfr_FR", "zh-Hans\ten", "ja\tko"]
DOUBTFUL = ["en\tde", "it\tes", "de\tes", "question\tanswer", "text\tsummary", "input\toutput"]


@pytest.mark.parametrize("heading", NAMES + CODES)
@pytest.mark.parametrize("below", [LONG, SHORT])
def test_names_of_columns_are_no_pair(tmp_path: Path, heading: str, below: str) -> None:
    corpus = opened(tmp_path / "a.tsv", f"{heading}\n{below}\n{heading}\n")
    assert [number for number, _ in corpus.pairs()] == [2, 3]
    assert str(corpus.skipped) == f"left out 1 pair: 1 taken for a heading (first: {tmp_path / 'a.tsv'}:1)"


@pytest.mark.parametrize("heading", DOUBTFUL)
def test_names_that_may_be_words_are_a_heading_only_above_a_longer_line(tmp_path: Path, heading: str) -> None:
    assert first(opened(tmp_path / "a.tsv", f"{heading}\n{LONG}\n")) == 2
    assert first(opened(tmp_path / "a.tsv", f"{heading}\n{SHORT}\n{LONG}\n")) == 1


PAIRS = ["it\tes", "is\tes", "Hi\tNo", "No\tNo", "en\ten", "French\tfrançais", "english\tenglish", "target\tcible"]
PAIRS += ["source\tsource", "to-do\tzu-tun", "a\tb", "label\tEtikett", "A cat.\tUn chat.", "the source\tthe target"]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_real_pair_is_never_taken_for_a_heading(tmp_path: Path, pair: str) -> None:
    assert first(opened(tmp_path / "a.tsv", f"{pair}\n{SHORT}\n{LONG}\n")) == 1


@bounded(200)
@given(whole_lines, whole_lines)
def test_texts_of_several_words_are_never_taken_for_a_heading(source: str, target: str) -> None:
    assert not pairs_heading(Pair(f"{source} x {target}", target), Pair("x" * 99, "y"))


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_a_table_that_names_its_columns_otherwise_loses_nothing(tmp_path: Path, name: str) -> None:
    rows = {"a.csv": "source,target\nen,fr\n", "a.jsonl": '{"source": "en", "target": "fr"}\n', "a.tsv": "\nen\tfr\n"}
    assert [pair for _, pair in opened(tmp_path / name, rows[name]).pairs()] == [Pair("en", "fr")]


@pytest.mark.parametrize("heading", ["text\tlabel", "tweet\tCategory", "source\ttarget"])
def test_what_names_a_column_of_labels_is_counted_in_the_same_way(tmp_path: Path, heading: str) -> None:
    corpus = opened(tmp_path / "a.tsv", f"{heading}\na film\tgood\n")
    assert [pair for _, pair in labelled_texts(corpus)] == [Pair("a film", "good")]
    assert corpus.skipped.counts == {Reason.HEADING: 1}


@pytest.mark.parametrize("size", [131_073, LONGEST_LINE - 10])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_field_may_be_as_long_as_a_line(tmp_path: Path, size: int, quote: str) -> None:
    long = quote + "x" * size + quote
    corpus = opened(tmp_path / "a.csv", f"source,target\na,b\n{long},c\nd,e\n")
    assert [number for number, _ in corpus.pairs()] == [2, 3, 4] and not corpus.skipped.total


def test_a_field_of_many_lines_that_never_ends_is_refused_by_its_length(tmp_path: Path) -> None:
    corpus = opened(tmp_path / "a.csv", 'source,target\n"' + "word word,\n" * 200_000)
    with pytest.raises(DataError, match=r"a\.csv:2 begins a field of more than 1,048,576 characters"):
        list(corpus.pairs())
