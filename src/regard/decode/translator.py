"""Translating with torch: batches by length, searched; and what can be seen of a model as it translates."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, overload

import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.decode.active_vocabulary import Columns
from regard.decode.beam_search import beam_search
from regard.decode.hypothesis import Hypothesis
from regard.decode.sampling import greedy, sample
from regard.decode.scoring import Judged, judge
from regard.decode.search_record import Step
from regard.decode.thread_pool import side_by_side
from regard.decode.translation import Asked, TextTranslator, Written, shortened
from regard.errors import DataError
from regard.interpret.ablation import Knockouts, knockouts, of_writer
from regard.interpret.recording import Watched, trace_pair
from regard.interpret.search_tree import Tree, grow
from regard.interpret.trace import Facts, Trace
from regard.models.base import Source, Writer
from regard.text.arguments import pairs_of, text_of, word_of
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, Tokenizer

_DEFAULTS = DecodeConfig()
Search = Callable[[Writer, Source, DecodeConfig, Sequence[Sequence[int]], Columns | None], list[list[Hypothesis]]]
"""(model, source, settings, prefixes, words that may be written) -> the hypotheses of each text, best first."""


class Translator(TextTranslator):
    """A model with its tokenizer and settings: translates with torch, and shows what it does on the way."""

    def __init__(
        self,
        model: Writer,
        tokenizer: Tokenizer,
        config: DecodeConfig = _DEFAULTS,
        device: torch.device | str = "cpu",
        facts: Facts | None = None,
        folder: Path | None = None,
    ) -> None:
        """`facts` are what pictures of the model say of it; `folder` is where it lies, if it does."""
        super().__init__(tokenizer, config, model.longest_source, folder)
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.facts = facts or Facts(type(model).__name__)

    @overload
    def log_probabilities(self, sources: str, targets: str) -> tuple[float, int]: ...  # type: ignore[overload-overlap]

    @overload
    def log_probabilities(self, sources: Iterable[str], targets: Iterable[str]) -> list[tuple[float, int]]: ...

    def log_probabilities(
        self, sources: str | Iterable[str], targets: str | Iterable[str]
    ) -> tuple[float, int] | list[tuple[float, int]]:
        """For each pair, the natural logarithm of the target's probability and its number of tokens, end counted."""
        given, beside = pairs_of(sources, targets)
        judged = self.judge(given.texts, beside.texts)
        return given.answer([(one.log_probability, one.tokens) for one in judged])

    @overload
    def judge(self, sources: str, targets: str) -> Judged: ...  # type: ignore[overload-overlap]

    @overload
    def judge(self, sources: Iterable[str], targets: Iterable[str]) -> list[Judged]: ...

    def judge(self, sources: str | Iterable[str], targets: str | Iterable[str]) -> Judged | list[Judged]:
        """How likely each target is, and how many of its tokens the model would have written after the right ones."""
        given, beside = pairs_of(sources, targets)
        reads = [[*ids, END] for ids in self._encode(given.texts)]
        writes = [[BEGIN, *ids, END] for ids in self._encode(beside.texts)]
        lengths = [max(len(read), len(write)) for read, write in zip(reads, writes, strict=True)]
        found: dict[int, Judged] = {}
        for batch in _batches(range(len(reads)), lengths, self.config.batch_tokens):
            with evaluating(self.model), _naming(given.texts[batch[0]]):
                source = self._source([reads[n] for n in batch])
                judged = judge(self.model, source, self._padded([writes[n] for n in batch]))
            found |= zip(batch, judged, strict=True)
        return given.answer([found[n] for n in range(len(reads))])

    def attention(self, source: str, target: str | None = None, **settings: Any) -> Trace:
        """Where the model looks as it reads the source and writes the target, or else its own translation.

        The result shows itself in a notebook, and has `svg()`, `text()`, `csv()` and `save("page.html")`.
        """
        return self.watched(source, target, **settings).trace

    def watched(self, source: str, target: str | None = None, **settings: Any) -> Watched:
        """The same, with the modules that did it."""
        source, config = text_of(source, "source"), self._with(settings)
        written = None if target is None else text_of(target, "target")
        if not source.strip():
            raise DataError("There is nothing to look at in an empty text. Give a sentence.")
        written = self._best(source, config) if written is None else written
        read, write = self._encode([source, written])
        with evaluating(self.model), _naming(source):
            return trace_pair(self.model, self.tokenizer, self.facts, read, write, source)

    def knockouts(
        self, source: str, target: str | None = None, *, word: str | int | None = None, **settings: Any
    ) -> Knockouts:
        """What becomes of one word of the target, and of the translation, as each head is switched off in turn.

        The word is given by its spelling or its token's number; by default it is the one that needs the heads most.
        """
        source, word, config = text_of(source, "source"), word_of(word), self._with(settings)
        written = None if target is None else text_of(target, "target")
        written = self._best(source, config) if written is None else written
        watched = self.watched(source, written)
        read, write = self._encode([source, written])
        reads = self._source([[*read, END]])
        with evaluating(self.model):
            row = watched.trace.rows["predicted"]
            asked = of_writer(self.model, self.tokenizer, row, reads, [BEGIN, *write], [*write, END])
            return knockouts(watched, asked, word, lambda: self._best(source, config))

    def search_tree(self, source: str, *, prefix: str = "", **settings: Any) -> Tree:
        """What beam search looked at on its way to the translation, and how it chose."""
        source, prefix = text_of(source, "source"), text_of(prefix, "prefix")
        if not source.strip():
            raise DataError("There is nothing to search for in an empty text. Give a sentence.")
        config = self._with(settings)
        read, forced = self._encode([source, prefix])
        reads = [[*read, END]]
        steps: list[Step] = []
        with evaluating(self.model), _naming(source):
            columns = self._columns(reads, [forced], config)
            beam_search(self.model, self._source(reads), config, [forced], columns, steps.append)
        return grow(steps, self.tokenizer, config)

    def _best(self, text: str, config: DecodeConfig) -> str:
        return self._search([text], [""], config)[0][0].text

    def _batches(self, asked: list[Asked], config: DecodeConfig) -> list[list[Asked]]:
        rows = config.n_best if config.sample else config.beam
        lengths = [len(one.source) for one in asked]
        # Not cut smaller so that every thread has one: small batches would wait for Python more than they gain.
        numbered = _batches(range(len(asked)), lengths, config.batch_tokens // rows)
        return [[asked[n] for n in numbers] for numbers in numbered]

    def _write(self, batches: list[list[Asked]], config: DecodeConfig) -> Written:
        search = self._chosen(config)
        if config.shortlist:
            _ = self._shortlist  # learned now, if it must be, and not by every thread

        def write(batch: list[Asked]) -> list[list[Hypothesis]]:
            with torch.inference_mode(), _naming(batch[0].text):
                reads, prefixes = [one.source for one in batch], [one.prefix for one in batch]
                columns = self._columns(reads, prefixes, config)
                return search(self.model, self._source(reads), config, prefixes, columns)

        with evaluating(self.model):
            yield from side_by_side(write, batches, self.device)

    def _chosen(self, config: DecodeConfig) -> Search:
        if config.sample:
            return sample
        return beam_search if config.beam > 1 else greedy

    def _columns(
        self, reads: Sequence[list[int]], prefixes: Sequence[list[int]], config: DecodeConfig
    ) -> Columns | None:
        """The words these texts may be written with, if not all."""
        if not config.shortlist:
            return None
        texts = zip(reads, prefixes, strict=True)
        candidates = [self._shortlist.candidates(ids, config.shortlist, prefix) for ids, prefix in texts]
        return Columns(candidates, self.device)

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
        raise DataError(f"{error} The text begins: {shortened(longest)}") from None
