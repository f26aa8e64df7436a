"""The weights of a published BERT: known by their header before any is read, and read one by one."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from regard.errors import FolderError
from regard.system import files

FILE = "model.safetensors"
CONVERT = "python -c \"from transformers import AutoModelForPreTraining as M; M.from_pretrained('{0}').save_pretrained('{0}')\""
TYPES = ("F64", "F32", "F16", "BF16")
Shape = tuple[int, ...]


@contextmanager
def open_published(source: Path) -> Iterator["Published"]:
    """The weights in a folder as save_pretrained writes it. A pickle is refused: it can execute what it likes."""
    path = source / FILE
    if not path.exists():
        if (source / "pytorch_model.bin").exists():
            raise FolderError(
                f"{source} has only pytorch_model.bin, a pickle, which can execute what it likes when it is read. If you "
                f"trust it, convert it first: {CONVERT.format(source)}"
            )
        raise FolderError(f"{source} has no {FILE}. Name a folder as saved by save_pretrained, in one file.")
    with ExitStack() as stack:
        try:
            published = Published(path, stack.enter_context(safetensors.safe_open(files.tensors(path), "pt")))
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            raise FolderError(f"{path} cannot be read as weights ({error}). Download the folder again.") from None
        yield published


class Published:
    """Names, shapes and values, under the names that newer versions of Hugging Face's library give them."""

    def __init__(self, path: Path, file: Any) -> None:
        """`file` is what safetensors opened."""
        self._path, self._file = path, file
        self._stored: dict[str, str] = {}
        self.shapes: dict[str, Shape] = {}
        for stored in file.keys():  # noqa: SIM118 (no dict)
            name = stored.removeprefix("bert.").replace("LayerNorm.gamma", "LayerNorm.weight")
            name = name.replace("LayerNorm.beta", "LayerNorm.bias")
            if name == "embeddings.position_ids":  # just 0, 1, 2, ...
                continue
            slice_of = file.get_slice(stored)
            if slice_of.get_dtype() not in TYPES or name in self.shapes:
                raise FolderError(
                    f"{path} holds {stored} as {slice_of.get_dtype()}, or twice. Download the folder again."
                )
            self._stored[name], self.shapes[name] = stored, tuple(slice_of.get_shape())

    def get(self, name: str) -> Tensor:
        """One tensor."""
        tensor: Tensor = self._file.get_tensor(self._stored[name])
        return tensor

    def check(self, expected: Mapping[str, Shape]) -> None:
        """Refuse the file if one of these is not there, or has another shape."""
        for name, shape in expected.items():
            if name not in self.shapes:
                raise FolderError(f"{self._path} lacks {name}. Download the folder again.")
            if self.shapes[name] != shape:
                found = self.shapes[name]
                raise FolderError(
                    f"{self._path} does not fit its config.json: {name} is {found}, not {shape}. Download the folder again."
                )

    def check_tied(self, tied: Mapping[str, str]) -> None:
        """Take out what is there twice, or is one of the two; refuse two that differ."""
        for name, same in tied.items():
            if name not in self.shapes:
                continue
            if same not in self.shapes:
                self._stored[same], self.shapes[same] = self._stored[name], self.shapes[name]
            if self.shapes[name] != self.shapes[same] or not torch.equal(self.get(name), self.get(same)):
                raise FolderError(
                    f"{self._path.parent} guesses words by other vectors than it reads them by, which Regard's BERT cannot."
                )
            del self._stored[name], self.shapes[name]

    def check_parts(self, names: Mapping[str, list[str]], shapes: Mapping[str, Shape]) -> None:
        """Refuse the file unless each of the `names` can be made of its parts in these shapes, and nothing is left."""
        for own, theirs in names.items():
            rows, *rest = shapes[own]
            self.check({name: (rows // len(theirs), *rest) for name in theirs})
        if left := set(self.shapes) - {name for theirs in names.values() for name in theirs}:
            raise FolderError(
                f"{self._path.parent} holds {min(left)}, for which Regard's BERT has no place. Import its BertModel."
            )
