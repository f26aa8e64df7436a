"""What we want to reach: (part, who, compared with whom, ratio of the best rates at least)."""

from typing import Any, NamedTuple


class Aim(NamedTuple):
    """`who` should be at least so many times as fast as `whom`."""

    part: str
    who: str
    whom: str
    ratio: float


AIMS = [
    Aim("training-tiny", "Regard", "Hugging Face, float32", 2.2),
    Aim("training-tiny", "Regard", "Hugging Face, hand-tuned, float32", 2.2),
    Aim("training-tiny", "Regard", "eole", 2.2),
    Aim("training-tiny", "Regard", "eole, memory kept", 2.2),
    Aim("training-tiny", "Regard", "Joey NMT", 6.0),
    Aim("training-base", "Regard", "Hugging Face, float32", 1.4),
    Aim("training-base", "Regard", "Hugging Face, hand-tuned, float32", 1.4),
    Aim("machine-tiny", "Regard", "products, bfloat16, padded", 0.5),
    Aim("machine-base", "Regard", "products, bfloat16, padded", 0.75),
    Aim("translation", "Regard, torch", "Hugging Face generate", 3.0),
    Aim("translation", "Regard, torch, bfloat16", "Hugging Face, hand-tuned", 3.0),
    Aim("translation", "Regard", "CTranslate2, hand-tuned", 1.0),
    Aim("translation", "Regard, shortlist", "CTranslate2, hand-tuned", 1.5),
    Aim("student", "student, torch, beam 3", "tiny, torch, beam 5", 1.8),
    Aim("student", "student, ctranslate2, beam 3", "tiny, ctranslate2, beam 5", 1.8),
    Aim("processes", "two processes", "one process", 0.9),
    Aim("cold", "regard translate", "python -c 'import torch'", 1 / 0.4),
    Aim("cold", "regard --help", "python -c 'import torch'", 1 / 0.2),
]


def verdicts(part: str, found: dict[str, Any]) -> list[str]:
    """A sentence for each aim of a part: what was aimed at, what was measured, and whether that is enough."""
    best = {name: max(rates) for name, rates in found["rates"].items()}
    said = []
    for aim in AIMS:
        if aim.part == part and aim.who in best and aim.whom in best:
            ratio = best[aim.who] / best[aim.whom]
            ending = "reached" if ratio >= aim.ratio else "**not reached**"
            said.append(f"Aim: {aim.who} at least {aim.ratio:.3g} × as fast as {aim.whom}; {ratio:.2f} ×, {ending}.")
    return said
