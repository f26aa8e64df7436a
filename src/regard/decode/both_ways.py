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

Found = dict[tuple[int, ...], float]
"""Texts of one sentence, from their first word on, and the log-probability of each when it is written one way."""


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
    assert columns is None, "the settings refuse a shortlist: its probabilities are not those that texts are judged by"
    prefixes = prefixes or [[]] * len(source.lengths_B)
    whole, from_the_end = replace(config, n_best=config.beam), Backwards(model)
    forwards = [
        {tuple(one.ids): one.log_probability for one in some} for some in beam_search(model, source, whole, prefixes)
    ]
    backwards = [
        {text: one.log_probability for one in some if (text := tuple(one.ids[::-1]))[: len(prefix)] == tuple(prefix)}
        for some, prefix in zip(beam_search(from_the_end, source, whole), prefixes, strict=True)
    ]
    _complete(forwards, backwards, model, source, order=1)
    _complete(backwards, forwards, from_the_end, source, order=-1)
    found = []
    for ahead, back in zip(forwards, backwards, strict=True):
        means = {text: (ahead[text] + back[text]) / 2 for text in ahead}
        scored = [
            Hypothesis(list(text), mean / length_penalty(len(text) + 1, config.length_penalty), mean)
            for text, mean in means.items()
        ]
        found.append(sorted(scored, key=lambda one: -one.score)[: config.n_best])
    return found


def _complete(found: list[Found], others: list[Found], model: Writer, source: Source, *, order: int) -> None:
    """Add what only the other search found, judged by the model, which reads texts in this order."""
    new = [(row, text) for row, some in enumerate(others) for text in some if text not in found[row]]
    if not new:
        return
    rows = torch.tensor([row for row, _ in new], device=source.ids_BS.device)
    target_BT, _ = pad([text[::order] for _, text in new], begin=True)
    judged = judge(model, Source(source.ids_BS[rows], source.lengths_B[rows]), target_BT.to(rows.device))
    for (row, text), one in zip(new, judged, strict=True):
        found[row][text] = one.log_probability


def _from_the_end(ids: Tensor) -> Tensor:
    return ids.masked_fill(ids == BEGIN, END)
