"""What a part found, as it is kept in docs/benchmarks.json."""

import datetime
import importlib.metadata
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.contest import Line


class Options(NamedTuple):
    """What the command line says to a part."""

    data: Path
    """The folder of Multi30k."""
    rounds: int
    seconds: float
    """After so many no new round begins."""
    model: Path | None = None
    """A trained model folder to translate with."""
    student: Path | None = None
    """Another one, to compare with it."""


@dataclass
class Result:
    """Rates or other figures, by contestant, and all that a reader needs to judge them."""

    title: str
    unit: str
    about: str
    ours: str = ""
    """Who is compared with the others."""
    comparison: str = ""
    """What a ratio to ours is called; by default how many times as fast ours is."""
    lines: list[Line] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """What else is known of a contestant: its version, the settings it was best with, its BLEU."""
    curves: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """Points of what grows, by what it grows with."""
    table: list[list[str]] = field(default_factory=list)
    """A header and rows, of what was not measured in turns by the conductor."""

    def as_json(self) -> dict[str, Any]:
        """All of it, with the machine and the day."""
        kept = {name: value for name, value in vars(self).items() if name != "lines"}
        rates = {line.name: line.rates for line in self.lines}
        return kept | {"rates": rates, "machine": machine(), "date": datetime.date.today().isoformat()}


def machine() -> dict[str, Any]:
    """The processor, and what runs on it."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "regard")}
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": int(os.environ.get("OMP_NUM_THREADS", 0)) or os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **versions,
    }


def _processor() -> str:
    """Its name and what it can do that matters here; empty where the system does not say."""
    try:
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        told = {key.strip(): value.strip() for key, _, value in lines}
    except OSError:
        return platform.processor()
    able = [
        name for name in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16") if name in told["flags"].split()
    ]
    return f"{told['model name']} (family {told['cpu family']}, model {told['model']}; {', '.join(able)})"
