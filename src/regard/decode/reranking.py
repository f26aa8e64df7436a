"""N-best lists in a new order: what one model wrote is judged by others too. No torch."""

import dataclasses
from collections.abc import Callable, Sequence

from regard.config import DecodeConfig
from regard.decode.hypothesis import length_penalty
from regard.decode.translation import Asked, Progress, TextTranslator, Translation, Written
from regard.errors import ConfigError

Judge = Callable[[Sequence[str], Sequence[str]], Sequence[tuple[float, int]]]
"""(sources, targets) -> for each pair, the target's log-probability and its number of tokens, end counted."""


class Rescored(TextTranslator):
    """A translator whose hypotheses (as many as its beam holds, or its samples) are sorted anew.

    A hypothesis's score is the translator's own, and `weight` times that of each judge: its log-probability, made
    comparable between lengths in the same way. So judges need not have the translator's tokenizer.
    """

    def __init__(self, translator: TextTranslator, judges: Sequence[Judge], weight: float = 1.0) -> None:
        super().__init__(translator.tokenizer, translator.config, translator._longest_source, folder=translator._folder)
        self._translator, self._judges, self._weight = translator, judges, weight

    def _batches(self, asked: list[Asked], config: DecodeConfig) -> list[list[Asked]]:
        return self._translator._batches(asked, config)

    def _write(self, batches: list[list[Asked]], config: DecodeConfig) -> Written:
        return self._translator._write(batches, config)

    def _search(
        self, texts: list[str], prefixes: list[str], config: DecodeConfig, progress: Progress | None = None
    ) -> list[list[Translation]]:
        if config.mbr:
            raise ConfigError("decode.mbr and rescoring both choose among many texts. Leave one of them out.")
        whole = config if config.sample else dataclasses.replace(config, n_best=config.beam)
        found = self._translator._search(texts, prefixes, whole, progress)
        pairs = [(text, written.text) for text, some in zip(texts, found, strict=True) for written in some]
        scores = [written.score for some in found for written in some]
        for judge in self._judges:
            judged = judge([text for text, _ in pairs], [written for _, written in pairs]) if pairs else []
            for number, (total, tokens) in enumerate(judged):
                scores[number] += self._weight * total / length_penalty(tokens, config.length_penalty)
        new = iter(scores)
        rescored = [[Translation(written.text, next(new)) for written in some] for some in found]
        return [sorted(some, key=lambda one: -one.score)[: config.n_best] for some in rescored]
