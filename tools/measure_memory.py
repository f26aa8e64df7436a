"""Measures what one training step of a long text takes; writes docs/memory.json and draws docs/memory.svg from it.

nice -n 10 .venv/bin/python tools/measure_memory.py          (a quarter of an hour; 16 GB of memory should be free)
.venv/bin/python tools/measure_memory.py draw                (the picture alone, from docs/memory.json)
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
TOKENS = [2_000, 4_000, 8_000, 11_000, 16_000]
KINDS = {
    "T-DMCA": "local and memory-compressed attention",
    "T-D fused": "full attention, weights never held",
    "T-D explicit": "full attention, weights held",
}
COLOURS = {"T-DMCA": "#0a7d4f", "T-D fused": "#2b6cb0", "T-D explicit": "#c0392b"}
SIZES = {"width": 256, "heads": 4, "depth": 5, "inner": 1024}
VOCABULARY = 8_000
LIMIT = 14 * 10**9
PAGE = resource.getpagesize()


def main() -> None:
    """Measure every point in a process of its own, print the table, draw."""
    if sys.argv[1:2] == ["point"]:
        print(json.dumps(point(sys.argv[2], int(sys.argv[3]))))
        return
    stored = DOCS / "memory.json"
    if sys.argv[1:] != ["draw"]:
        points = [measure(kind, tokens) for kind in KINDS for tokens in TOKENS]
        stored.write_text("[\n" + ",\n".join(map(json.dumps, points)) + "\n]\n")
    points = json.loads(stored.read_text())
    print(table(points))
    (DOCS / "memory.svg").write_text(picture(points))


def measure(kind: str, tokens: int) -> dict[str, Any]:
    """One point, in a fresh process: what an earlier one left behind does not count."""
    command = [sys.executable, __file__, "point", kind, str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(done.stdout.strip(), file=sys.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def point(kind: str, tokens: int) -> dict[str, Any]:
    """One training step, forward, loss and backward, the most memory resident during it, and its processor time."""
    import torch

    from regard.config import MemoryConfig
    from regard.models.base import Source
    from regard.models.memory import MemoryCompressed
    from regard.training.losses.label_smoothing import smoothed_cross_entropy

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = MemoryCompressed(MemoryConfig(**SIZES, full=kind != "T-DMCA"), VOCABULARY).train()

    def step(tokens: int) -> None:
        text = torch.randint(4, VOCABULARY, (1, tokens + 1))
        nothing = Source(text[:, :0], torch.tensor([0]))
        output = model(nothing, text[:, :-1], attention=kind == "T-D explicit")
        smoothed_cross_entropy(output.hidden_BTW[0], model.words.weight, text[0, 1:], 0.1).backward()

    step(64)  # what is loaded or allocated once belongs to the time before
    before, address_space = peak(), int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (address_space + LIMIT, address_space + LIMIT))
    began = time.process_time()
    try:
        step(tokens)
    except (MemoryError, RuntimeError) as error:
        if "memory" not in str(error):
            raise
        return {"kind": kind, "tokens": tokens, "fits": False}
    seconds = round(time.process_time() - began, 1)
    return {"kind": kind, "tokens": tokens, "fits": True, "step": peak() - before, "all": peak(), "seconds": seconds}


def peak() -> int:
    """The most bytes that this process ever had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(points: list[dict[str, Any]]) -> str:
    """The table of docs/memory.md."""
    lines = ["| tokens | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for tokens in TOKENS:
        cells = [cell(p) for kind in KINDS for p in points if (p["kind"], p["tokens"]) == (kind, tokens)]
        lines.append(f"| {tokens:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(p: dict[str, Any]) -> str:
    """Memory and time of one point."""
    return f"{p['step'] / 1e9:.2f} GB, {p['seconds']:.1f} s" if p["fits"] else "does not fit in 14 GB"


STYLE = """text { font: 14px sans-serif; fill: #24292f } path { fill: none; stroke-width: 2.5 }
  .title { font-weight: bold } .axis { stroke: #57606a; stroke-width: 1 } .grid { stroke: #d8dee4; stroke-width: 1 }"""
WIDE, HIGH, TOP = 350, 260, 130


class Panel(NamedTuple):
    """One of the two diagrams: what it shows, where it begins, and its scale."""

    title: str
    measure: str
    unit: float
    left: int
    most: int
    tick: int

    def x(self, tokens: float) -> float:
        """Where a number of tokens stands."""
        return self.left + WIDE * tokens / TOKENS[-1]

    def y(self, amount: float) -> float:
        """Where an amount of what is measured stands."""
        return TOP + HIGH * (1 - amount / self.unit / self.most)


PANELS = [
    Panel("GB of memory", "step", 1e9, left=50, most=10, tick=2),
    Panel("seconds of one processor", "seconds", 1, left=490, most=60, tick=10),
]


def picture(points: list[dict[str, Any]]) -> str:
    """Memory and time over length, a curve for each kind; it ends in a cross if the next point did not fit."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 870 450" role="img" aria-labelledby="title">',
        '<title id="title">Memory and time of one training step by the length of the text</title>',
        f"<style>{STYLE}</style>",
        '<rect width="870" height="450" fill="white"/>',
    ]
    for number, (kind, meaning) in enumerate(KINDS.items()):
        height = 24 + 22 * number
        parts.append(f'<path d="M50 {height - 5}h30" {stroke(kind)}/>')
        parts.append(f'<text x="90" y="{height}">{kind}: {meaning}</text>')
    for panel in PANELS:
        parts += frame(panel)
        for kind in KINDS:
            parts += curve(panel, kind, [p for p in points if p["kind"] == kind])
    return "\n".join([*parts, "</svg>", ""])


def frame(panel: Panel) -> list[str]:
    """The axes with their numbers."""
    parts = [
        f'<text x="{panel.left}" y="{TOP - 20}" class="title">{panel.title}</text>',
        f'<text x="{panel.left + WIDE / 2}" y="{TOP + HIGH + 48}" text-anchor="middle">tokens in the text</text>',
    ]
    for amount in range(0, panel.most + 1, panel.tick):
        height = panel.y(amount * panel.unit)
        parts.append(f'<path class="{"grid" if amount else "axis"}" d="M{panel.left} {height:.1f}h{WIDE}"/>')
        parts.append(f'<text x="{panel.left - 10}" y="{height + 5:.1f}" text-anchor="end">{amount}</text>')
    for tokens in TOKENS:
        parts.append(f'<path class="axis" d="M{panel.x(tokens):.1f} {TOP + HIGH}v5"/>')
        parts.append(f'<text x="{panel.x(tokens):.1f}" y="{TOP + HIGH + 22}" text-anchor="middle">{tokens:,}</text>')
    return parts


def curve(panel: Panel, kind: str, points: list[dict[str, Any]]) -> list[str]:
    """One kind's line and its points."""
    places = [(panel.x(p["tokens"]), panel.y(p[panel.measure])) for p in points if p["fits"]]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    parts = [f'<path d="M{line}" {stroke(kind)}/>']
    parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{COLOURS[kind]}"/>' for a, b in places]
    missing = [p["tokens"] for p in points if not p["fits"]]
    if missing:
        a, b = places[-1]
        parts.append(f'<path d="M{a + 12:.1f} {b - 5:.1f}l10 10m0 -10l-10 10" {stroke(kind)}/>')
        parts.append(f'<text x="{a + 28:.1f}" y="{b + 5:.1f}">{missing[0]:,}: over 14 GB</text>')
    return parts


def stroke(kind: str) -> str:
    """How a kind's line looks; one is dashed, as another may run below it."""
    dashes = ' stroke-dasharray="6 5"' if kind == "T-D fused" else ""
    return f'stroke="{COLOURS[kind]}"{dashes}'


if __name__ == "__main__":
    main()
