"""Prepared text is there whole or not at all; and what an interrupted preparation has done already is not done again."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.config import TextConfig
from regard.system import storage
from regard.text.corpus import Corpus
from regard.text.plain_text import Documents

PREPARED, JOURNAL = "prepared.json", "journal.json"
JOURNAL_FORMAT = 2  # a preparation that was interrupted under another one begins anew


class Journal:
    """How far a preparation has come. What it tells is on the disk before it is told."""

    def __init__(self, folder: Path, key: dict[str, Any]) -> None:
        """Take up what is in the folder, if it is of the same text and settings; else empty it."""
        self._path, self._key = folder / JOURNAL, key
        self.done: dict[str, Any] = _read(self._path, key).get("done", {})
        if not self.done:
            storage.remove_folder(folder)
            storage.make_folder(folder)
        storage.sweep(folder)

    def tell(self, stage: str, done: dict[str, Any]) -> None:
        """Remember how far a stage has come."""
        self.done[stage] = done
        storage.write_file(self._path, json.dumps({"key": self._key, "done": self.done}).encode())


def once(folder: Path, key: dict[str, Any], write: Callable[[Path, Journal], list[str]]) -> list[str]:
    """Let `write` fill the folder, unless it is there; it appears under its name only when it is complete."""
    if not _read(folder / PREPARED, key):
        storage.remove_folder(folder)
        unfinished = folder.with_name(folder.name + ".unfinished")
        notes = write(unfinished, Journal(unfinished, key | {"journal": JOURNAL_FORMAT}))
        storage.write_file(unfinished / PREPARED, json.dumps({"key": key, "notes": notes}).encode())
        storage.disk.rename(unfinished, folder)
    storage.remove_file(folder / JOURNAL)
    stored: list[str] = _read(folder / PREPARED, key)["notes"]
    return stored


def key_of(
    train: Corpus | Documents, valid: Corpus | Documents | None, config: TextConfig, seed: int
) -> dict[str, Any]:
    """What the prepared text depends on."""
    return {
        "train": train.fingerprint(),
        "valid": valid.fingerprint() if valid else None,
        "text": asdict(config),
        "seed": seed,
        "format": 2,
    }


def _read(path: Path, key: dict[str, Any]) -> dict[str, Any]:
    """What a file says, if it is whole and says it of this key."""
    try:
        table: dict[str, Any] = json.loads(path.read_text())
        return table if table["key"] == key else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
