"""Faults on purpose, by the hundred: what the tests try once or twice, tried often. `make torture` prints what was seen."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the parts use what the tests are made of
