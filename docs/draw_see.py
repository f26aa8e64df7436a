"""Draws the README's pictures of attention from the demo's model: python docs/draw_see.py runs/demo"""

import sys
from pathlib import Path

import regard
from regard.demo import BETWEEN
from regard.show import look
from regard.text import grammar

HERE = Path(__file__).parent


def main(folder: str) -> None:
    """The head that decides, in both sentences, and the encoder's view of "it" in the last layer."""
    texts = [pair.source for pair in grammar.LECTURE[:2]]
    found = look([regard.load(folder)], texts, between=BETWEEN, beam=1)
    move = found.move
    assert move is not None
    for name, trace, word in zip(("tired", "wide"), found.traces, (move.text_a, move.text_b), strict=True):
        picture = trace.svg(kind=move.kind, layer=move.layer + 1, head=move.head + 1, word=word)
        (HERE / f"see-{name}.svg").write_text(picture)
    (HERE / "see-it.svg").write_text(found.traces[0].svg(kind="encoder", head=None, word="it"))
    print(move.sentence())
    for off, one in zip(found.knockouts, found.without(move), strict=True):
        assert off is not None and one is not None
        print(f"{off.word}: {off.probability:.4f} -> {one.probability:.4f}, {one.instead}; {one.translation}")
    for trace in found.traces:
        print(trace.text("encoder").splitlines()[2:])


if __name__ == "__main__":
    main(sys.argv[1])
