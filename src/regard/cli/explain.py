"""`regard explain`: how one word's attention is computed, in eight steps, with the numbers of the user's own text."""

import argparse
import math
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from regard.cli.options import Subparsers, add_command
from regard.cli.values import path, whole
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.interpret.steps import Steps

EXAMPLES = """  regard explain runs/demo "The animal was too tired."
  regard explain runs/demo "The animal was too tired." --kind encoder --layer 2 --head 3 --word animal
  regard explain runs/demo "I sleep." --target "Je dors." --word dors
  regard explain --lecture                          three inputs, three small matrices; needs no model

Layers and heads count from 1. What is not given is chosen: the last layer, and a word that looks at two others."""

WIDE = 88
NUMBERS = 8
"""How many numbers of a vector are printed."""
ROWS = 16
"""How many words are listed: those with the largest weights."""
BAR = 24


def add_parser(commands: Subparsers) -> None:
    """`regard explain DIR TEXT`."""
    parser = add_command(
        commands, "explain", "show how attention is computed, step by step, on your own text", EXAMPLES
    )
    parser.add_argument("folder", type=path, nargs="?", metavar="DIR", help="a model folder made by regard train")
    parser.add_argument("text", nargs="?", metavar="TEXT", help="the text the model reads")
    parser.add_argument(
        "--target", metavar="TEXT", help="what it writes, for a model that translates (default: its own)"
    )
    parser.add_argument("--kind", metavar="KIND", help="encoder, decoder, cross, local or compressed")
    parser.add_argument("--layer", type=whole(1), metavar="N", help="the layer")
    parser.add_argument("--head", type=whole(1), metavar="N", help="the head (default: where the word looks hardest)")
    parser.add_argument("--word", metavar="WORD", help="the word that looks")
    parser.add_argument("--lecture", action="store_true", help="the worked example of introductory lectures instead")
    parser.add_argument("--scaled", action="store_true", help="with --lecture: divide the scores by the root of 3")
    parser.add_argument("--no-pager", action="store_true", help="print it all at once")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Explain."""
    if options.lecture == (options.folder is not None):
        raise ConfigError("Give either a model folder and a text, or --lecture alone.")
    if options.scaled and not options.lecture:
        raise ConfigError("--scaled belongs to --lecture: whether a model divides its scores is not for us to choose.")
    steps = _lecture(options) if options.lecture else _explained(options)
    text = "\n".join(map(_harmless, lines_of(steps)))
    if sys.stdout.isatty() and not options.no_pager:
        import pydoc  # slow to import, and not for those who only ask for help

        pydoc.pager(text)
    else:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        print(text)
    return 0


def _lecture(options: argparse.Namespace) -> "Steps":
    from regard.interpret.worked_example import steps

    return steps(options.word, scaled=options.scaled)


def _explained(options: argparse.Namespace) -> "Steps":
    if options.text is None:
        raise ConfigError(f'There is no text. Write: regard explain {options.folder} "your text"')
    from regard.decode.translator import Translator
    from regard.inference.torch_models import load
    from regard.interpret.steps import explain

    loaded = load(options.folder)
    given = () if options.target is None else (options.target,)
    if given and not isinstance(loaded, Translator):
        raise ConfigError("--target is for models that write one text for another. Leave it out for this one.")
    return explain(loaded.attention(options.text, *given), options.kind, options.layer, options.head, options.word)


def _harmless(line: str) -> str:
    """The words of a text are shown to a terminal, but do not command it."""
    return "".join("�" if unicodedata.category(letter) in ("Cc", "Cf", "Cs") else letter for letter in line)


def lines_of(steps: "Steps") -> Iterator[str]:
    """The eight steps, line by line."""
    heads = len(steps.detail.query_HQD)
    yield f"How “{steps.word}” looks: {steps.label}" + (f", head {steps.head + 1} of {heads}" if heads > 1 else "")
    shown = (_embedded, _entered, _projected, _scored, _scaled, _masked, _softmax, _mixed)
    for number, (panel, numbers) in enumerate(zip(steps.panels, shown, strict=True), start=1):
        yield from ("", f"{number} · {panel.title}", "─" * WIDE)
        yield from textwrap.wrap(panel.said, WIDE)
        yield from (f"    {line}" for line in (panel.formula, panel.shapes) if line)
        yield from (f"    {code.where}  {code.line}" for code in panel.code)
        yield ""
        yield from numbers(steps)
    yield from ("", _checked(steps))


def _checked(steps: "Steps") -> str:
    parts = ", ".join(f"{name} {apart:.0e}" for name, apart in steps.differences.items())
    mark = "✓" if steps.difference <= 1e-3 else "✗ THIS IS NOT WHAT THE MODEL COMPUTED:"
    return f"{mark} Computed anew with NumPy; largest difference from PyTorch {steps.difference:.0e} ({parts})."


# ------------------------------------------------------------------------------------------- the numbers of each step


def _embedded(steps: "Steps") -> Iterator[str]:
    if steps.detail.embedding is None:
        return
    word, position, total = steps.detail.embedding
    rows = [("word", word), ("position", position), ("x", total)] if position is not None else [("x", total)]
    yield from _vectors([(name, part[steps.query]) for name, part in rows])


def _entered(steps: "Steps") -> Iterator[str]:
    around, entered_W = steps.detail.around, steps.numbers.input_W
    if around is not None:
        rows = [("x", around.input_QW[steps.query])]
        yield from _vectors([*rows, ("norm(x)", entered_W)] if around.norm_first else rows)


def _projected(steps: "Steps") -> Iterator[str]:
    detail, head = steps.detail, steps.head
    for name, matrix in (steps.projections or {}).items():
        yield from _matrix(f"W_{name[0]}", matrix)
    rows = [(f"q  {steps.word}", detail.query_HQD[head, steps.query])]
    for name, vectors in (("k", detail.key_HKD[head]), ("v", detail.value_HKD[head])):
        rows += [(f"{name}  {steps.keys[key]}", vectors[key]) for key in _listed(steps)]
    yield from _vectors(rows)
    yield from _rest(steps)


def _scored(steps: "Steps") -> Iterator[str]:
    detail, head = steps.detail, steps.head
    products_K = steps.numbers.products_HK[head]
    best = int(steps.numbers.weights_HK[head].argmax())
    query_D, key_D = detail.query_HQD[head, steps.query], detail.key_HKD[head, best]
    yield from _table(steps, {"q · k" if detail.fit_D is None else "score": products_K} | _bias(steps))
    if detail.fit_D is None:
        terms = [f"{q:.2f}·{k:.2f}" for q, k in zip(query_D, key_D, strict=True)]
    else:
        terms = [f"{v:.2f}·tanh({q:.2f} + {k:.2f})" for v, q, k in zip(detail.fit_D, query_D, key_D, strict=True)]
    count = 4 if detail.fit_D is None else 3
    more = f" + {len(terms) - count} more" if len(terms) > count else ""
    yield f"  for “{steps.keys[best]}”: {' + '.join(terms[:count])}{more} = {products_K[best]:.3f}"


def _bias(steps: "Steps") -> dict[str, Any]:
    bias_HQK = steps.detail.bias_HQK
    if bias_HQK is None:
        return {}
    bias_K = bias_HQK[steps.head, steps.query]
    return {"q · r": bias_K, "sum": steps.numbers.products_HK[steps.head] + bias_K}


def _scaled(steps: "Steps") -> Iterator[str]:
    import numpy as np

    if steps.detail.fit_D is not None:
        return
    numbers, head, seen_K = steps.numbers, steps.head, steps.detail.seen_QK[steps.query]
    used_K, other_K = (np.where(seen_K, one_HK[head], np.nan) for one_HK in (numbers.weights_HK, numbers.other_HK))
    divides = steps.detail.scale != 1
    names = ("softmax, divided", "not divided") if divides else ("softmax, not divided", "divided")
    columns = {"score": numbers.scores_HK[head], names[0]: used_K, names[1]: other_K}
    yield from _table(steps, columns)


def _masked(steps: "Steps") -> Iterator[str]:
    seen_K = steps.detail.seen_QK[steps.query]
    hidden = [key for key, seen in zip(steps.keys, seen_K, strict=True) if not seen]
    if hidden:
        yield from textwrap.wrap(
            f"“{steps.word}” does not see: {' '.join(hidden)}", WIDE, initial_indent="  ", subsequent_indent="  "
        )
    else:
        yield f"  “{steps.word}” may look at all {len(seen_K)}."


def _softmax(steps: "Steps") -> Iterator[str]:
    import numpy as np

    scores_K, weights_K = steps.numbers.scores_HK[steps.head], steps.numbers.weights_HK[steps.head]
    seen_K = steps.detail.seen_QK[steps.query]
    hidden_K = np.where(seen_K, scores_K, -np.inf)
    exp_K = np.exp(hidden_K - hidden_K.max())
    yield from _table(steps, {"score": hidden_K, "exp": exp_K, "weight": weights_K}, bars=weights_K)
    yield f"  sum of exp {exp_K.sum():.4f}, largest score {hidden_K.max():.3f}, sum of weights {weights_K.sum():.4f}"


def _mixed(steps: "Steps") -> Iterator[str]:
    numbers, detail, head = steps.numbers, steps.detail, steps.head
    weights_K = numbers.weights_HK[head]
    top = sorted(sorted(range(len(weights_K)), key=lambda key: -weights_K[key])[:4])
    rows: list[tuple[str, Any]] = [
        (f"{weights_K[key]:.3f} × {steps.keys[key]}", detail.value_HKD[head, key]) for key in top
    ]
    if len(weights_K) > len(top):
        rest = weights_K[[key for key in range(len(weights_K)) if key not in top]].sum()
        rows.append((f"{rest:.3f} for {len(weights_K) - len(top)} more", ()))
    rows.append(("c, the sum", numbers.context_HD[head]))
    if detail.around is not None:
        rows += [("y", numbers.joined_W), ("x", detail.around.input_QW[steps.query]), ("out", numbers.output_W)]
    yield from _vectors(rows)


# ------------------------------------------------------------------------------------------------------ in columns


def _listed(steps: "Steps") -> list[int]:
    """The words with the largest weights, in the order of the text."""
    weights_K = steps.numbers.weights_HK[steps.head]
    return sorted(sorted(range(len(weights_K)), key=lambda key: -weights_K[key])[:ROWS])


def _rest(steps: "Steps") -> Iterator[str]:
    left = len(steps.keys) - len(_listed(steps))
    if left:
        yield f"  … and {left} more, with smaller weights"


def _vectors(rows: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Names, and the first numbers of each vector."""
    names = _padded([name for name, _ in rows])
    for name, (_, vector) in zip(names, rows, strict=True):
        more = f"  … {len(vector)} numbers" if len(vector) > NUMBERS else ""
        yield f"  {name}  {' '.join(f'{x:7.2f}' for x in vector[:NUMBERS])}{more}".rstrip()


