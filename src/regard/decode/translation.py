"""Strings in, strings out: cut into ids, hand them to an engine, join what it wrote. No torch."""

import dataclasses
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from regard.config import DecodeConfig, read
from regard.decode.hypothesis import Hypothesis
from regard.errors import ConfigError, DataError
from regard.text.arguments import each_text, text_of, texts_of, whole_number
from regard.text.tokenizers.tokenizer import END, Tokenizer

if TYPE_CHECKING:
    from regard.decode.lexical_shortlist import Shortlist

Progress = Callable[[int, int], None]
"""Told how many texts are done, of how many."""


class Translation(NamedTuple):
    """A text written by the model, and the score by which it was chosen."""

    text: str
    score: float


class Asked(NamedTuple):
    """One text to translate."""

    number: int
    """Its place among the texts of one call."""
    text: str
    source: list[int]
    """Its ids, and the end."""
    prefix: list[int]
    """Ids with which its translation begins."""


Written = Iterator[tuple[Sequence[Asked], Sequence[list[Hypothesis]]]]
"""Some texts at a time, and the hypotheses of each."""


class TextTranslator(ABC):
    """What every engine's translator does alike. Settings given to a method hold for that call alone.

    A text's translation does not depend on the texts beside it (but for words whose scores differ by no more than
    rounding errors, and for CTranslate2's shortlist, which the texts of a batch share). A blank text gives an empty
    translation.
    """

    def __init__(
        self, tokenizer: Tokenizer, config: DecodeConfig, longest_source: int, folder: Path | None = None
    ) -> None:
        """`longest_source` is how many tokens a text may have; `folder` is where a shortlist is."""
        self.tokenizer = tokenizer
        self.config = config
        self._longest_source = longest_source
        self._folder = folder

    @cached_property
    def _shortlist(self) -> "Shortlist":
        # Few need it, and numpy would cost every start.
        from regard.decode.lexical_shortlist import open_shortlist

        if self._folder is None:
            raise ConfigError(
                "A shortlist is learned from a model folder's training text, and this model has no folder. "
                "Set decode.shortlist=0."
            )
        return open_shortlist(self._folder, self.tokenizer)

    def _written(self, asked: list[Asked], config: DecodeConfig) -> Written:
        return self._write(self._batches(asked, config), config)

    @abstractmethod
    def _batches(self, asked: list[Asked], config: DecodeConfig) -> list[list[Asked]]:
        """The texts that are best written together."""

    @abstractmethod
    def _write(self, batches: list[list[Asked]], config: DecodeConfig) -> Written:
        """The hypotheses of every text, best first: some texts at a time, in any order."""

    @overload
    def translate(self, texts: str, *, prefix: str | Iterable[str] = "", **settings: Any) -> str: ...

    @overload
    def translate(self, texts: Iterable[str], *, prefix: str | Iterable[str] = "", **settings: Any) -> list[str]: ...

    def translate(
        self, texts: str | Iterable[str], *, prefix: str | Iterable[str] = "", **settings: Any
    ) -> str | list[str]:
        """The best translation of each text; of one text alone, if one is given. Each begins with its prefix."""
        given = texts_of(texts, "texts")
        return given.answer([found[0].text for found in self.n_best(given.texts, prefix=prefix, **settings)])

    @overload
    def n_best(
        self, texts: str, *, prefix: str | Iterable[str] = "", progress: Progress | None = None, **settings: Any
    ) -> list[Translation]: ...

    @overload
    def n_best(
        self,
        texts: Iterable[str],
        *,
        prefix: str | Iterable[str] = "",
        progress: Progress | None = None,
        **settings: Any,
    ) -> list[list[Translation]]: ...

    def n_best(
        self,
        texts: str | Iterable[str],
        *,
        prefix: str | Iterable[str] = "",
        progress: Progress | None = None,
        **settings: Any,
    ) -> list[Translation] | list[list[Translation]]:
        """The `n_best` translations of each text, best first; of one text alone, if one is given."""
        given, begin = texts_of(texts, "texts"), texts_of(prefix, "prefix")
        prefixes = begin.texts * len(given.texts) if begin.alone else begin.texts
        if len(prefixes) != len(given.texts):
            raise DataError(
                f"{len(prefixes)} prefixes for {len(given.texts)} texts. Give one for each, or one for all."
            )
        return given.answer(self._search(given.texts, prefixes, self._with(settings), progress))

    def stream(
        self, lines: str | Iterable[str], *, chunk: int = 1000, prefix: str = "", **settings: Any
    ) -> Iterator[list[Translation]]:
        """`n_best` for any number of lines: reads and translates a chunk at a time, and yields in the lines' order.

        A line the model cannot read, such as one that is too long, is reported by a logged warning and gives an
        empty translation, so that the output keeps in step with the input.
        """
        if whole_number(chunk, "chunk") < 1:
            raise ConfigError(f"A chunk of {chunk} lines can hold nothing. Give at least 1.")
        return self._stream(each_text(lines, "lines"), chunk, text_of(prefix, "prefix"), self._with(settings))

    def _with(self, settings: dict[str, Any]) -> DecodeConfig:
        return read({"decode": {**dataclasses.asdict(self.config), **settings}}).decode if settings else self.config

    def _search(
        self, texts: list[str], prefixes: list[str], config: DecodeConfig, progress: Progress | None = None
    ) -> list[list[Translation]]:
        if config.mbr:
            return self._by_consensus(texts, prefixes, config, progress)
        reads, forced = self._encode(texts), self._encode(prefixes)
        found = [[Translation("", 0.0)] for _ in texts]
        asked = [
            Asked(number, text, [*reads[number], END], forced[number])
            for number, text in enumerate(texts)
            if text.strip() and reads[number]
        ]
        done = len(texts) - len(asked)
        for some, results in self._written(asked, config):
            for one, hypotheses in zip(some, results, strict=True):
                found[one.number] = [Translation(self.tokenizer.decode(ids), score) for ids, score, _ in hypotheses]
            done += len(some)
            if progress:
                progress(done, len(texts))
        return found

    def _by_consensus(
        self, texts: list[str], prefixes: list[str], config: DecodeConfig, progress: Progress | None
    ) -> list[list[Translation]]:
        """The candidates are the samples, and what beam search finds; the samples alone are what they are compared with."""
        from regard.decode.mbr import by_consensus  # with numpy, which would cost every start

        searching = dataclasses.replace(config, mbr=0, n_best=config.beam)
        drawing = dataclasses.replace(config, mbr=0, sample=True, n_best=config.mbr)
        searched = self._search(texts, prefixes, searching)
        drawn = self._search(texts, prefixes, drawing, progress)
        both = zip(searched, drawn, strict=True)
        return [by_consensus(candidates, samples)[: config.n_best] for candidates, samples in both]

    def _stream(
        self, lines: Iterator[str], size: int, prefix: str, config: DecodeConfig
    ) -> Iterator[list[Translation]]:
        for first, chunk in chunks(lines, size):
            yield from self._chunk(chunk, prefix, config, first)

    def _chunk(self, lines: list[str], prefix: str, config: DecodeConfig, first: int) -> Iterable[list[Translation]]:
        try:
            return self._search(lines, [prefix] * len(lines), config)
        except DataError:
            # One line is to blame and the others are not; alone, each of them gets the same translation.
            return self._one_by_one(lines, prefix, config, first)

    def _one_by_one(
        self, lines: list[str], prefix: str, config: DecodeConfig, first: int
    ) -> Iterator[list[Translation]]:
        for number, line in enumerate(lines, first):
            try:
                yield self._search([line], [prefix], config)[0]
            except DataError as error:
                logging.getLogger(__name__).warning("Line %d is left empty. %s", number, error)
                yield [Translation("", 0.0)]

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self.tokenizer.encode(texts)
        for text, ids in zip(texts, encoded, strict=True):
            if len(ids) > self._longest_source:
                raise DataError(
                    f"A text of {len(ids)} tokens is too long; {self._longest_source} are the most. "
                    f"Split it into sentences, one on each line. It begins: {shortened(text)}"
                )
        return encoded


def chunks(lines: Iterator[str], size: int) -> Iterator[tuple[int, list[str]]]:
    """So many lines at a time, without what ends them, and the number of the first.

    >>> list(chunks(iter("abc"), 2))
    [(1, ['a', 'b']), (3, ['c'])]
    """
    first = 1
    while chunk := [line.rstrip("\r\n") for line in islice(lines, size)]:
        yield first, chunk
        first += len(chunk)


def shortened(text: str) -> str:
    """The beginning of a text, for a message."""
    return repr(text if len(text) <= 60 else text[:60] + "…")
