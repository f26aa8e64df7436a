"""Writing from both ends: texts found forwards and texts found backwards, each judged both ways.

A search that goes forwards is bound by its first words, and one that goes backwards by its last ones, so that each errs
where the other is sure (Liu et al. 2016). A model learns both with `train.both_ways`: written backwards, a text begins with
END, which begins no other.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.decode.beam import beam_search
from regard.decode.columns import Columns
from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.probability import judge
from regard.models.interface import Output, Source, State, Writer
from regard.text.batch import pad
from regard.text.tokenizer import BEGIN, END


class Backwards(Writer):
    """A model as it writes from the end. To whoever searches it is one like any other, whose words come out reversed."""

    def __init__(self, model: Writer) -> None:
        super().__init__()
        self._model = model
        self.words = model.words
        self.longest, self.longest_source = model.longest, model.longest_source

    def places(self, source: int) -> int | None:
        return self._model.places(source)

    def forward(self, source: Source, target_BT: Tensor, *, attention: bool = False) -> Output:
        output: Output = self._model(source, _from_the_end(target_BT), attention=attention)
        return output

    def start(self, source: Source, *, attention: bool = False) -> State:
        return self._model.start(source, attention=attention)

    def advance(self, last_B: Tensor, state: State) -> tuple[Tensor, State]:
        return self._model.advance(_from_the_end(last_B), state)


@torch.inference_mode()
def search_both_ways(
    model: Writer,
    source: Source,
    config: DecodeConfig,
    prefixes: Sequence[Sequence[int]] = (),
    columns: Columns | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` of what both beam searches find, by the mean of both log-probabilities over the length penalty.

    Backwards, a prefix comes last, and cannot be asked for: what does not begin with it is left out.
    """
    whole = replace(config, n_best=config.beam)
    forwards = beam_search(model, source, whole, prefixes, columns)
    backwards = beam_search(Backwards(model), source, whole, columns=columns)
    prefixes = prefixes or [[]] * len(forwards)
    candidates = []
    for ahead, back, prefix in zip(forwards, backwards, prefixes, strict=True):
        found = [one.ids for one in ahead] + [one.ids[::-1] for one in back]
        # Each once, in the order in which they were found.
        candidates.append(list(dict.fromkeys(tuple(ids) for ids in found if ids[: len(prefix)] == list(prefix))))
    return _judged(model, source, candidates, config)


def _judged(
    model: Writer, source: Source, candidates: list[list[tuple[int, ...]]], config: DecodeConfig
) -> list[list[Hypothesis]]:
    """The best candidates of each sentence, best first."""
    texts = [text for some in candidates for text in some]
    row_of = [row for row, some in enumerate(candidates) for _ in some]
    rows = torch.tensor(row_of, device=source.ids_BS.device)
    sources = Source(source.ids_BS[rows], source.lengths_B[rows])
    ahead_BT, back_BT = (pad(words, begin=True)[0].to(rows.device) for words in (texts, [text[::-1] for text in texts]))
    judged = zip(judge(model, sources, ahead_BT), judge(Backwards(model), sources, back_BT), strict=True)
    found: list[list[Hypothesis]] = [[] for _ in candidates]
    for row, text, (ahead, back) in zip(row_of, texts, judged, strict=True):
        mean = (ahead.log_probability + back.log_probability) / 2
        found[row].append(Hypothesis(list(text), mean / length_penalty(ahead.tokens, config.length_penalty), mean))
    return [sorted(some, key=lambda one: -one.score)[: config.n_best] for some in found]


def _from_the_end(ids: Tensor) -> Tensor:
    return ids.masked_fill(ids == BEGIN, END)
