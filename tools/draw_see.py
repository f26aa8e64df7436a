"""Draws the pictures of attention in README.md and docs/see.md from the demo's model, and prints what the text says of them.

.venv/bin/python tools/draw_see.py runs/demo
"""

import sys
from pathlib import Path

import regard
from regard.experiments.demo import BETWEEN
from regard.interpret.exhibit import look
from regard.interpret.trace import Trace
from regard.text.builtin import grammar

DOCS = Path(__file__).parents[1] / "docs"


def main(folder: str) -> None:
    """The head that decides, in both sentences; the encoder's view of "it"; and who fetches what was found."""
    texts = [pair.source for pair in grammar.LECTURE[:2]]
    found = look([regard.load(folder)], texts, between=BETWEEN, beam=1)
    move = found.move
    assert move is not None
    print(move.sentence())
    for name, trace, word in zip(("tired", "wide"), found.traces, (move.text_a, move.text_b), strict=True):
        draw(name, trace, move.kind, move.layer + 1, move.head + 1, word)
    last = max(shown.layer for shown in found.traces[1].layers("encoder")) + 1
    draw("it", found.traces[1], "encoder", last, strongest(found.traces[1], "encoder", last, "it", "source"), "it")
    for trace in found.traces:
        print(trace.text("encoder", last, strongest(trace, "encoder", last, "it", "source")))
    draw("elle", found.traces[1], "cross", 1, strongest(found.traces[1], "cross", 1, "elle", "predicted"), "elle")
    for off in found.knockouts:
        assert off is not None
        for one in sorted(off.heads, key=lambda one: one.probability)[:3]:
            print(f"{off.word} without {one.kind} {one.layer} {one.head}: {one.probability:.2f}, writes {one.instead}")


def draw(name: str, trace: Trace, kind: str, layer: int, head: int, word: str) -> None:
    """One picture."""
    (DOCS / f"see-{name}.svg").write_text(trace.svg(kind=kind, layer=layer, head=head, word=word))


def strongest(trace: Trace, kind: str, layer: int, word: str, row: str) -> int:
    """The head in which a word looks hardest at another."""
    return int(trace.map(kind, layer).weights_HQK[:, trace.rows[row].find(word)].max(-1).argmax()) + 1


if __name__ == "__main__":
    main(sys.argv[1])
