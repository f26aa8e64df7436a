"""Corpora with something wrong in them: read but for the bad lines, which are counted, or refused in one line."""

from pathlib import Path

import pytest

from hostile_corpora import GROUPS, Hostile, notes_of, verdict
from regard.errors import DataError


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_wrong_is_told_and_nothing_else_suffers(group: str, tmp_path: Path) -> None:
    found = {hostile.what: tried(hostile, tmp_path / str(number)) for number, hostile in enumerate(GROUPS[group](100))}
    assert len(found) >= 5 and not {what: wrong for what, wrong in found.items() if wrong}


def tried(hostile: Hostile, folder: Path) -> str:
    """What is wrong with what comes of it."""
    try:
        return verdict(hostile, notes_of(hostile, folder))
    except DataError as error:
        return verdict(hostile, error)
