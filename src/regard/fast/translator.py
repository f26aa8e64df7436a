"""Translating with CTranslate2, with the search of the torch engine.

Both keep the same live hypotheses and finish the same ones, but for three things.

CTranslate2 ranks finished hypotheses by another penalty of their length. So it is asked for all of them, and they are
ranked here.

It goes on until as many have finished as the beam is wide, where torch stops once none can be better. That costs time,
and changes nothing.

It forbids words by taking them out before it computes probabilities, so that those of other words rise: where a model
would like to write "unknown", they would rise a lot. So nothing is forbidden. Instead what may not be written counts as an
end: a hypothesis that comes to it leaves the search without taking another's place in the beam, and is thrown away here.
Then too few may be left, and the text is searched once more, until more hypotheses have finished.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import ctranslate2

from regard.config import DecodeConfig
from regard.decode import translation
from regard.decode.hypothesis import Hypothesis, length_penalty, most_tokens
from regard.decode.translation import Asked, TextTranslator
from regard.errors import ConfigError
from regard.fast.converted_cache import ConvertedModel, Files
from regard.fast.loaded_models import Loaded
from regard.fast.supported import setting_obstacle
from regard.system.allocator import keep_memory
from regard.system.threads import cores
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD, UNKNOWN, Tokenizer

# On a processor, int8 is the fastest, and costs less than 0.2 BLEU (docs/engines.md).
_FASTEST = "int8"
# Source tokens of a batch at most: the fastest, as measured (docs/engines.md). More texts wait longer for the longest.
_TOKENS = 160
# With a shortlist, the words of all texts of a batch are scored for each of them.
_TOKENS_WITH_SHORTLIST = 256
# How many times as many hypotheses as the beam is wide are to finish: at first, and each time that was not enough.
_PATIENCE = (1, 3, 9, 27)
# CTranslate2 divides a log-probability by length ** penalty, and returns the best of those that finished, which may be
# more than asked for. As good as no penalty is safe for the best: whatever is dropped for it is no longer and less likely
# than another, or as long and less likely, so ours would not choose it. (None at all stops the search too early.)
_NO_PENALTY = -1e-6
# With patience, those that finished first are wanted, which are the shortest.
_SHORTEST = -8.0
_FORBIDDEN = (PAD, UNKNOWN, BEGIN)
_END = str(END)
_ENDS = {_END, *map(str, _FORBIDDEN)}


class Written(NamedTuple):
    """What CTranslate2 wrote for a source: words by their names, the end among them, and scores."""

    hypotheses: list[list[str]]
    scores: list[float]


class _Search(NamedTuple):
    """Texts on their way to translations: with which patience, and with which each time that was not enough."""

    batch: list[Asked]
    patience: Sequence[int]
    results: "list[ctranslate2.AsyncTranslationResult]"


class FastTranslator(TextTranslator):
    """A model folder's Transformer, run by CTranslate2."""

    takes_shortlist = True

    def __init__(
        self,
        model: ConvertedModel,
        tokenizer: Tokenizer,
        config: DecodeConfig,
        *,
        longest_source: int,
        places: int | None,
        threads: int,
        otherwise: Callable[[], TextTranslator] | None,
        folder: Path,
    ) -> None:
        """`places` are the tokens a translation can have at all; `otherwise` opens a translator for what cannot be done here.

        One copy of the model is loaded for each precision and shortlist, on first use, and shared by all threads.
        """
        super().__init__(tokenizer, config, longest_source, folder)
        self.threads = threads or cores()
        self._model = model
        self._places = places
        self._otherwise = otherwise
        self._engines: Loaded[ctranslate2.Translator] = Loaded()
        self._others: Loaded[TextTranslator] = Loaded()
        self._names = [str(number) for number in range(tokenizer.size)]

    def _batches(self, asked: list[Asked], config: DecodeConfig) -> list[list[Asked]]:
        if obstacle := self._obstacle(asked, config):
            return self._torch(obstacle)._batches(asked, config)
        return list(_batches(asked, config, self.threads))

    def _write(self, batches: list[list[Asked]], config: DecodeConfig) -> translation.Written:
        if obstacle := self._obstacle([one for batch in batches for one in batch], config):
            yield from self._torch(obstacle)._write(batches, config)
            return
        if not batches:
            return
        engine = self._engine(config)
        # What int8 rounds away is more than what a hypothesis or two can add; float32 is to be the same as torch.
        enough = 1 if self._precision(config) == "int8" and config.n_best == 1 else config.beam
        running = deque(self._begin(engine, batch, config, _patience(config)) for batch in batches)
        left: list[Asked] = []
        while running:
            found: list[tuple[Asked, list[Hypothesis]]] = []
            again: list[Asked] = []
            batch, (patience, *more), results = running.popleft()
            for one, future in zip(batch, results, strict=True):
                result = future.result()
                written = Written(
                    result.hypotheses, result.scores
                )  # once: each time they are asked for they are copied
                if self._is_cut(one, written, config):
                    left.append(one)
                elif hypotheses := _ranked(written, config, patience, enough):
                    found.append((one, hypotheses))
                else:
                    again.append(one)
            if again and more:
                running.append(self._begin(engine, again, config, more))
            else:
                left += again
            yield [one for one, _ in found], [hypotheses for _, hypotheses in found]
        if left and self._otherwise and (config.beam > 1 or config.shortlist):
            yield from self._others.get("torch", self._otherwise)._written(left, config)
        elif left:
            yield left, [self._plainly(one, config) for one in left]

    def _begin(
        self, engine: "ctranslate2.Translator", batch: list[Asked], config: DecodeConfig, patience: Sequence[int]
    ) -> "_Search":
        """Search for these, after those that were begun before."""
        results = engine.translate_batch(
            [self._named(one.source) for one in batch],
            asynchronous=True,
            end_token=[_END, *(str(word) for word in _FORBIDDEN)],
            max_decoding_length=max(self._limit(one, config) for one in batch) + 1,  # the end is a token too
            **_options(config, patience[0]),
        )
        return _Search(batch, patience, results)

    def _plainly(self, one: Asked, config: DecodeConfig) -> list[Hypothesis]:
        """With words forbidden as CTranslate2 does it, and texts cut at their limit: the same as torch if greedy.

        But the score is that among all words, also if there is a shortlist.
        """
        limit, source = self._limit(one, config), self._named(one.source)
        engine = self._engine(config)
        (result,) = engine.translate_batch(
            [source],
            suppress_sequences=[[str(word)] for word in _FORBIDDEN],
            max_decoding_length=max(1, limit),
            **_options(config),
        )
        texts = [names[:limit] if names[-1:] != [_END] else names[:-1] for names in result.hypotheses]
        scored = engine.score_batch([source] * len(texts), texts)
        found = [(names, float(sum(one.log_probs))) for names, one in zip(texts, scored, strict=True)]
        return _best(found, config)

    def _precision(self, config: DecodeConfig) -> str:
        return _FASTEST if config.precision == "auto" else config.precision

    def _engine(self, config: DecodeConfig) -> "ctranslate2.Translator":
        """As many batches at a time as threads, one thread for each: two for one batch are slower than one.

        They share the weights. How many batches there are does not matter: a thread without one costs next to nothing.
        """
        precision, shortlist = self._precision(config), config.shortlist
        return self._engines.get((precision, shortlist), lambda: self._opened(precision, shortlist))

    def _opened(self, precision: str, shortlist: int) -> "ctranslate2.Translator":
        keep_memory()
        listed = self._shortlist.vocabulary_map(self._names, shortlist).encode() if shortlist else b""

        def load(files: Path | Files) -> "ctranslate2.Translator":
            if listed:
                files = {file.name: file.read_bytes() for file in files.iterdir()} if isinstance(files, Path) else files
                files = {**files, "vmap.txt": listed}
            return self._loaded(
                files,
                compute_type=precision,
                inter_threads=self.threads,
                intra_threads=1,
                max_queued_batches=-1,
            )

        return self._model.load(precision, load)

    def _loaded(self, files: Path | Files, **settings: Any) -> "ctranslate2.Translator":
        name = str(files) if isinstance(files, Path) else "model"
        return ctranslate2.Translator(name, files=files if isinstance(files, dict) else None, **settings)

    def _named(self, ids: list[int]) -> list[str]:
        return [self._names[word] for word in ids]

    def _limit(self, one: Asked, config: DecodeConfig) -> int:
        return most_tokens(config, len(one.source) - 1, places=self._places)

    def _is_cut(self, one: Asked, written: Written, config: DecodeConfig) -> bool:
        """Whether one of as many hypotheses as the beam is wide came to its limit; there torch lets it end."""
        limit = self._limit(one, config)
        ended = [names for names in written.hypotheses if names[-1] in _ENDS and len(names) <= limit + 1]
        return len(ended) < len(written.hypotheses) and sum(names[-1] == _END for names in ended) < config.beam

    def _obstacle(self, asked: list[Asked], config: DecodeConfig) -> str | None:
        """What is asked for and cannot be done here, if anything."""
        if config.shortlist and not self.takes_shortlist:
            return "a language model's decode.shortlist"
        return setting_obstacle(config, prefix=any(one.prefix for one in asked))

    def _torch(self, obstacle: str) -> TextTranslator:
        if self._otherwise is None:
            raise ConfigError(
                f"The engine ctranslate2 cannot do {obstacle} as torch does it. Use --engine auto or torch, or leave it out."
            )
        return self._others.get("torch", self._otherwise)


