"""The table of faults in the documentation is that of `make torture`, and no check is missing in it."""

import re
from pathlib import Path

from torture.__main__ import PARTS
from torture.rows import Row, table

ROOT = Path(__file__).parents[1]
CHECKS = [*(f"T{n}" for n in range(1, 19)), *(f"X{n}" for n in (1, 2, 3, 4, 11, 12))]
HEADING, LINE, *ROWS = re.findall(
    r"^\|.*\|$", (ROOT / "docs/never-lose-work.md").read_text().split("## What was tried")[1], re.M
)


def test_every_check_has_a_row_and_they_stand_in_order() -> None:
    named = [row.split("|")[1].strip() for row in ROWS]
    assert sorted(set(named), key=CHECKS.index) == CHECKS
    assert named == sorted(named, key=CHECKS.index)


def test_the_parts_that_the_rows_name_exist() -> None:
    named = re.findall(r"PART=(\w+)", "".join(ROWS))
    assert named and set(named) <= set(PARTS)


def test_what_is_printed_can_be_pasted() -> None:
    rows = [("damage", Row("T6", "a|b", 2000, "all", True)), ("kills", Row("T1", "kills", 20, "19", False))]
    assert table(rows).splitlines() == [
        HEADING,
        LINE,
        "| T1 | kills | 20 | **FAILED**: 19 | `make torture PART=kills` |",
        r"| T6 | a\|b | 2,000 | all | `make torture PART=damage` |",
    ]