def _matrix(name: str, matrix: Any) -> Iterator[str]:
    for number, row in enumerate(matrix):
        yield f"  {name if number == 0 else '':4}" + " ".join(f"{x:4g}" for x in row)


def _table(steps: "Steps", columns: dict[str, Any], bars: Any = None) -> Iterator[str]:
    """A line for each word, a column for each list of numbers."""
    listed = _listed(steps)
    first, *names = _padded(["", *(steps.keys[key] for key in listed)])
    yield f"  {first}" + "".join(f"{name:>{max(10, len(name) + 2)}}" for name in columns)
    for key, word in zip(listed, names, strict=True):
        cells = (f"{_number(values[key]):>{max(10, len(name) + 2)}}" for name, values in columns.items())
        bar = "  " + "█" * round(BAR * bars[key]) if bars is not None else ""
        yield f"  {word}{''.join(cells)}{bar}".rstrip()
    yield from _rest(steps)


def _number(x: float) -> str:
    """Nothing is written as 0 that is not exactly 0."""
    if math.isnan(x):
        return "hidden"
    return "−∞" if x == -math.inf else "0" if x == 0 else f"{x:.4f}"


def _padded(names: Sequence[str]) -> list[str]:
    """All as wide as the widest, in columns of the terminal."""
    from regard.interpret.terminal import columns

    width = max(map(columns, names))
    return [name + " " * (width - columns(name)) for name in names]
