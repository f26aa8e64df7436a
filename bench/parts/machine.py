"""What the matrix products alone allow: Regard's training step beside the products it is made of."""

from typing import Any

from bench import inputs, sizes
from bench.contest import Entry, race
from bench.inputs import Batches
from bench.parts.starting import started
from bench.parts.training import ours
from bench.result import Options, Result

PRECISIONS = ("bfloat16", "float32")


def tiny(options: Options) -> Result:
    """Transformer-Tiny on the batches of training-tiny."""
    return _bound("Transformer-Tiny", inputs.tiny(options.data, count=4), sizes.TINY, options)


def base(options: Options) -> Result:
    """Transformer-base on the batches of training-base."""
    return _bound("Transformer-base", inputs.base(count=2), sizes.BASE, options)


def peak(options: Options) -> Result:
    """The product of two square matrices."""
    entries = [
        Entry(f"{side:,}³, {low}", "products", {"square": side, "precision": low})
        for low in PRECISIONS
        for side in (1024, 2048, 4096)
    ]
    result = Result("Square matrix products", "operations a second", "The plain peak of `torch.mm`.")
    with started(entries, result) as racers:
        result.lines = race(racers, options.rounds, options.seconds)
    return result


def _bound(name: str, batches: Batches, model: dict[str, Any], options: Options) -> Result:
    entries = ours(batches, model)
    for low in PRECISIONS:
        for padded in (True, False):
            settings = {"batches": str(batches.path), "model": model, "precision": low, "padded": padded}
            entries.append(Entry(f"products, {low}, {'padded' if padded else 'real words'}", "products", settings))
    result = Result(
        f"How much of the machine {name} uses",
        "target words a second",
        f"{batches.about}. The products that one training step needs, at its shapes (linear layers forward and twice "
        "backward, attention, scores over the vocabulary) and nothing else; *padded* as the batches are, or with linear "
        "layers over the *real words* alone.",
        "Regard",
    )
    with started(entries, result) as racers:
        result.lines = race(racers, options.rounds, options.seconds)
    best = {line.name: line.best for line in result.lines}
    for name, low in (("Regard", "bfloat16"), ("Regard, float32", "float32")):
        shares = [best[name] / best[f"products, {low}, {kind}"] for kind in ("padded", "real words")]
        result.notes[name] = f"{shares[0]:.0%} of its products' speed, {shares[1]:.0%} of that without padding"
    return result
