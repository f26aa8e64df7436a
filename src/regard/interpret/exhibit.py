"""Some texts, as one model or several read them: all that can be found out about their attention, for one page."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.decode.translator import Translator
from regard.encode.torch_classify import Labeller
from regard.encode.torch_fill import Filler
from regard.errors import DataError
from regard.interpret.ablation import Knockout, Knockouts
from regard.interpret.contrast import Move, contrast
from regard.interpret.page_data import page_of
from regard.interpret.search_tree import Tree
from regard.interpret.trace import Trace
from regard.text.arguments import text_of, texts_of
from regard.text.tokenizers.tokenizer import MASKED

Note = Callable[[str], None]
"""Told what is being done, as some of it takes a while."""
MOST = 8
"""Texts and models that one page shows, at most."""


@dataclass(frozen=True)
class Exhibit:
    """What was found, item by item."""

    titles: list[str]
    traces: list[Trace]
    knockouts: list[Knockouts | None]
    beams: list[Tree | None]
    between: tuple[str, str] | None = None
    move: Move | None = None
    """The head and the word whose attention moves most between two words, from the first text to the second."""

    def html(self) -> str:
        """The attention page."""
        extras = [
            {"knockouts": off.data() if off else None, "beam": tree.data() if tree else None}
            for off, tree in zip(self.knockouts, self.beams, strict=True)
        ]
        return page_of(self.traces, titles=self.titles, extras=extras, start=self._start())

    def without(self, move: Move) -> list[Knockout | None]:
        """What becomes of each item's word as the head that moves is switched off."""
        place = move.kind, move.head
        return [
            next((one for one in off.heads if (one.kind, one.head) == place and one.layer in (None, move.layer)), None)
            if off
            else None
            for off in self.knockouts
        ]

    def _start(self) -> dict[str, Any]:
        """What the page shows first. It counts whole words."""
        if self.move is None or self.between is None:
            return {"other": 1} if len(self.traces) == 2 else {}
        move, trace = self.move, self.traces[0]
        shown = trace.map(move.kind, move.layer + 1)
        keys = trace.rows[shown.keys]
        looks = trace.rows["predicted" if move.kind == "cross" else shown.queries]
        return {
            "view": "contrast",
            "other": 1,
            "kind": move.kind,
            "layer": [layer.layer for layer in trace.layers(move.kind)].index(move.layer),
            "heads": [move.head],
            "pick": [keys.tokens[keys.find(word)].word for word in self.between],
            "side": "queries",
            "token": looks.tokens[move.query_a].word,
            "pinned": True,
            "label": "predicted" if move.kind == "cross" else "input",
        }


def look(
    models: Sequence[Any],
    texts: str | Iterable[str],
    *,
    target: str | None = None,
    between: tuple[str, str] | None = None,
    word: str | None = None,
    knock_out: bool = True,
    beam: int = 5,
    note: Note = lambda _: None,
) -> Exhibit:
    """Each text as each model reads it (and translates it, or writes `target`).

    `models` are what `regard.load` gives. `between` are two words between which attention may move from the first text to
    the second. `word` is the one whose probability the knock-outs tell; by default it is the first in which two
    translations differ, else the one that needs the heads most.
    """
    texts = texts_of(texts, "texts").texts
    between = (text_of(between[0], "between"), text_of(between[1], "between")) if between else None
    target = None if target is None else text_of(target, "target")
    items = [(model, text) for model in models for text in texts]
    if len(items) > MOST:
        raise DataError(f"{len(items)} pictures are too many for one page; {MOST} are the most. Give fewer texts.")
    if between and len(items) != 2:
        raise DataError(f"Attention can move between two words only from one text to another; there are {len(items)}.")
    traces = []
    for model, text in items:
        note(f"reading: {text}")
        traces.append(model.attention(text, target) if isinstance(model, Translator) else model.attention(text))
    move = contrast(traces[0], traces[1], *between)[0] if between else None
    differs = _first_difference(*traces) if len(traces) == 2 else None
    knockouts, beams = [], []
    for (model, text), trace in zip(items, traces, strict=True):
        note(f"switching off each head in turn: {text}")
        chosen = word if word is not None else differs
        knockouts.append(_knockouts(model, text, target, chosen) if knock_out and trace.maps else None)
        searches = beam > 1 and isinstance(model, Translator) and target is None
        beams.append(model.search_tree(text, beam=beam) if searches else None)
    titles = [f"{model.facts.folder}: {text}" if len(models) > 1 else text for model, text in items]
    return Exhibit(titles, traces, knockouts, beams, between, move)


def _knockouts(model: Any, text: str, target: str | None, word: str | int | None) -> Knockouts | None:
    if isinstance(model, Translator):
        return model.knockouts(text, target, word=word)
    if isinstance(model, Labeller):
        return model.knockouts(text)
    if isinstance(model, Filler) and model.guesses and MASKED in text.replace("[MASK]", MASKED):
        return model.knockouts(text)
    return None


def _first_difference(first: Trace, second: Trace) -> int | None:
    """The number of the first token that the two wrote differently; what a language model only reads does not count."""
    if not first.predictions or not second.predictions:
        return None
    both = [zip(trace.rows["predicted"].tokens, trace.predictions, strict=True) for trace in (first, second)]
    for number, ((one, sure), (other, as_sure)) in enumerate(zip(*both, strict=False)):
        if sure and as_sure and one.text != other.text:
            return None if one.special or other.special else number
    return None
