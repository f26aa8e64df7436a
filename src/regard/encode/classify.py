"""A text in, its label out; by any engine. No torch."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple, overload

from regard.encode.embed import Ids, Progress, TextReader
from regard.text.arguments import texts_of


class Labelled(NamedTuple):
    """The likeliest label of a text."""

    label: str
    probability: float
    probabilities: dict[str, float]
    """Of all labels, the likeliest first; they sum to one."""


class TextLabeller(TextReader):
    """Tells which of some labels a text has. A blank text has none: its label is empty, with probability 0."""

    labels: list[str]
    """In the order in which the model scores them."""

    @abstractmethod
    def _chances(self, rows: Sequence[Ids]) -> list[list[float]]:
        """The probabilities of all labels, for each of some texts."""

    @overload
    def classify(self, texts: str, *, progress: Progress | None = None) -> Labelled: ...  # type: ignore[overload-overlap]

    @overload
    def classify(self, texts: Iterable[str], *, progress: Progress | None = None) -> list[Labelled]: ...

    def classify(self, texts: str | Iterable[str], *, progress: Progress | None = None) -> Labelled | list[Labelled]:
        """The label of each text; of one text alone, if one is given."""
        given = texts_of(texts, "texts")
        found = [Labelled("", 0.0, {}) for _ in given.texts]
        for number, chances in self._each(given.texts, self._chances, progress):
            ranked = sorted(zip(self.labels, chances, strict=True), key=lambda pair: -pair[1])
            found[number] = Labelled(*ranked[0], dict(ranked))
        return given.answer(found)
