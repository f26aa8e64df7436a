"""The tree of a beam search: every beginning it looked at, what became of it, and the arithmetic of the choice.

Whoever searches tells it in Candidates, step by step; here they become nodes.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.config import DecodeConfig
from regard.decode.search_record import Fate, Ids, Step
from regard.interpret.tokens import row_of
from regard.text.tokenizers.tokenizer import BEGIN, END, Tokenizer


class Node(NamedTuple):
    """A word after the words of its parents."""

    parent: int
    """The parent's number; -1 for the root."""
    step: int
    text: str
    total: float
    p: float
    """The word's own probability, after its parents."""
    score: float | None
    state: Fate


@dataclass(frozen=True)
class Result:
    """A finished text: score = total / penalty + coverage, where penalty = ((5 + length) / 6) ** alpha."""

    node: int
    text: str
    total: float
    length: int
    """Tokens, the end counted."""
    penalty: float
    coverage: float
    """At most 0: what is taken off for source words that nobody looked at, if decode.coverage_penalty is set."""
    score: float
    chosen: bool


@dataclass(frozen=True)
class Tree:
    """One sentence's search."""

    size: int
    alpha: float
    beta: float
    """How much coverage counts; 0 = not at all."""
    nodes: tuple[Node, ...]
    """Parents before children; the root, which is begin, first."""
    results: tuple[Result, ...]
    """Everything that finished, the best first."""

    def data(self) -> dict[str, Any]:
        """As the attention page reads it."""
        return {
            "size": self.size,
            "alpha": self.alpha,
            "beta": self.beta,
            "nodes": [node._asdict() for node in self.nodes],
            "results": [dataclasses.asdict(result) for result in self.results],
        }


def grow(steps: Sequence[Step], tokenizer: Tokenizer, config: DecodeConfig, sentence: int = 0) -> Tree:
    """The tree of a search that took these steps."""
    nodes = [Node(-1, 0, _shown(tokenizer, BEGIN), 0.0, 1.0, None, "begin")]
    numbers: dict[Ids, int] = {(): 0}
    for number, step in enumerate(steps, 1):
        for ids, total, state, score in step.get(sentence, []):
            parent = numbers[ids[:-1]]
            numbers[ids] = len(nodes)
            p = min(1.0, math.exp(total - nodes[parent].total))  # rounding must not make it more than certain
            nodes.append(Node(parent, number, _shown(tokenizer, ids[-1]), total, p, score, state))
    results = [
        _result(node, nodes[node], ids, tokenizer, config)
        for ids, node in numbers.items()
        if nodes[node].state == "finished"
    ]
    results.sort(key=lambda result: -result.score)  # which keeps the order of equals, as the search does
    chosen = [dataclasses.replace(result, chosen=rank < config.n_best) for rank, result in enumerate(results)]
    return Tree(config.beam, config.length_penalty, config.coverage_penalty, tuple(nodes), tuple(chosen))


def _result(number: int, node: Node, ids: Ids, tokenizer: Tokenizer, config: DecodeConfig) -> Result:
    assert node.score is not None and ids[-1] == END, "what has finished has a score"
    penalty = ((5 + len(ids)) / 6) ** config.length_penalty
    coverage = node.score - node.total / penalty if config.coverage_penalty else 0.0
    text = tokenizer.decode(ids[:-1])
    return Result(number, text, node.total, len(ids), penalty, coverage, node.score, chosen=False)


def _shown(tokenizer: Tokenizer, i: int) -> str:
    return row_of(tokenizer, [i]).tokens[0].text
