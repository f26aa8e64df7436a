"""Which texts of a batch are whose, when several processes share it: a pure function of how many they are.

The batches themselves do not depend on that. So a run can go on with another number of processes, and no text is left
out or read twice.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Share:
    """One process's part of every batch: the whole, unless there are others."""

    rank: int = 0
    of: int = 1

    def dealt(self, count: int, turn: int) -> npt.NDArray[np.int64]:
        """Which of `count` texts, sorted by length, are ours.

        They are dealt like cards, forth and back, so that everyone gets as many long ones. Who is dealt to first changes
        with the turn, the number of the batch: whoever gets one text more now gets one less another time.
        """
        seat = (self.rank + turn) % self.of
        forth = np.arange(seat, count, 2 * self.of)
        back = np.arange(2 * self.of - 1 - seat, count, 2 * self.of)
        return np.sort(np.concatenate([forth, back]))

    def block(self, count: int) -> slice:
        """Which of `count` rows are ours, where rows belong to a process for good: they lie side by side."""
        return slice(count * self.rank // self.of, count * (self.rank + 1) // self.of)


WHOLE = Share()
"""Of a process that is alone."""
