"""The peers, each in a virtual environment of its own under bench/.venvs, made when it is first needed."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench.contest import ROOT, ContestError

HOME = ROOT / "bench" / ".venvs"
CONSTRAINTS = ROOT / "constraints.txt"


class Peer(NamedTuple):
    """What to install."""

    title: str
    package: str
    """Whose version the table names."""
    needs: tuple[str, ...]
    pinned: bool = True
    """Whether our constraints hold there too; a peer that needs other versions has only torch in common with us."""


PEERS = {
    "huggingface": Peer("Hugging Face", "transformers", ("torch", "transformers", "sentencepiece", "safetensors")),
    "ctranslate2": Peer("CTranslate2", "ctranslate2", ("ctranslate2", "sentencepiece", "safetensors", "numpy")),
    # Each lacks something that it imports; without it, it does not start.
    "eole": Peer("eole", "eole", ("torch", "eole==0.6.3", "aiohttp"), pinned=False),
    "joeynmt": Peer(
        "Joey NMT",
        "joeynmt",
        ("torch", "joeynmt==2.3.0", "importlib_metadata", "sentencepiece==0.2.0"),
        pinned=False,
    ),
}


def python_of(name: str) -> Path:
    """The peer's interpreter; its environment is made if it is not there. An error says why it cannot be."""
    folder = HOME / name
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    print(f"installing {PEERS[name].title}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, *_requirements(PEERS[name])], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        shutil.rmtree(folder, ignore_errors=True)
        raise ContestError(f"could not be installed: {errors[-1] if errors else done.stderr.strip()[-200:]}")
    ready.touch()
    return python


def version_of(name: str) -> str:
    """What is installed, by name and number."""
    package = PEERS[name].package
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([str(python_of(name)), "-c", code], capture_output=True, text=True, check=True)
    return f"{package} {done.stdout.strip()}"


def _requirements(peer: Peer) -> list[str]:
    if peer.pinned:
        return [*peer.needs, "--constraint", str(CONSTRAINTS)]
    pinned = [line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("torch==")]
    return [pinned[0] if need == "torch" else need for need in peer.needs]
