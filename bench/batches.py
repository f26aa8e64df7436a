"""Training batches in one file that every peer can read: padded ids and lengths."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


class Batch(NamedTuple):
    """Sources end with END; targets begin with BEGIN and end with END; both are padded at the end."""

    source: Ids
    source_lengths: Ids
    target: Ids
    target_lengths: Ids

    @property
    def tokens(self) -> int:
        """Target words to predict, END among them; padding is not counted."""
        return int(self.target_lengths.sum()) - len(self.target)


def save(path: Path, batches: list[Batch], vocabulary: int) -> None:
    """Write them all."""
    arrays = {f"{field}.{n}": array for n, b in enumerate(batches) for field, array in b._asdict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, allow_pickle=False, vocabulary=np.array(vocabulary), count=np.array(len(batches)), **arrays)


def load(path: str | Path) -> tuple[list[Batch], int]:
    """The batches, and the size of the vocabulary."""
    with np.load(path, allow_pickle=False) as stored:
        batches = [Batch(*(stored[f"{field}.{n}"] for field in Batch._fields)) for n in range(int(stored["count"]))]
        return batches, int(stored["vocabulary"])


def torch_batches(path: str | Path) -> tuple[list[Any], int]:
    """The same as tensors."""
    import torch

    batches, vocabulary = load(path)
    return [Batch(*(torch.from_numpy(array) for array in batch)) for batch in batches], vocabulary
