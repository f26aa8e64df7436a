"""Draws docs/demo.svg, the picture in the README, from the model that `make demo` left in runs/demo.

.venv/bin/python tools/draw_demo.py
"""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

import regard
from regard.cli.display import sparkline
from regard.text.builtin.grammar import LECTURE
from regard.training.log import read_log

ROOT = Path(__file__).parents[1]
DECIDING = {"tired", "wide", "street.", "river."}
DECIDED = {"qu'il", "qu'elle", "banque", "rive"}


def main() -> None:
    """Translate the lecture's sentences and draw what a terminal would show, the deciding words coloured."""
    model = regard.load(ROOT / "runs" / "demo", device="cpu")
    losses = [line["loss"] for line in read_log(ROOT / "runs" / "demo" / "log.jsonl") if "loss" in line]
    console = Console(record=True, width=84, file=io.StringIO())
    console.print(Text("$ make demo", style="bold"))
    console.print(f"step {len(losses) * 50:,}  loss {losses[-1]:.3f}  {sparkline(losses, 40)}\n")
    for pair in LECTURE:
        written = model.translate(pair.source)
        console.print(coloured(pair.source, {pair.source.split()[-1].strip("."), pair.source.split()[-1]} & DECIDING))
        mark = Text("  ✓" if written == pair.target else "  ✗", style="green" if written == pair.target else "red")
        console.print(coloured(written, DECIDED) + mark)
        console.print()
    # rich names web fonts; the picture should fetch nothing.
    picture = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="regard demo"), flags=re.DOTALL)
    (ROOT / "docs" / "demo.svg").write_text(picture)


def coloured(sentence: str, words: set[str]) -> Text:
    """The sentence with these words standing out."""
    line = Text("  ")
    for word in sentence.split():
        line.append(word, style="bold cyan" if word in words or word.strip(".") in words else "")
        line.append(" ")
    return line


if __name__ == "__main__":
    main()
