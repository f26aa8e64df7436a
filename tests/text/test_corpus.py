"""Reading: every way in gives the same pairs; nothing a file can hold ends in more than a DataError or a count."""

import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest

from regard.errors import DataError, StorageError
from regard.text import corpus as corpus_module
from regard.text.corpus import BUILTIN, Corpus, Task, open_corpus, read_lines
from regard.text.formats import LONGEST_LINE, Reason
from regard.text.pair import Pair

PAIRS = [Pair("The cat sleeps.", "Le chat dort."), Pair("The dog eats.", "Le chien mange.")]
PLAIN = b"The cat sleeps.\tLe chat dort.\nThe dog eats.\tLe chien mange.\n"
LONG = b"x" * (LONGEST_LINE + 1)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Names as short as a user types them."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, content: bytes) -> str:
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return name


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def texts(corpus: Corpus) -> list[Pair]:
    return [pair for _, pair in corpus.pairs()]


def refused(*names: str, columns: str = "") -> str:
    """The message, which must be one line, of a corpus that cannot be opened or read."""
    with pytest.raises(DataError) as caught:
        texts(open_corpus(names, columns=columns))
    message = str(caught.value)
    assert "\n" not in message and message
    return message


def lines(pattern: str, second: str = "") -> bytes:
    """The pairs as JSON; a second pattern puts the target first, for the order of keys must not matter."""
    last = second % PAIRS[1][::-1] if second else pattern % PAIRS[1]
    return f"{pattern % PAIRS[0]}\n{last}\n".encode()


