"""Translating with a language model: the source is a text's beginning, and CTranslate2 goes on with it.

Texts whose sources differ in length are not searched together: there it would read the rest of the longer ones word by word
within the search, and lose the texts that end at once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ctranslate2

from regard.config import DecodeConfig
from regard.decode.hypothesis import most_tokens
from regard.decode.translation import Asked
from regard.fast.converted_cache import Files
from regard.fast.translator import FastTranslator, Written
from regard.text.tokenizers.tokenizer import BEGIN, END

Names = list[str]
_BEGIN, _END = str(BEGIN), str(END)


class FastContinuer(FastTranslator):
    """A model folder's language model, trained on pairs and run by CTranslate2."""

    takes_shortlist = False

    def _limit(self, one: Asked, config: DecodeConfig) -> int:
        # The source stands in the same row.
        places = None if self._places is None else self._places - len(one.source)
        return most_tokens(config, len(one.source) - 1, places=places)

    def _loaded(self, files: Path | Files, **settings: Any) -> Any:
        return Continuer(files, self._places, **settings)


class Awaited:
    """What is being written."""

    def __init__(self, running: Any) -> None:
        self._running = running

    def result(self) -> Written:
        """When it is there."""
        found = self._running.result()
        return Written(found.sequences, found.scores)


class Continuer:
    """A decoder alone, that answers as CTranslate2's translators do."""

    def __init__(self, files: Path | Files, places: int | None, **settings: Any) -> None:
        """`places` are the words its positions can hold beside begin; None = any number."""
        self._places = places
        self._model = ctranslate2.Generator(
            str(files) if isinstance(files, Path) else "model",
            files=files if isinstance(files, dict) else None,
            **settings,
        )

    def translate_batch(
        self,
        sources: Sequence[Names],
        *,
        max_decoding_length: int,
        min_decoding_length: int,
        max_input_length: int,
        asynchronous: bool = False,
        **options: Any,
    ) -> list[Any]:
        """As a translator's, with the sources of each length apart."""
        found: dict[int, Any] = {}
        for length in {len(source) for source in sources}:
            numbers = [n for n, source in enumerate(sources) if len(source) == length]
            running = self._model.generate_batch(
                [[*sources[n], _BEGIN] for n in numbers],
                asynchronous=True,
                include_prompt_in_result=False,
                max_length=self._most(length, max_decoding_length),
                min_length=min_decoding_length,
                **options,
            )
            found |= dict(zip(numbers, map(Awaited, running), strict=True))
        awaited = [found[n] for n in range(len(sources))]
        return awaited if asynchronous else [one.result() for one in awaited]

    def _most(self, source: int, asked: int) -> int:
        """Tokens to write at most, the end counted: a longer source leaves room for fewer than were asked for."""
        return asked if self._places is None else min(asked, self._places + 1 - source)

    def score_batch(self, sources: Sequence[Names], texts: Sequence[Names]) -> list[Any]:
        """As a translator's: the words of the text alone are scored, and its end."""
        whole = [[*source, _BEGIN, *text, _END] for source, text in zip(sources, texts, strict=True)]
        scored = self._model.score_batch(whole, max_input_length=0)
        return [Scored(one.log_probs[-len(text) - 1 :]) for one, text in zip(scored, texts, strict=True)]


class Scored(NamedTuple):
    """Each word's log-probability."""

    log_probs: list[float]