def _patience(config: DecodeConfig) -> Sequence[int]:
    """Greedy search has none. Of more hypotheses than asked for, CTranslate2 drops one that may be wanted, if many are."""
    return _PATIENCE[:1] if config.beam == 1 else _PATIENCE[config.n_best > 1 :]


def _options(config: DecodeConfig, patience: int = 1) -> dict[str, Any]:
    return {
        "beam_size": config.beam,
        "num_hypotheses": config.beam * patience,
        "patience": patience,
        "length_penalty": _penalty(patience),
        "max_input_length": 0,
        "min_decoding_length": 0,
        "return_scores": True,
        "return_end_token": True,
    } | ({"use_vmap": True} if config.shortlist else {})


def _penalty(patience: int) -> float:
    return _NO_PENALTY if patience == 1 else _SHORTEST


def _ranked(written: Written, config: DecodeConfig, patience: int, enough: int) -> list[Hypothesis]:
    """The best; none if fewer than `enough` have ended as they should.

    Of more than that, torch would have seen those that had finished when there were enough: the shortest.
    """
    ended = [both for both in zip(written.hypotheses, written.scores, strict=True) if both[0][-1] == _END]
    if len(ended) < enough:
        return []
    longest = sorted(len(names) for names, _ in ended)[min(config.beam, len(ended)) - 1]
    found = [(names[:-1], score * len(names) ** _penalty(patience)) for names, score in ended if len(names) <= longest]
    return _best(found, config)


def _best(found: list[tuple[list[str], float]], config: DecodeConfig) -> list[Hypothesis]:
    """The best of these words and their log-probabilities."""
    scored = [(total / length_penalty(len(names) + 1, config.length_penalty), total, names) for names, total in found]
    scored.sort(key=lambda one: -one[0])
    return [Hypothesis([int(name) for name in names], score, total) for score, total, names in scored[: config.n_best]]


def _batches(asked: list[Asked], config: DecodeConfig, workers: int) -> Iterator[list[Asked]]:
    """Longest first, so that the last ones are short and all workers end together; no fewer than workers, if possible."""
    ordered = iter(sorted(asked, key=lambda one: -len(one.source)))
    tokens = min(config.batch_tokens // config.beam, _TOKENS_WITH_SHORTLIST if config.shortlist else _TOKENS)
    most = -(-len(asked) // workers)
    while first := next(ordered, None):
        room = max(1, min(most, tokens // len(first.source)))
        yield [first, *islice(ordered, room - 1)]