TABLES = {
    "plain.tsv": (PLAIN, ""),
    "chosen.tsv": (b"1\tLe chat dort.\tThe cat sleeps.\n2\tLe chien mange.\tThe dog eats.\n", "3,2"),
    "first.csv": (b"en,fr\nThe cat sleeps.,Le chat dort.\nThe dog eats.,Le chien mange.\n", ""),
    "headed.csv": (b'Tgt,id,SRC\n"Le chat dort.",1,The cat sleeps.\nLe chien mange.,2,The dog eats.\n', ""),
    "named.csv": (b"fr,en\nLe chat dort.,The cat sleeps.\nLe chien mange.,The dog eats.\n", "en, fr"),
    "numbered.csv": (b"a,b\nLe chat dort.,The cat sleeps.\nLe chien mange.,The dog eats.\n", "2,1"),
    "plain.jsonl": (lines('{"source": "%s", "target": "%s"}'), ""),
    "nested.jsonl": (
        lines('{"translation": {"en": "%s", "fr": "%s"}}', '{"translation": {"fr": "%s", "en": "%s"}}'),
        "",
    ),
    "chosen.jsonl": (lines('{"id": 1, "en": "%s", "de": "", "fr": "%s"}'), "en,fr"),
    "inner.jsonl": (lines('{"translation": {"de": "", "en": "%s", "fr": "%s"}}'), "en,fr"),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("change", ["as it is", "gz", "CRLF", "mark", "no last line end", "capitals"])
def test_every_table_gives_the_same_pairs_however_it_is_written(name: str, change: str) -> None:
    content, columns = TABLES[name]
    if change == "CRLF":
        content = content.replace(b"\n", b"\r\n")
    if change == "mark":
        content = b"\xef\xbb\xbf" + content
    if change == "no last line end":
        content = content.rstrip(b"\n")
    written = write({"gz": f"{name}.gz", "capitals": name.upper()}.get(change, name), content)
    corpus = open_corpus([written], columns=columns)
    assert texts(corpus) == PAIRS and not corpus.skipped.total
    assert corpus.name == written


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_two_files_are_paired_line_by_line(suffix: str) -> None:
    a = write(f"train.en{suffix}", b"The cat sleeps.\r\n  The dog eats.\t\n")
    b = write(f"train.fr{suffix}", b"\xef\xbb\xbfLe chat dort.\nLe\tchien mange.")
    corpus = open_corpus([a, b])
    assert list(corpus.pairs()) == [(1, PAIRS[0]), (2, PAIRS[1])]
    assert corpus.name == f"{a} + {b}" and corpus.place(2) == f"{a}:2"


def test_a_corpus_reads_the_same_again_and_again() -> None:
    corpus = open_corpus([write("a.tsv", PLAIN + b"\tempty\n")])
    next(corpus.pairs())
    assert corpus.skipped.total == 0  # that pass was not complete
    assert list(corpus.pairs()) == list(corpus.pairs())
    assert corpus.skipped.total == 1


@pytest.mark.parametrize("strange", ["\u2028", "\x0b", "\x0c", "\x1c", "\x85", "\r"])
def test_only_a_line_feed_ends_a_line(strange: str) -> None:
    write("a", f"one{strange}two\nthree\n".encode())
    write("b", b"un deux\ntrois\n")
    assert len(texts(open_corpus(["a", "b"]))) == 2
    assert len(list(read_lines("a"))) == 2


def test_a_quoted_field_may_span_lines_and_is_known_by_the_first() -> None:
    write("a.csv", b'source,target\n"one\r\n""two""",un\nthree,trois\n')
    assert list(open_corpus(["a.csv"]).pairs()) == [(2, Pair('one "two"', "un")), (4, Pair("three", "trois"))]


SKIPPED = {
    "an empty side": (b"\t\n", Reason.EMPTY),
    "a blank line": (b"\n", Reason.EMPTY),
    "white space": ("\u3000\t \u00a0\n".encode(), Reason.EMPTY),
    "a NUL": (b"a\0\tb\n", Reason.NUL),
    "a long line": (LONG + b"\tb\n", Reason.LONG),
    "a line of 10 MB": (b"x" * 10_000_000 + b"\tb\n", Reason.LONG),
    "half a character": (b"caf\xc3\tb\n", Reason.ENCODING),
    "Latin-1": (b"caf\xe9\tb\n", Reason.ENCODING),
    "one column": (b"no tab here\n", Reason.COLUMNS),
}


@pytest.mark.parametrize("fault", SKIPPED)
def test_a_bad_line_is_left_out_and_counted_with_its_place(fault: str) -> None:
    line, reason = SKIPPED[fault]
    corpus = open_corpus([write("a.tsv", PLAIN + line + PLAIN + line)])
    assert [number for number, _ in corpus.pairs()] == [1, 2, 4, 5]
    assert corpus.skipped.counts == {reason: 2} and corpus.skipped.first == {reason: "a.tsv:3"}


CSV_SKIPPED = {
    "a blank line": (b"\n", Reason.EMPTY),
    "one cell": (b"alone\n", Reason.COLUMNS),
    "an empty cell": (b"a,\n", Reason.EMPTY),
    "a NUL": (b"a,b\0\n", Reason.NUL),
    "bad bytes in quotes": (b'"a\n\xff",b\n', Reason.ENCODING),
    "a long line": (b'"' + LONG + b'",b\n', Reason.LONG),
    "a quote opened on a long line": (b'"' + LONG + b'\nx",b\n', Reason.LONG),
    "a quote closed on a long line": (b'"x\n' + LONG + b'",b\n', Reason.LONG),
}


@pytest.mark.parametrize("fault", CSV_SKIPPED)
def test_a_bad_record_spoils_no_other(fault: str) -> None:
    record, reason = CSV_SKIPPED[fault]
    corpus = open_corpus([write("a.csv", b"source,target\none,un\n" + record + b"two,deux\n")])
    assert texts(corpus) == [("one", "un"), ("two", "deux")]
    assert corpus.skipped.counts == {reason: 1} and corpus.skipped.first == {reason: "a.csv:3"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\n", Reason.EMPTY),
        (b'{"source": null, "target": "b"}\n', Reason.EMPTY),
        (b'{"source": "a", "target": " "}\n', Reason.EMPTY),
        (b'{"source": "a\\u0000", "target": "b"}\n', Reason.NUL),
        (b'{"source": "\\ud800", "target": "b"}\n', Reason.ENCODING),
        (b'{"source": "\xff", "target": "b"}\n', Reason.ENCODING),
        (b'{"source": "' + LONG + b'", "target": "b"}\n', Reason.LONG),
    ],
)
def test_a_bad_object_is_left_out_and_counted(line: bytes, reason: Reason) -> None:
    corpus = open_corpus([write("a.jsonl", b'{"source": "one", "target": "un"}\n' + line)])
    assert texts(corpus) == [("one", "un")]
    assert corpus.skipped.counts == {reason: 1} and corpus.skipped.first == {reason: "a.jsonl:2"}


