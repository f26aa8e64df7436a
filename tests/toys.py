"""Toy models for the tests of writing: word scores that are a fixed random function of everything read and written.

With a tiny vocabulary, every text such a model can write can be listed, and the best one is known without a search.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import DecodeConfig
from regard.decode.hypothesis import Hypothesis
from regard.models.base import Output, Source, Writer
from regard.text.tokenizers.tokenizer import BEGIN, END, PAD

Text = tuple[int, ...]
FIRST_WORD = 4


@dataclass(frozen=True)
class ToyState:
    sources: list[Text]
    written: list[Text]
    width: int
    attention_BS: Tensor | None = None

    def reorder(self, index_B: Tensor) -> "ToyState":
        rows = index_B.tolist()
        return ToyState([self.sources[r] for r in rows], [self.written[r] for r in rows], self.width)


class Toy(Writer):
    """`scores(source, words so far)` -> a logit for each id; `looks(source, words so far)` -> attention."""

    def __init__(
        self,
        scores: Callable[[Text, Text], np.ndarray],
        vocabulary: int,
        looks: Callable[[Text, Text], list[float]] | None = None,
    ) -> None:
        super().__init__()
        self.words = nn.Linear(vocabulary, vocabulary, bias=False)
        nn.init.eye_(self.words.weight)
        self.scores, self.looks, self.vocabulary = scores, looks, vocabulary
        self.rows: list[int] = []  # of each step, for tests that count them

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        rows = [
            [self.scores(ids, tuple(word for word in target[: t + 1] if word != BEGIN)) for t in range(len(target))]
            for ids, target in zip(unpadded(source), target_BT.tolist(), strict=True)
        ]
        return Output(torch.tensor(np.array(rows), dtype=torch.float32))

    def start(self, source: Source, *, attention: bool = False) -> ToyState:
        texts = unpadded(source)
        return ToyState(texts, [()] * len(texts), source.ids_BS.shape[1])

    def advance(self, last_B: Tensor, state: ToyState) -> tuple[Tensor, ToyState]:  # type: ignore[override]
        self.rows.append(len(last_B))
        written = [
            (*words, last) if last != BEGIN else words
            for words, last in zip(state.written, last_B.tolist(), strict=True)
        ]
        logits = [self.scores(*row) for row in zip(state.sources, written, strict=True)]
        seen = None
        if self.looks:
            looks = [self.looks(*row) for row in zip(state.sources, written, strict=True)]
            seen = torch.tensor([look + [0.0] * (state.width - len(look)) for look in looks])
        return torch.tensor(np.array(logits), dtype=torch.float32), ToyState(state.sources, written, state.width, seen)


def random_toy(seed: int, vocabulary: int = 7, end: float = 0.0, attention: bool = False) -> Toy:
    """A toy with random scores; `end` makes ending likelier."""
    memory: dict[tuple[Text, Text], np.ndarray] = {}

    def scores(source: Text, written: Text) -> np.ndarray:
        if (source, written) not in memory:
            logits = np.random.default_rng([seed, *source, 99, *written]).normal(size=vocabulary) * 1.5
            logits[END] += end
            memory[source, written] = logits
        return memory[source, written]

    def looks(source: Text, written: Text) -> list[float]:
        weights = np.random.default_rng([seed, *source, 98, *written]).dirichlet([0.3] * len(source))
        return [float(weight) for weight in weights]

    return Toy(scores, vocabulary, looks if attention else None)


def table_toy(
    table: dict[Text, dict[int, float]], vocabulary: int, looks: dict[Text, list[float]] | None = None
) -> Toy:
    """A toy with the given probabilities of the next word; after texts that are not listed, it ends."""

    def scores(source: Text, written: Text) -> np.ndarray:
        row = table.get(written, {END: 1.0})
        return np.log([max(row.get(word, 0.0), 1e-30) for word in range(vocabulary)])

    return Toy(scores, vocabulary, (lambda source, written: looks[written]) if looks else None)


def batch(*sentences: list[int]) -> Source:
    """Words of each sentence -> what a model reads: with the end, and padded."""
    longest = max(map(len, sentences)) + 1
    ids = [[*words, END] + [PAD] * (longest - len(words) - 1) for words in sentences]
    return Source(torch.tensor(ids), torch.tensor([len(words) + 1 for words in sentences]))


def unpadded(source: Source) -> list[Text]:
    rows = zip(source.ids_BS.tolist(), source.lengths_B.tolist(), strict=True)
    return [tuple(ids[:length]) for ids, length in rows]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.logaddexp.reduce(logits)


def every_text(toy: Toy, words: list[int], config: DecodeConfig) -> Iterator[Hypothesis]:
    """All texts of the allowed lengths with their scores, by the definitions and without a search."""
    source = (*words, END)
    for length in range(config.min_length, config.max_length + 1):
        for text in itertools.product(range(FIRST_WORD, toy.vocabulary), repeat=length):
            total = sum(log_softmax(toy.scores(source, text[:t]))[text[t]] for t in range(length))
            total += log_softmax(toy.scores(source, text))[END]
            score = total / ((5 + length + 1) / 6) ** config.length_penalty
            if config.coverage_penalty and toy.looks:
                seen = np.sum([toy.looks(source, text[:t]) for t in range(length + 1)], axis=0)
                score += config.coverage_penalty * sum(math.log(min(max(s, 1e-6), 1.0)) for s in seen)
            yield Hypothesis(list(text), float(score), float(total))


def same(ours: list[Hypothesis], theirs: list[Hypothesis]) -> bool:
    """Equal texts, and scores up to rounding."""
    return [h.ids for h in ours] == [h.ids for h in theirs] and all(
        math.isclose(a.score, b.score, abs_tol=1e-4)
        and math.isclose(a.log_probability, b.log_probability, abs_tol=1e-4)
        for a, b in zip(ours, theirs, strict=True)
    )
