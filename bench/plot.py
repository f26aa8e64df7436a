"""What was measured as a picture: a block of bars for each contest, and a curve for each thing that grows."""

from typing import Any
from xml.sax.saxutils import escape

from bench.figures import figure

WIDE, LEFT, BAR, ROW = 900, 290, 420, 24
CURVE_WIDE, CURVE_HIGH, COLUMNS = 250, 150, 3
STYLE = """text { font: 14px sans-serif; fill: #24292f } .title { font-weight: bold } .small { font-size: 12px }
  .ours { fill: #0a7d4f } .other { fill: #8c959f } .memory { fill: none; stroke: #2b6cb0; stroke-width: 2.5 }
  .time { fill: none; stroke: #c0562b; stroke-width: 2.5; stroke-dasharray: 6 4 } .axis { fill: none; stroke: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .ours { fill: #3fb984 } .other { fill: #6e7681 } .memory { stroke: #6cb6ff } .time { stroke: #f0a070 }
  }"""


def picture(stored: dict[str, Any]) -> str:
    """The whole picture, as tall as it needs to be."""
    parts: list[str] = []
    top = 10
    for found in stored.values():
        if found["rates"]:
            parts += bars(found, top)
            top += ROW * len(found["rates"]) + 60
        if found.get("curves"):
            parts += curves(found["curves"], top)
            top += (CURVE_HIGH + 90) * -(-len(found["curves"]) // COLUMNS) + 60
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {top}" role="img" aria-labelledby="title">',
            '<title id="title">Rates of Regard and its peers, and how memory and time grow</title>',
            f"<style>{STYLE}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def bars(found: dict[str, Any], top: int) -> list[str]:
    """Each contestant's best rate; ours stands out."""
    best = {name: max(rates) for name, rates in found["rates"].items()}
    most = max(best.values())
    parts = [_text(10, top + 20, f"{found['title']}, {found['unit']}", "title")]
    for number, (name, rate) in enumerate(best.items()):
        y = top + 36 + ROW * number
        kind = "ours" if name.lower().startswith("regard") else "other"
        parts.append(_text(LEFT - 10, y + 14, name, anchor="end"))
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{BAR * rate / most:.1f}" height="{ROW - 6}" class="{kind}"/>')
        parts.append(_text(LEFT + BAR * rate / most + 8, y + 14, figure(rate)))
    return parts


def curves(grown: dict[str, list[dict[str, float]]], top: int) -> list[str]:
    """Memory and time over what grows, each from zero to its own most."""
    parts = [
        _text(
            10,
            top + 20,
            "How a training step grows: megabytes of the step (line), microseconds a word (dashes)",
            "title",
        )
    ]
    for number, (name, points) in enumerate(grown.items()):
        x = 20 + (CURVE_WIDE + 45) * (number % COLUMNS)
        y = top + 60 + (CURVE_HIGH + 90) * (number // COLUMNS)
        widest = max(point["at"] for point in points)
        parts.append(f'<path class="axis" d="M{x} {y}v{CURVE_HIGH}h{CURVE_WIDE}"/>')
        parts.append(_text(x, y + CURVE_HIGH + 20, f"{name} up to {widest:,.0f}"))
        memory = [point["most"] - point["before"] for point in points]
        micro = [1e6 * point["seconds"] for point in points]
        for kind, values in (("memory", memory), ("time", micro)):
            places = [
                f"{x + CURVE_WIDE * point['at'] / widest:.1f},{y + CURVE_HIGH * (1 - value / max(values)):.1f}"
                for point, value in zip(points, values, strict=True)
            ]
            parts.append(f'<path class="{kind}" d="M{" ".join(places)}"/>')
        told = f"at most {max(memory):,.0f} MB, {max(micro):,.0f} µs a word"
        parts.append(_text(x, y + CURVE_HIGH + 38, told, "small"))
    return parts


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
