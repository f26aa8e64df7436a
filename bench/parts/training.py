"""How many target words a second are learned from, the very same batches for everyone."""

from typing import Any

from bench import inputs, sizes
from bench.contest import Entry, race
from bench.inputs import Batches
from bench.parts.starting import started
from bench.result import Options, Result

OURS = "Regard"


def tiny(options: Options) -> Result:
    """Transformer-Tiny on real sentences, beside every peer that trains."""
    batches = inputs.tiny(options.data, count=4)
    about = f"4 + 4 layers, width 128, inner 256, 4 heads; batches of {inputs.BATCH_TOKENS:,} tokens"
    others = [
        Entry("eole", "train_eole", _settings(batches, sizes.TINY, "float32"), "eole"),
        Entry("Joey NMT", "train_joeynmt", _settings(batches, sizes.TINY, "float32"), "joeynmt"),
    ]
    entries = [*ours(batches, sizes.TINY), *_huggingface(batches, sizes.TINY), *others]
    return _measure(Result("Training Transformer-Tiny", "", about), batches, entries, options)


def base(options: Options) -> Result:
    """Transformer-base on random words, beside the fastest peer."""
    batches = inputs.base(count=2)
    about = "6 + 6 layers, width 512, inner 2,048, 8 heads, 37,000 words"
    entries = [*ours(batches, sizes.BASE), *_huggingface(batches, sizes.BASE)]
    return _measure(Result("Training Transformer-base", "", about), batches, entries, options)


def ours(batches: Batches, model: dict[str, Any]) -> list[Entry]:
    """Regard as it is by default, and in float32."""
    return [
        Entry(OURS, "train_regard", _settings(batches, model, "auto")),
        Entry("Regard, float32", "train_regard", _settings(batches, model, "float32")),
    ]


def _huggingface(batches: Batches, model: dict[str, Any]) -> list[Entry]:
    return [
        Entry(
            f"Hugging Face, {low}",
            "train_huggingface",
            _settings(batches, model, low) | {"attention": "sdpa"},
            "huggingface",
        )
        for low in ("float32", "bfloat16")
    ]


def _settings(batches: Batches, model: dict[str, Any], precision: str) -> dict[str, Any]:
    return {"batches": str(batches.path), "model": model, "precision": precision}


def _measure(result: Result, batches: Batches, entries: list[Entry], options: Options) -> Result:
    result.unit, result.ours = "target words a second", OURS
    result.about += (
        f"; {batches.about}, the same for all. Forward, backward, clipping and Adam. END counts as a word, padding not."
    )
    with started(entries, result) as racers:
        result.lines = race(racers, options.rounds, options.seconds)
    return result
