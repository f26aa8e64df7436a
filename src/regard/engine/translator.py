"""Translating with CTranslate2, with the very search of the torch engine.

Both keep the same live hypotheses and finish the same ones. CTranslate2 goes on until as many have finished as the
beam is wide, which adds none that are better, and ranks them by another penalty of their length; so all of them are asked
for, and ranked here by ours.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import ctranslate2

from regard.config import DecodeConfig
from regard.decode.hypothesis import Hypothesis, length_penalty, most_tokens
from regard.decode.translation import Asked, TextTranslator
from regard.engine.cache import Files
from regard.engine.expressible import setting_obstacle
from regard.errors import ConfigError
from regard.text.tokenizer import END, Tokenizer

# On a processor, int8 is the fastest, and costs less than 0.2 BLEU (docs/engines.md).
_FASTEST = "int8"
# Texts in a batch at most: the fastest, as measured (docs/engines.md); more only wait for the longest of them.
_TEXTS = 32
# CTranslate2 divides by length ** penalty, and we by ((5 + length) / 6) ** penalty. With this share of our penalty the two
# rise alike at about twenty words, so that of more finished hypotheses than it returns, it drops one we would drop too.
_SHARE = 0.8
_LEAST_PENALTY = 1e-6  # with none at all, it stops at the first finished hypothesis


class FastTranslator(TextTranslator):
    """A model folder's Transformer, run by CTranslate2."""

    def __init__(
        self,
        files: Callable[[str], Path | Files],
        tokenizer: Tokenizer,
        config: DecodeConfig,
        *,
        longest_source: int,
        places: int | None,
        threads: int,
        otherwise: Callable[[], TextTranslator] | None,
    ) -> None:
        """`files` gives the converted model by its precision; `places` are how many tokens a translation may have at all;
        `otherwise` opens a translator that does what cannot be done here.
        """
        super().__init__(tokenizer, config, longest_source)
        self.threads = threads or len(os.sched_getaffinity(0))
        self._files = files
        self._places = places
        self._otherwise = otherwise
        self._engines: dict[tuple[str, int], ctranslate2.Translator] = {}
        self._names = [str(number) for number in range(tokenizer.size)]

    def _written(
        self, asked: list[Asked], config: DecodeConfig
    ) -> Iterator[tuple[Sequence[Asked], Sequence[list[Hypothesis]]]]:
        obstacle = setting_obstacle(config, prefix=any(one.prefix for one in asked))
        if obstacle:
            yield from self._torch(obstacle)._written(asked, config)
            return
        if not asked:
            return
        cut: list[Asked] = []
        batches = list(_batches(asked, config.batch_tokens // config.beam, self.threads))
        engine = self._engine(config.precision, min(self.threads, len(batches)))
        # All of them at once: while some are translated, others have been, and are joined to texts.
        running = [self._start(engine, batch, config) for batch in batches]
        for batch, results in zip(batches, running, strict=True):
            found = [self._hypotheses(one, result.result(), config) for one, result in zip(batch, results, strict=True)]
            cut += [one for one, hypotheses in zip(batch, found, strict=True) if not hypotheses]
            done = [(one, hypotheses) for one, hypotheses in zip(batch, found, strict=True) if hypotheses]
            if done:
                yield [one for one, _ in done], [hypotheses for _, hypotheses in done]
        if cut:
            yield from self._torch("a text without end")._written(cut, config)

    def _engine(self, precision: str, workers: int) -> "ctranslate2.Translator":
        """So many batches at a time, which share the threads."""
        precision = _FASTEST if precision == "auto" else precision
        if (precision, workers) not in self._engines:
            files = self._files(precision)
            self._engines[precision, workers] = ctranslate2.Translator(
                str(files) if isinstance(files, Path) else "model",
                files=files if isinstance(files, dict) else None,
                compute_type=precision,
                inter_threads=workers,
                intra_threads=max(1, self.threads // workers),
                max_queued_batches=-1,
            )
        return self._engines[precision, workers]

    def _start(
        self, engine: "ctranslate2.Translator", batch: list[Asked], config: DecodeConfig
    ) -> "list[ctranslate2.AsyncTranslationResult]":
        names = self._names
        started: list[ctranslate2.AsyncTranslationResult] = engine.translate_batch(
            [[names[token] for token in one.source] for one in batch],
            asynchronous=True,
            beam_size=config.beam,
            num_hypotheses=config.beam,
            length_penalty=_SHARE * config.length_penalty or _LEAST_PENALTY,
            max_input_length=0,
            # The end is a token too.
            max_decoding_length=max(self._limit(one, config) for one in batch) + 1,
            min_decoding_length=0,
            return_scores=True,
            return_end_token=True,
        )
        return started

    def _limit(self, one: Asked, config: DecodeConfig) -> int:
        return most_tokens(config, len(one.source) - 1, places=self._places)

    def _hypotheses(
        self, one: Asked, result: "ctranslate2.TranslationResult", config: DecodeConfig
    ) -> list[Hypothesis]:
        """Best first. None if one was cut off before its end and torch, which lets it end there, can be asked."""
        found, limit = [], self._limit(one, config)
        for names, score in zip(result.hypotheses, result.scores, strict=True):
            length = len(names)
            ids = [int(name) for name in names]
            if (length > limit + 1 or ids[-1] != END) and self._otherwise:
                return []
            ids = ids[: min(limit, length - (ids[-1] == END))]
            total = score * length ** (_SHARE * config.length_penalty or _LEAST_PENALTY)
            found.append(Hypothesis(ids, total / length_penalty(length, config.length_penalty), total))
        return sorted(found, key=lambda hypothesis: -hypothesis.score)[: config.n_best]

    def _torch(self, obstacle: str) -> TextTranslator:
        if self._otherwise is None:
            raise ConfigError(
                f"The engine ctranslate2 cannot do {obstacle} as torch does it. Use --engine auto or torch, or leave it out."
            )
        return self._otherwise()


def _batches(asked: list[Asked], tokens: int, workers: int) -> Iterator[list[Asked]]:
    """Longest first, so that the last ones are short and all workers end together; as many as workers, if there are."""
    ordered = iter(sorted(asked, key=lambda one: -len(one.source)))
    most = min(_TEXTS, math.ceil(len(asked) / workers))
    while first := next(ordered, None):
        room = max(1, min(most, tokens // len(first.source)))
        yield [first, *islice(ordered, room - 1)]