def test_what_was_left_out_reads_as_one_sentence() -> None:
    write("train.en", b"one\n\n\nfour\n")
    write("train.fr", b"un\ndeux\ntrois\n" + LONG + b"\n")
    assert texts(corpus := open_corpus(["train.en", "train.fr"])) == [("one", "un")]
    assert str(corpus.skipped) == (
        "left out 3 pairs: 2 with an empty side (first: train.en:2), 1 longer than 1,048,576 bytes (first: train.fr:4)"
    )
    assert json.loads(json.dumps(corpus.skipped.as_table()))["long"] == {"count": 1, "first": "train.fr:4"}


def test_a_line_of_exactly_the_limit_is_kept() -> None:
    write("a", b"x" * LONGEST_LINE + b"\r\n" + LONG + b"\n" + LONG)
    write("b", b"un\ndeux\ntrois\n")
    assert [number for number, _ in open_corpus(["a", "b"]).pairs()] == [1]


REFUSED = {
    "empty.tsv": (b"", ["empty.tsv", "empty"]),
    "empty.tsv.gz": (b"", ["empty.tsv.gz", "empty"]),
    "blank.tsv": (b"\n\n\n", ["blank.tsv", "left out 3 pairs", "blank.tsv:1"]),
    "header.csv": (b"source,target\n", ["header.csv"]),
    "narrow.csv": (b"a;b\nc;d\n", ["narrow.csv:1", "one column", "comma"]),
    "unclosed.csv": (b'source,target\none,un\n"two,deux\n', ["unclosed.csv:3", "quote"]),
    "endless.csv": (b'source,target\n"' + b"word word,\n" * 20_000, ["endless.csv:2", "quote"]),
    "after.csv": (b'source,target\n"one"x,un\n', ["after.csv:2"]),
    "cut.jsonl": (b'{"source": "a", "target": "b"}\n{"source": "a", "ta\n', ["cut.jsonl:2", "JSON"]),
    "list.jsonl": (b'["a", "b"]\n', ["list.jsonl:1", "object"]),
    "other.jsonl": (b'{"en": "a", "fr": "b"}\n', ["other.jsonl:1", "source", "text.columns=en,fr"]),
    "missing.jsonl": (
        b'{"source": "a", "target": "b"}\n{"source": "a", "targets": "b"}\n',
        ["missing.jsonl:2", "targets"],
    ),
    "number.jsonl": (b'{"source": "a", "target": 5}\n', ["number.jsonl:1", "target", "text"]),
    "bare.jsonl": (b'{"translation": {"en": "a", "fr": "b"}}\n{"translation": "b"}\n', ["bare.jsonl:2", "en"]),
    "deep.jsonl": (b"[" * 60_000 + b"\n", ["deep.jsonl:1", "JSON"]),
    "digits.jsonl": (b'{"source": ' + b"9" * 60_000 + b"}\n", ["digits.jsonl:1"]),
    "utf16.tsv": ("a\tb\n".encode("utf-16"), ["utf16.tsv", "UTF-16", "iconv -f utf-16"]),
    "utf32.tsv": ("a\tb\n".encode("utf-32-be"), ["utf32.tsv", "NUL"]),
    "latin.tsv": (b"caf\xe9\tcaf\xe9\n" * 10 + PLAIN, ["latin.tsv:1", "iconv -f latin1 -t utf-8 latin.tsv"]),
    "hidden.tsv": (gzip.compress(PLAIN), ["hidden.tsv", "gzip"]),
    "packed.tsv": (b"\xfd7zXZ\x00rest", ["packed.tsv", "xz -d packed.tsv"]),
    "archive.csv": (b"PK\x03\x04rest", ["archive.csv", "zip"]),
    "noise.tsv": (bytes(range(128, 256)) * 50, ["noise.tsv"]),
    "train.en": (b"one side\n", ["train.en", ".tsv, .csv, .jsonl"]),
    "data.json": (b"{}", ["data.json", ".jsonl"]),
    "data.tsv.xz": (b"x", ["data.tsv.xz", ".tsv"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_trusted_is_refused_with_its_name_and_line(name: str) -> None:
    content, parts = REFUSED[name]
    message = refused(write(name, content))
    assert all(part in message for part in parts), message


@pytest.mark.parametrize("damage", ["cut", "changed", "not gzip", "rubbish after"])
def test_a_damaged_gzip_file_is_refused(damage: str) -> None:
    packed = gzip.compress(os.urandom(5000).hex().encode() + b"\n" + PLAIN)
    broken = {
        "cut": packed[: len(packed) // 2],
        "changed": packed[:60] + bytes(200) + packed[260:],
        "not gzip": PLAIN,
        "rubbish after": packed + b"rubbish",
    }
    Path("a.tsv.gz").write_bytes(broken[damage])
    assert "a.tsv.gz is not a whole gzip file" in refused("a.tsv.gz")
    with pytest.raises(DataError, match=r"a\.tsv\.gz is not a whole gzip file"):
        list(read_lines("a.tsv.gz"))


@pytest.mark.parametrize(("one", "other"), [(120, 119), (3, 5), (1, 2000)])
def test_unequal_files_are_refused_with_both_counts(one: int, other: int) -> None:
    write("train.en", b"word\n" * one)
    write("train.fr", b"mot\n" * other)
    message = refused("train.en", "train.fr").replace("1 line,", "1 lines,")
    assert f"train.en has {one} lines, train.fr has {other} lines." in message


def test_a_few_invalid_lines_do_not_condemn_a_file() -> None:
    corpus = open_corpus([write("a.tsv", b"caf\xe9\tx\n" * 10 + PLAIN * 45)])
    assert len(texts(corpus)) == 90 and corpus.skipped.counts == {Reason.ENCODING: 10}


@pytest.mark.parametrize(
    ("names", "part"),
    [
        ([], "0"),
        (["a", "b", "c"], "3"),
        (["train.en", "-"], "-"),
        (["train.en", "builtin:en-fr"], "builtin:en-fr"),
        (["train.en", "table.tsv"], "table.tsv"),
        (["table.csv.gz", "train.en"], "table.csv.gz"),
        (["train.en", "train.en"], "both sides"),
        (["train.en", "./train.en"], "both sides"),
        (["train.en", "link"], "both sides"),
        (["train.em", "train.en"], "Did you mean train.en?"),
        (["nowhere/train.en", "train.en"], "nowhere"),
        (["train.en/x", "train.en"], "train.en/x"),
        (["folder"], "folder is a folder"),
        (["pipe"], "only once"),
        (["loop"], "loop"),
        (["a\0b.tsv"], "null"),
        (["two\nlines.tsv"], "'two\\nlines.tsv'"),
        (["x" * 300 + ".tsv"], "name"),
        ([""], "''"),
        (["builtin:en-fr/vaild"], "Did you mean builtin:en-fr/valid?"),
    ],
)
def test_names_that_stand_for_no_corpus_are_refused(names: list[str], part: str) -> None:
    write("train.en", b"one\n")
    Path("link").symlink_to("train.en")
    Path("loop").symlink_to("loop")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    assert part in refused(*names)


@pytest.mark.parametrize(
    ("name", "columns", "part"),
    [
        ("a.csv", "en,frr", "Did you mean fr?"),
        ("a.csv", "en,9", "'9'"),
        ("a.jsonl", "en,frr", "Did you mean fr?"),
        ("a.tsv", "en,fr", "numbers"),
        ("a.tsv", "0,1", "numbers"),
        ("a.tsv", "1,9", "too few columns"),
        ("a.tsv", "1", "SOURCE,TARGET"),
        ("a.csv", "en,en", "SOURCE,TARGET"),
    ],
)
def test_columns_that_are_not_there_are_refused(name: str, columns: str, part: str) -> None:
    write("a.csv", b"en,fr\none,un\n")
    write("a.tsv", b"one\tun\n")
    write("a.jsonl", b'{"en": "one", "fr": "un"}\n')
    assert part in refused(name, columns=columns)


def test_a_file_without_permission_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    write("a.tsv", PLAIN)
    monkeypatch.setattr(Path, "open", closed)  # root may read anything, so a real mode would prove nothing
    assert refused("a.tsv").startswith("a.tsv cannot be read: Permission denied")


def test_standard_input_is_read_once_and_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = here / "kept.tsv"
    stdin(monkeypatch, PLAIN)
    assert texts(open_corpus(["-"], spool=spool)) == PAIRS
    stdin(monkeypatch, b"something\telse\n")
    again = open_corpus(["-"], spool=spool)
    assert texts(again) == texts(again) == PAIRS and again.name == "stdin"
    assert [path.name for path in here.iterdir()] == ["kept.tsv"]


def test_without_a_spool_standard_input_leaves_nothing_behind(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module.tempfile, "gettempdir", lambda: str(here))
    stdin(monkeypatch, PLAIN)
    corpus = open_corpus(["-"], columns="2,1")
    assert texts(corpus) == texts(corpus) == [pair[::-1] for pair in PAIRS]
    assert len(list(here.iterdir())) == 1
    del corpus
    assert not list(here.iterdir())


def test_empty_standard_input_is_refused_and_not_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"")
    with pytest.raises(DataError, match="standard input"):
        open_corpus(["-"], spool=here / "kept.tsv")
    with pytest.raises(StorageError, match="nowhere"):
        open_corpus(["-"], spool=here / "nowhere" / "kept.tsv")
    assert not list(here.iterdir())


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "-"])
def test_no_line_to_translate_goes_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\xef\xbb\xbfone\r\n\n \ntwo\tthree\n" + LONG[1:] + b"\nend"
    write(name, content) if name != "-" else stdin(monkeypatch, content)
    assert list(read_lines(name)) == ["one", "", " ", "two\tthree", LONG[1:].decode(), "end"]


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"one\ncaf\xe9\n", "a.txt:2"), (b"one\n" + b"x" * 2_000_000, "a.txt:2"), (b"\xff\xfea\0", "UTF-16")],
)
def test_a_line_that_cannot_be_translated_is_an_error_with_its_place(content: bytes, part: str) -> None:
    with pytest.raises(DataError, match=part) as caught:
        list(read_lines(write("a.txt", content)))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_told_before_the_first_line_is_asked_for() -> None:
    write("news.en", b"one\n")
    with pytest.raises(DataError, match=r"Did you mean news\.en\?"):
        read_lines("new.en")
    assert list(read_lines(write("empty", b""))) == []


@pytest.mark.parametrize("name", [name for name in BUILTIN if BUILTIN[name].count <= 1000])
def test_built_in_corpora_hold_what_they_promise(name: str) -> None:
    pairs = list(open_corpus([name]).pairs())
    assert [number for number, _ in pairs] == list(range(1, BUILTIN[name].count + 1))
    assert pairs == list(open_corpus([name]).pairs())


def test_a_task_joins_by_a_line_in_the_dict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILTIN, "builtin:copy", Task(lambda count, seed: [Pair("a", "a")] * count, 3))
    assert len(texts(open_corpus(["builtin:copy"]))) == 3


def test_a_fingerprint_follows_the_content_and_nothing_else() -> None:
    write("a", b"one\ntwo\n")
    write("b", b"un\ndeux\n")
    first = open_corpus(["a", "b"]).fingerprint()
    os.utime("a", (0, 0))
    assert open_corpus(["./a", "b"]).fingerprint() == first
    others = {open_corpus(["b", "a"]).fingerprint(), open_corpus(["builtin:en-fr"]).fingerprint()}
    write("b", b"un\ntrois\n")
    assert len(others | {first, open_corpus(["a", "b"]).fingerprint()}) == 4
