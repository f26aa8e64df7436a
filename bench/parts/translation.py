"""Sentences translated a second, beam search, the very same weights for everyone; start-up is not counted."""

import math
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU

import regard
from bench import inputs
from bench.contest import Contestant, ContestError, Entry, race
from bench.parts.starting import started
from bench.result import Options, Result
from regard.folder import layout as folders

OURS = "Regard, torch"
BEAM = 5
HUGGINGFACE, HUGGINGFACE_TUNED = "Hugging Face generate", "Hugging Face, hand-tuned"
TUNED = "CTranslate2, hand-tuned"
DEFAULTS = "CTranslate2, its defaults"
ITS_DEFAULTS = {"precision": "default", "workers": 1, "threads": 0, "batch": 0, "of": "examples"}
SHORTLIST = 50
"""Candidates for each source word."""
EXPRESSIBLE = {"norm": "after", "activation": "relu", "positions": "sinusoidal", "tie": "all", "decoder_depth": 0}
"""The kind of Transformer that every contestant has."""
MINUTES = 3
"""Of training, where no model is named."""


class Job(NamedTuple):
    """What to translate, and what it should become."""

    settings: dict[str, Any]
    right: list[str]
    about: str


def translate(options: Options) -> Result:
    """All engines in turns, each with the settings that were best for it in a first pass."""
    job = _job(options)
    result = Result("Translating", "sentences a second", job.about, OURS)
    auto = job.settings | {"load": {"engine": "auto"}}
    own = [
        Entry(OURS, "translate_regard", job.settings),
        Entry("Regard, torch, bfloat16", "translate_regard", job.settings | {"decode": {"precision": "bfloat16"}}),
        Entry("Regard", "translate_regard", auto),
        Entry("Regard, shortlist", "translate_regard", auto | {"decode": {"shortlist": SHORTLIST}}),
    ]
    others = [
        Entry(HUGGINGFACE, "translate_huggingface", job.settings, "huggingface"),
        Entry(HUGGINGFACE_TUNED, "translate_huggingface", job.settings, "huggingface", keeps_memory=True),
        Entry(TUNED, "translate_ctranslate2", job.settings, "ctranslate2", keeps_memory=True),
        Entry(DEFAULTS, "translate_ctranslate2", job.settings, "ctranslate2"),
    ]
    with started([*own, *others], result) as racers:
        orders = {racer.name: _tuned(racer) for racer in racers}
        result.lines = race(racers, options.rounds, options.seconds, orders)
        measure = BLEU(tokenize="none", force=True)  # the text is tokenised, and is meant to be
        for racer in racers:
            bleu = measure.corpus_score(racer.last["written"], [job.right]).score
            told = [result.notes.get(racer.name, ""), _told(orders[racer.name]), f"BLEU {bleu:.2f}"]
            result.notes[racer.name] = "; ".join(part for part in told if part)
    result.about += f" BLEU: {measure.get_signature()}."
    return result


def _job(options: Options) -> Job:
    texts, right, about = inputs.test_set(options.data)
    path = inputs.stored(texts)
    folder = trained(options)
    config, _ = folders.load_config(folder)
    model = vars(config.model)
    if wrong := [f"{name} {model.get(name)}" for name, needed in EXPRESSIBLE.items() if model.get(name) != needed]:
        raise ContestError(
            f"the peers cannot express the model in {folder}: {', '.join(wrong)}. Name another by --model."
        )
    settings = {
        "folder": str(folder.resolve()),
        "texts": str(path),
        "model": {name: model[name] for name in ("depth", "width", "inner", "heads", "dropout")},
        "beam": BEAM,
        "length_penalty": config.decode.length_penalty,
    }
    shape = f"{model['depth']} + {model['depth']} layers, width {model['width']}"
    return Job(
        settings,
        right,
        f"{about}, beam {BEAM}; a Transformer of {shape}, the same weights for all.",
    )


def trained(options: Options) -> Path:
    """The model folder that was named, or a small model made in minutes on the same text as the test set."""
    if options.model:
        return options.model
    data = options.data
    folder = inputs.MADE / "model"
    if not (folder / "model.safetensors").exists():
        there = (data / "tok" / "train.en.gz").exists()
        names = [str(data / "tok" / f"train.{side}.gz") for side in ("en", "de")] if there else ["builtin:en-fr"]
        settings = {"train.max_minutes": MINUTES, "train.warm_up": 400, "train.rate": 3.5e-3}
        settings |= {f"model.{name}": value for name, value in EXPRESSIBLE.items()}
        regard.train(names, folder, model="transformer", size="tiny", settings=settings)
    return folder


def _tuned(racer: Contestant) -> dict[str, Any]:
    """The order that lets it translate fastest, tried one by one."""
    if racer.name in (HUGGINGFACE, HUGGINGFACE_TUNED):
        usual = {"attention": "sdpa", "precision": "float32"}
        first = _fastest(racer, [usual | {"batch": size} for size in (32, 64, 128)])
        if racer.name == HUGGINGFACE:
            return first
        others = (("eager", "float32"), ("eager", "bfloat16"))
        return _fastest(racer, [first, *(first | {"attention": how, "precision": low} for how, low in others)])
    if racer.name == DEFAULTS:
        return dict(ITS_DEFAULTS)
    if racer.name != TUNED:
        return {}
    precisions = ("int8", "int8_float32", "int8_bfloat16", "bfloat16", "float32")
    first = _fastest(racer, [_ctranslate2(low, *split, 32) for low, split in product(precisions, ((1, 2), (2, 1)))])
    sizes = [(16, "examples"), (32, "examples"), (64, "examples"), (512, "tokens"), (1024, "tokens"), (2048, "tokens")]
    return _fastest(racer, [first | {"batch": size, "of": kind} for size, kind in sizes])


def _ctranslate2(precision: str, workers: int, threads: int, batch: int) -> dict[str, Any]:
    return {"precision": precision, "workers": workers, "threads": threads, "batch": batch, "of": "examples"}


def _fastest(racer: Contestant, orders: list[dict[str, Any]]) -> dict[str, Any]:
    """The order that it obeys fastest, tried on every other sentence; the first attempt is only to get warm."""
    seconds = [_seconds(racer, order) for order in (orders[0], *orders)][1:]
    return orders[seconds.index(min(seconds))]


def _seconds(racer: Contestant, order: dict[str, Any]) -> float:
    try:
        return float(racer.go(**order, every=2)["seconds"])
    except ContestError:  # a precision that this processor does not have
        return math.inf


def _told(order: dict[str, Any]) -> str:
    if not order or order == ITS_DEFAULTS:
        return ""
    if "attention" in order:
        return f"{order['precision']}, {order['attention']} attention, batches of {order['batch']}"
    return f"{order['precision']}, {order['workers']} × {order['threads']} threads, batches of {order['batch']} {order['of']}"
