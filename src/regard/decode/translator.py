"""Strings in, strings out: cut into ids, batch by length, search, join."""

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.config import DecodeConfig, read
from regard.decode.beam import beam_search
from regard.decode.sample import greedy, sample
from regard.errors import ConfigError, DataError
from regard.models.interface import Source, Writer
from regard.see.beam import Step, Tree, grow
from regard.see.knockout import Knockouts, knockouts, of_writer
from regard.see.trace import Facts, Trace
from regard.see.tracing import Watched, trace_pair
from regard.text.tokenizer import BEGIN, END, PAD, Tokenizer

Progress = Callable[[int, int], None]
"""Told how many texts are done, of how many."""

_DEFAULTS = DecodeConfig()
# Target positions whose words are scored at a time: the scores over a large vocabulary would not fit all at once.
_SCORED_AT_A_TIME = 512


class Translation(NamedTuple):
    """A text written by the model, and the score by which it was chosen."""

    text: str
    score: float


class Translator:
    """A model with its tokenizer and settings. Settings given to a method hold for that call alone.

    A text's translation does not depend on the texts beside it (but for words whose scores differ by no more than
    rounding errors). A blank text gives an empty translation.
    """

    def __init__(
        self,
        model: Writer,
        tokenizer: Tokenizer,
        config: DecodeConfig = _DEFAULTS,
        device: torch.device | str = "cpu",
        facts: Facts | None = None,
    ) -> None:
        """`facts` are what pictures of the model say of it."""
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.tokenizer = tokenizer
        self.config = config
        self.facts = facts or Facts(type(model).__name__)

    @overload
    def translate(self, texts: str, *, prefix: str = "", **settings: Any) -> str: ...

    @overload
    def translate(self, texts: Sequence[str], *, prefix: str | Sequence[str] = "", **settings: Any) -> list[str]: ...

    def translate(
        self, texts: str | Sequence[str], *, prefix: str | Sequence[str] = "", **settings: Any
    ) -> str | list[str]:
        """The best translation of each text; of one text alone, if one is given. Each begins with its prefix."""
        found = self.n_best([texts] if isinstance(texts, str) else texts, prefix=prefix, **settings)
        best = [translations[0].text for translations in found]
        return best[0] if isinstance(texts, str) else best

    def n_best(
        self,
        texts: Sequence[str],
        *,
        prefix: str | Sequence[str] = "",
        progress: Progress | None = None,
        **settings: Any,
    ) -> list[list[Translation]]:
        """The `n_best` translations of each text, best first."""
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise DataError(f"{len(prefixes)} prefixes for {len(texts)} texts. Give one for each, or one for all.")
        return self._search(list(texts), prefixes, self._with(settings), progress)

    def stream(
        self, lines: Iterable[str], *, chunk: int = 1000, prefix: str = "", **settings: Any
    ) -> Iterator[list[Translation]]:
        """`n_best` for any number of lines: reads and translates a chunk at a time, and yields in the lines' order.

        A line the model cannot read, such as one that is too long, is reported by a logged warning and gives an
        empty translation, so that the output keeps in step with the input.
        """
        if chunk < 1:
            raise ConfigError(f"A chunk of {chunk} lines can hold nothing. Give at least 1.")
        return self._stream(iter(lines), chunk, prefix, self._with(settings))

    def log_probabilities(self, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[float, int]]:
        """For each pair, the natural logarithm of the target's probability and its number of tokens, end counted."""
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources but {len(targets)} targets. Give as many of each.")
        reads = [[*ids, END] for ids in self._encode(sources)]
        writes = [[BEGIN, *ids, END] for ids in self._encode(targets)]
        lengths = [max(len(read), len(write)) for read, write in zip(reads, writes, strict=True)]
        totals = [0.0] * len(sources)
        for batch in _batches(range(len(sources)), lengths, self.config.batch_tokens):
            with evaluating(self.model), _naming(sources[batch[0]]):
                source = self._source([reads[n] for n in batch])
                scored = self._score(source, self._padded([writes[n] for n in batch]))
            for n, total in zip(batch, scored, strict=True):
                totals[n] = total
        return [(total, len(ids) - 1) for total, ids in zip(totals, writes, strict=True)]

    def attention(self, source: str, target: str | None = None, **settings: Any) -> Trace:
        """Where the model looks as it reads the source and writes the target, or else its own translation.

        The result shows itself in a notebook, and has `svg()`, `text()`, `csv()` and `save("page.html")`.
        """
        return self.watched(source, target, **settings).trace

    def watched(self, source: str, target: str | None = None, **settings: Any) -> Watched:
        """The same, with the modules that did it."""
        if not source.strip():
            raise DataError("There is nothing to look at in an empty text. Give a sentence.")
        written = self.translate(source, **settings) if target is None else target
        read, write = self._encode([source, written])
        with evaluating(self.model), _naming(source):
            return trace_pair(self.model, self.tokenizer, self.facts, read, write, source)

    def knockouts(
        self, source: str, target: str | None = None, *, word: str | int | None = None, **settings: Any
    ) -> Knockouts:
        """What becomes of one word of the target, and of the translation, as each head is switched off in turn.

        The word is given by its spelling or its token's number; by default it is the one that needs the heads most.
        """
        written = self.translate(source, **settings) if target is None else target
        watched = self.watched(source, written)
        read, write = self._encode([source, written])
        reads = self._source([[*read, END]])
        with evaluating(self.model):
            row = watched.trace.rows["predicted"]
            asked = of_writer(self.model, self.tokenizer, row, reads, [BEGIN, *write], [*write, END])
            return knockouts(watched, asked, word, lambda: self.translate(source, **settings))

    def search_tree(self, source: str, *, prefix: str = "", **settings: Any) -> Tree:
        """What beam search looked at on its way to the translation, and how it chose."""
        if not source.strip():
            raise DataError("There is nothing to search for in an empty text. Give a sentence.")
        config = self._with(settings)
        read, forced = self._encode([source, prefix])
        steps: list[Step] = []
        with evaluating(self.model), _naming(source):
            beam_search(self.model, self._source([[*read, END]]), config, [forced], record=steps.append)
        return grow(steps, self.tokenizer, config)

    def _with(self, settings: dict[str, Any]) -> DecodeConfig:
        return read({"decode": {**dataclasses.asdict(self.config), **settings}}).decode if settings else self.config

    def _search(
        self, texts: list[str], prefixes: list[str], config: DecodeConfig, progress: Progress | None = None
    ) -> list[list[Translation]]:
        reads = [[*ids, END] for ids in self._encode(texts)]
        forced = self._encode(prefixes)
        search = sample if config.sample else beam_search if config.beam > 1 else greedy
        rows = config.n_best if config.sample else config.beam
        found = [[Translation("", 0.0)] for _ in texts]
        written = [n for n, text in enumerate(texts) if text.strip() and reads[n] != [END]]
        done = len(texts) - len(written)
        for batch in _batches(written, [len(ids) for ids in reads], config.batch_tokens // rows):
            with evaluating(self.model), _naming(texts[batch[0]]):
                source = self._source([reads[n] for n in batch])
                results = search(self.model, source, config, [forced[n] for n in batch])
            for n, hypotheses in zip(batch, results, strict=True):
                found[n] = [Translation(self.tokenizer.decode(ids), score) for ids, score, _ in hypotheses]
            done += len(batch)
            if progress:
                progress(done, len(texts))
        return found

    def _stream(
        self, lines: Iterator[str], size: int, prefix: str, config: DecodeConfig
    ) -> Iterator[list[Translation]]:
        before = 0
        while chunk := [line.rstrip("\r\n") for line in islice(lines, size)]:
            try:
                yield from self._search(chunk, [prefix] * len(chunk), config)
            except DataError:
                # One line is to blame and the others are not; alone, each of them gets the same translation.
                yield from self._one_by_one(chunk, prefix, config, first=before + 1)
            before += len(chunk)

    def _one_by_one(
        self, lines: list[str], prefix: str, config: DecodeConfig, first: int
    ) -> Iterator[list[Translation]]:
        for number, line in enumerate(lines, first):
            try:
                yield self._search([line], [prefix], config)[0]
            except DataError as error:
                logging.getLogger(__name__).warning("Line %d is left empty. %s", number, error)
                yield [Translation("", 0.0)]

    def _score(self, source: Source, target_BT: Tensor) -> list[float]:
        hidden_BTW = self.model(source, target_BT[:, :-1]).hidden_BTW
        next_BT = target_BT[:, 1:]
        real_BT = next_BT != PAD
        total_B = torch.zeros(len(target_BT), dtype=torch.float64)
        parts = zip(
            torch.split(real_BT.nonzero()[:, 0], _SCORED_AT_A_TIME),
            torch.split(hidden_BTW[real_BT], _SCORED_AT_A_TIME),
            torch.split(next_BT[real_BT], _SCORED_AT_A_TIME),
            strict=True,
        )
        for row_X, hidden_XW, next_X in parts:
            loss_X = cross_entropy(self.model.words(hidden_XW).float(), next_X, reduction="none")
            total_B.index_add_(0, row_X.cpu(), -loss_X.cpu().double())
        return [float(total) for total in total_B]

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self.tokenizer.encode(texts)
        for text, ids in zip(texts, encoded, strict=True):
            if len(ids) > self.model.longest_source:
                raise DataError(
                    f"A text of {len(ids)} tokens is too long; {self.model.longest_source} are the most. "
                    f"Split it into sentences, one on each line. It begins: {_shortened(text)}"
                )
        return encoded

    def _source(self, sentences: list[list[int]]) -> Source:
        return Source(self._padded(sentences), torch.tensor([len(ids) for ids in sentences], device=self.device))

    def _padded(self, sentences: list[list[int]]) -> Tensor:
        longest = max(map(len, sentences))
        return torch.tensor([ids + [PAD] * (longest - len(ids)) for ids in sentences], device=self.device)


def _batches(numbers: Iterable[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """The numbers, longest first, in batches of no more than `tokens`, padding counted; never an empty batch."""
    batch: list[int] = []
    for n in sorted(numbers, key=lambda n: -lengths[n]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(n)
    if batch:
        yield batch


@contextmanager
def evaluating(model: Writer) -> Iterator[None]:
    """Without dropout and gradients; afterwards every module is in the mode it was found in, as training may go on."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def _naming(longest: str) -> Iterator[None]:
    """Add to a model's complaint, which is about length, the text it is about: the longest of the batch."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{error} The text begins: {_shortened(longest)}") from None


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
