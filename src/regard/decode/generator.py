"""A language model that goes on with a text: a beginning in, a continuation out."""

import dataclasses
import logging
from collections.abc import Iterable
from typing import Any, overload

import torch

from regard.config import DecodeConfig, read
from regard.decode.beam_search import beam_search
from regard.decode.sampling import greedy, sample
from regard.decode.scoring import judge
from regard.decode.translator import evaluating
from regard.errors import ConfigError, DataError
from regard.interpret.recording import Watched, trace_text
from regard.interpret.trace import Facts, Trace
from regard.models.base import LanguageModel, Source
from regard.text.arguments import Texts, text_of, texts_of
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, Tokenizer

_DEFAULTS = DecodeConfig()
# Tokens written if no limit is set.
_ROOM = 200
# Tokens of a text whose words all look at each other, which takes their square.
_LONGEST_JUDGED = 16_384
# Texts whose probability is computed together.
_JUDGED_AT_A_TIME = 32


class Author:
    """A language model with its tokenizer and settings. Settings given to a method hold for that call alone.

    It writes from what it remembers, word by word. A model learned from passages of `window` tokens has never seen a
    longer one, so a text that grows beyond it goes on from its second half. Of a prompt as much is read as fits.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        config: DecodeConfig = _DEFAULTS,
        device: torch.device | str = "cpu",
        *,
        window: int = 0,
        facts: Facts | None = None,
    ) -> None:
        """`facts` are what pictures of the model say of it."""
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.tokenizer = tokenizer
        self.config = config
        self.facts = facts or Facts(type(model).__name__)
        limits = [limit for limit in (window, model.longest) if limit]
        # What is remembered of a text by a recurrent model has no length.
        self.window = 0 if model.carries or not limits else min(limits)

    @overload
    def write(self, prompt: str = "", **settings: Any) -> str: ...

    @overload
    def write(self, prompt: Iterable[str], **settings: Any) -> list[str]: ...

    def write(self, prompt: str | Iterable[str] = "", **settings: Any) -> str | list[str]:
        """The prompt and how it goes on; `max_length` counts the tokens written after it. Of several, each by itself."""
        given = texts_of(prompt, "prompt")
        return given.answer([found[0] for found in self._found(given, settings)])

    @overload
    def n_best(self, prompt: str = "", **settings: Any) -> list[str]: ...

    @overload
    def n_best(self, prompt: Iterable[str], **settings: Any) -> list[list[str]]: ...

    def n_best(self, prompt: str | Iterable[str] = "", **settings: Any) -> list[str] | list[list[str]]:
        """The prompt with each of several continuations, the best first. Of several prompts, each by itself."""
        given = texts_of(prompt, "prompt")
        return given.answer(self._found(given, settings))

    def _found(self, given: Texts, settings: dict[str, Any]) -> list[list[str]]:
        config = read({"decode": {**dataclasses.asdict(self.config), **settings}}).decode
        if config.shortlist:
            raise ConfigError(
                "A shortlist is of a source's translations, and this model goes on with a text. Set shortlist=0."
            )
        if config.mbr:
            raise ConfigError("decode.mbr is for translations, and this model goes on with a text. Set mbr=0.")
        return [self._written(text, config) for text in given.texts]

    def _written(self, prompt: str, config: DecodeConfig) -> list[str]:
        (ids,) = self.tokenizer.encode([prompt])
        begun = self.tokenizer.decode(ids)
        texts = []
        for written in self._continue(ids, config.max_length or _ROOM, config):
            whole = self.tokenizer.decode([*ids, *written])
            # The prompt stays as it was typed, whatever the tokenizer made of it.
            texts.append(prompt + whole.removeprefix(begun) if whole.startswith(begun) else whole)
        return texts

    @overload
    def log_probabilities(self, texts: str) -> tuple[float, int]: ...  # type: ignore[overload-overlap]

    @overload
    def log_probabilities(self, texts: Iterable[str]) -> list[tuple[float, int]]: ...

    def log_probabilities(self, texts: str | Iterable[str]) -> tuple[float, int] | list[tuple[float, int]]:
        """For each text, or one, the natural logarithm of its probability and its number of tokens, end counted."""
        given = texts_of(texts, "texts")
        writes = [[BEGIN, *ids, END] for ids in self.tokenizer.encode(given.texts)]
        most = max(_LONGEST_JUDGED, self.model.longest_source)
        if not self.model.carries and (longest := max(map(len, writes), default=0)) > most:
            raise DataError(
                f"A text of {longest:,} tokens is too long to be judged at once; {most:,} are the most. Split it."
            )
        totals = [0.0] * len(writes)
        order = sorted(range(len(writes)), key=lambda n: len(writes[n]))
        for first in range(0, len(order), _JUDGED_AT_A_TIME):
            some = order[first : first + _JUDGED_AT_A_TIME]
            longest = len(writes[some[-1]])
            rows = [writes[n] + [PAD] * (longest - len(writes[n])) for n in some]
            with evaluating(self.model):
                found = judge(self.model, self._nothing(len(some)), torch.tensor(rows, device=self.device))
            for n, judged in zip(some, found, strict=True):
                totals[n] = judged.log_probability
        return given.answer([(total, len(ids) - 1) for total, ids in zip(totals, writes, strict=True)])

    def attention(self, text: str) -> Trace:
        """Where the model looks as it reads the text, from its beginning or at most from a window's length before its end.

        The result shows itself in a notebook, and has `svg()`, `text()`, `csv()` and `save("page.html")`.
        """
        return self.watched(text).trace

    def watched(self, text: str) -> Watched:
        """The same, with the modules that did it."""
        text = text_of(text, "text")
        (ids,) = self.tokenizer.encode([text])
        if not ids:
            raise DataError("There is nothing to look at in an empty text. Give a sentence.")
        if self.window and len(ids) >= self.window:
            ids = ids[-(self.window - 1) :]
            text = self.tokenizer.decode(ids)
        with evaluating(self.model):
            return trace_text(self.model, self.tokenizer, self.facts, ids, text)

    def _continue(self, ids: list[int], room: int, config: DecodeConfig) -> list[list[int]]:
        """What is written after these ids, page by page: `n_best` texts of at most `room` tokens."""
        # As much as fits beside what is to be written; where that is long, beside the quarter of a window.
        least = min(room, max(1, self.window // 4))
        read = ids[-max(1, self.window - 1 - least) :] if self.window else ids
        if len(read) < len(ids):
            logging.getLogger(__name__).warning(
                "Of the prompt's %d tokens only the last %d are read: this model holds %d beside what is to be written. "
                "Give a shorter prompt, or a lower max_length.",
                len(ids), len(read), len(read),
            )  # fmt: skip
        pages = self._page(read, room, config)
        for number, (text, full) in enumerate(pages):
            page = 1
            while full and len(text) < room:
                # Another seed: the same beginning could come again.
                seed = config.seed + 1000 * page + number
                wanted = max(0, config.min_length - len(text))
                drawn = dataclasses.replace(config, n_best=1, seed=seed, min_length=wanted)
                left = room - len(text)
                ((more, full),) = self._page([*ids, *text][-max(1, self.window // 2) :], left, drawn)
                text.extend(more)
                page += 1
        return [text for text, _ in pages]

    def _page(self, ids: list[int], room: int, config: DecodeConfig) -> list[tuple[list[int], bool]]:
        """What is written after these ids until the window is full, and whether it is."""
        if self.window:
            room = min(room, max(1, self.window - 1 - len(ids)))
        least = config.min_length + len(ids) if config.min_length else 0
        config = dataclasses.replace(config, max_length=len(ids) + room, min_length=min(least, len(ids) + room))
        search = sample if config.sample else beam_search if config.beam > 1 else greedy
        with evaluating(self.model):
            (found,) = search(self.model, self._nothing(1), config, [ids])
        written = [hypothesis.ids[len(ids) :] for hypothesis in found]
        return [(text, len(text) == room) for text in written]

    def _nothing(self, rows: int) -> Source:
        """What so many texts follow on, that begin by themselves."""
        no_words = torch.zeros(rows, 0, dtype=torch.long, device=self.device)
        return Source(no_words, torch.zeros(rows, dtype=torch.long, device=self.device))
