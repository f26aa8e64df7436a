"""A text in, its label out."""

from collections.abc import Sequence
from typing import NamedTuple, overload

import torch

from regard.models.bert import Classifier
from regard.reading.reader import Progress, Read, TextReader
from regard.see.knockout import Knockouts, knockouts, of_labeller
from regard.see.trace import Facts
from regard.text.tokenizer import Tokenizer


class Labelled(NamedTuple):
    """The likeliest label of a text."""

    label: str
    probability: float
    probabilities: dict[str, float]
    """Of all labels, the likeliest first; they sum to one."""


class Labeller(TextReader):
    """Tells which of some labels a text has. A blank text has none: its label is empty, with probability 0."""

    model: Classifier

    def __init__(
        self,
        model: Classifier,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        device: torch.device | str = "cpu",
        *,
        batch_tokens: int = 8192,
        facts: Facts | None = None,
    ) -> None:
        """`labels` in the order in which the model scores them."""
        super().__init__(model, tokenizer, device, batch_tokens=batch_tokens, facts=facts)
        self.labels = list(labels)

    @overload
    def classify(self, texts: str, *, progress: Progress | None = None) -> Labelled: ...

    @overload
    def classify(self, texts: list[str], *, progress: Progress | None = None) -> list[Labelled]: ...

    def classify(self, texts: str | list[str], *, progress: Progress | None = None) -> Labelled | list[Labelled]:
        """The label of each text; of one text alone, if one is given."""
        if isinstance(texts, str):
            return self.classify([texts], progress=progress)[0]
        found = [Labelled("", 0.0, {}) for _ in texts]

        def label(read: Read) -> None:
            chances_BL = self.model.label(read.hidden_BTW).float().softmax(-1)
            for number, chances in zip(read.numbers, chances_BL.tolist(), strict=True):
                ranked = sorted(zip(self.labels, chances, strict=True), key=lambda pair: -pair[1])
                found[number] = Labelled(*ranked[0], dict(ranked))

        self._read(texts, label, progress)
        return found

    def knockouts(self, text: str) -> Knockouts:
        """How likely the label remains as each head is switched off in turn."""
        watched = self.watched(text)
        with torch.inference_mode():
            return knockouts(watched, of_labeller(self.model, self.labels, self._ids(text)))
