"""How many target words a second are learned from, the very same batches for everyone."""

from typing import Any

from bench import inputs, peers, sizes
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
        Entry(name, f"train_{peer}", _settings(batches, sizes.TINY, "float32"), peer, kept)
        for peer in ("eole", "joeynmt")
        for name, kept in ((peers.PEERS[peer].title, False), (f"{peers.PEERS[peer].title}, memory kept", True))
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
    """As it comes, and as it is fastest here: attention as written, memory kept, and then bfloat16 pays too."""
    plain = _settings(batches, model, "float32")
    tuned = [plain | {"attention": "eager", "precision": low} for low in ("float32", "bfloat16")]
    return [
        Entry("Hugging Face, float32", "train_huggingface", plain | {"attention": "sdpa"}, "huggingface"),
        Entry("Hugging Face, hand-tuned, float32", "train_huggingface", tuned[0], "huggingface", True),
        Entry("Hugging Face, hand-tuned, bfloat16", "train_huggingface", tuned[1], "huggingface", True),
    ]


def _settings(batches: Batches, model: dict[str, Any], precision: str) -> dict[str, Any]:
    return {"batches": str(batches.path), "model": model, "precision": precision}


def _measure(result: Result, batches: Batches, entries: list[Entry], options: Options) -> Result:
    result.unit, result.ours = "target words a second", OURS
    result.about += (
        f"; {batches.about}, the same for all. Forward, backward, clipping and Adam. END counts as a word, padding not. "
        "*Memory kept*: with the C library told not to return freed memory to the system, as Regard does by itself; "
        "*hand-tuned* is this and attention as the equations are written, which is faster here than the fused kernel."
    )
    with started(entries, result) as racers:
        result.lines = race(racers, options.rounds, options.seconds)
    return result
