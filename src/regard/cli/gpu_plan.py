"""`regard check --gpus`: the plan on paper, as a table."""

import argparse
from typing import Any

from regard.cli.values import number, whole
from regard.config import Config, TransformerConfig, UniversalConfig, model_name
from regard.training.gpu_plan import WAYS, Counts, Plan

LINKS = {1.25: "10 Gb/s Ethernet", 25.0: "200 Gb/s InfiniBand", 300.0: "NVLink"}
TFLOPS = 120.0
"""What a GPU whose data sheet says 312 (bfloat16) reaches in training, about."""
SENTENCE = 32
"""Tokens of a sentence, where there is no text to count them in."""
PARTS = {
    "weights": "weights",
    "gradients": "gradients",
    "moments": "Adam's two averages",
    "average": "moving average (train.ema)",
    "gathered": "blocks gathered to compute with",
    "copies": "weights in bfloat16",
    "activations": "activations",
}


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """How many GPUs, and of what kind."""
    group = parser.add_argument_group("many GPUs, on paper")
    group.add_argument(
        "--gpus", type=whole(1, 10**9), metavar="N", help="what training would take on so many; needs none of them"
    )
    group.add_argument(
        "--memory", type=number(1e-3, 1e6), default=80.0, metavar="GB", help="memory of each (default 80)"
    )
    group.add_argument(
        "--link",
        type=number(1e-6, 1e6),
        action="append",
        metavar="GB/S",
        help="gigabytes that each sends in a second; repeatable (default 1.25, 25 and 300)",
    )
    group.add_argument(
        "--tflops",
        type=number(1e-6, 1e6),
        default=TFLOPS,
        metavar="N",
        help=f"10^12 operations each does in a second, in practice and not in its data sheet (default {TFLOPS:g})",
    )


def planned(options: argparse.Namespace, config: Config, counts: Counts, length: float | None) -> Plan:
    """The plan asked for; texts are of this length, if it is known."""
    if length is None:
        of_pairs = isinstance(config.model, TransformerConfig | UniversalConfig)
        length = min(SENTENCE, config.text.longest) if of_pairs else config.text.longest
    return Plan(config, counts, options.gpus, length, options.tflops * 1e12)


def as_table(plan: Plan, options: argparse.Namespace) -> dict[str, Any]:
    """Ready for JSON: bytes, tokens, seconds and shares."""
    return {
        "parameters": plan.counts.all,
        "gpus": plan.gpus,
        "tokens_per_gpu": plan.tokens,
        **{
            way: {
                "recomputing" if recompute else "keeping": {
                    "bytes": {part: getattr(plan.memory(way, recompute=recompute), part) for part in (*PARTS, "all")},
                    "fits": plan.largest(way, options.memory, recompute=recompute) >= plan.tokens,
                    "largest_tokens_per_gpu": plan.largest(way, options.memory, recompute=recompute),
                    "computing_seconds": plan.step(way, recompute=recompute).computing,
                    "bytes_sent": plan.step(way).sent,
                    "efficiency": {
                        f"{link:g}": plan.step(way, recompute=recompute).efficiency(link * 1e9)
                        for link in options.link or LINKS
                    },
                }
                for recompute in (False, True)
            }
            for way in WAYS
        },
    }


def lines(plan: Plan, options: argparse.Namespace) -> list[str]:
    """For the terminal."""
    batch, counts = plan.config.train.batch_tokens, plan.counts
    return [
        f"{model_name(plan.config.model)}: {counts.all:,} parameters, of which {counts.all - counts.outside:,} "
        f"in {len(counts.blocks)} blocks; a vocabulary of {plan.config.text.vocabulary:,}",
        f"{plan.gpus:,} GPUs of {options.memory:g} GB; batches of {batch:,} tokens (train.batch_tokens), "
        f"{plan.tokens:,} on each GPU",
        *_too_few(plan),
        "",
        *_memory(plan, options.memory),
        "",
        *_time(plan, options.link or list(LINKS)),
    ]


def _too_few(plan: Plan) -> list[str]:
    if plan.tokens >= plan.length:
        return []
    enough = round(plan.gpus * plan.length)
    return [f"That is less than one text for each; set train.batch_tokens to {enough:,} at least, or use fewer GPUs."]


def _memory(plan: Plan, gigabytes: float) -> list[str]:
    kept = {way: plan.memory(way) for way in WAYS}
    parts = {name: [getattr(kept[way], part) for way in WAYS] for part, name in PARTS.items()}
    found = [_row("GB on each GPU", WAYS)]
    found += [_row(name, [f"{value / 1e9:,.2f}" for value in values]) for name, values in parts.items() if any(values)]
    for recompute in (False, True):
        largest = [plan.largest(way, gigabytes, recompute=recompute) for way in WAYS]
        whole = [plan.memory(way, recompute=recompute).all / 1e9 for way in WAYS]
        fits = ["" if tokens >= plan.tokens else " too much" for tokens in largest]
        if recompute:
            found += ["with train.recompute=true"]
            again = [plan.memory(way, recompute=True).activations / 1e9 for way in WAYS]
            found += [_row("activations", [f"{value:,.2f}" for value in again])]
        found += [_row("all", [f"{value:,.2f}{note}" for value, note in zip(whole, fits, strict=True)])]
        found += [_row("largest batch that fits, tokens", [f"{tokens:,}" for tokens in largest])]
    return found


def _time(plan: Plan, links: list[float]) -> list[str]:
    steps = {way: plan.step(way) for way in WAYS}
    found = [
        _row("each step", WAYS),
        _row("ms computing", [f"{1000 * steps[way].computing:,.1f}" for way in WAYS]),
        _row(
            "ms computing with train.recompute=true",
            [f"{1000 * plan.step(way, recompute=True).computing:,.1f}" for way in WAYS],
        ),
        _row("GB sent by each GPU", [f"{steps[way].sent / 1e9:,.2f}" for way in WAYS]),
    ]
    for link in links:
        shares = [
            f"{steps[way].efficiency(1e9 * link):.0%} ({steps[way].efficiency(1e9 * link, overlapped=False):.0%})"
            for way in WAYS
        ]
        name = f", {LINKS[link]}" if link in LINKS else ""
        found += [_row(f"computing at {link:g} GB/s{name}", shares)]
    speed = plan.speed / 1e12
    return [
        *found,
        f"The share of time spent computing, at {speed:g} TFLOP/s, if sending and computing overlap (if they do not).",
    ]


def _row(name: str, cells: list[str] | tuple[str, ...]) -> str:
    return f"{name:42}" + "".join(f"{cell:>18}" for cell in cells).rstrip()
