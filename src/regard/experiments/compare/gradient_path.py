"""How far a gradient reaches: the vanishing gradient, measured in any model that writes.

A model reads a source of random words and writes a target of random words. Let h_t be its last layer at target position t,
and x the vector of a word as it comes out of the embedding table. What is measured is the length of the gradient of v . h_t
with respect to x, for random directions v of length one: the root of its mean square over directions, texts and positions.
(Up to a factor it is the Frobenius norm of the Jacobian dh_t / dx. Directions are drawn because a plain sum of h_t's numbers
is the same for every text after a layer norm, and has no gradient.) For a linear recurrence h_t = a h_(t-1) + x_t it is a^k.

- `target[k]`: x is the target word read k words before position t.
- `source[t]`: x is the middle word of the source. From there the signal has `first` + t words to pass: to the source's end,
  then up to position t. The middle is as far from the end, where a backward reader begins, as from the beginning.

A recurrent network passes everything on through these words, one by one. Attention goes past them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.base import Source, Writer
from regard.text.tokenizers.tokenizer import BEGIN, END, SPECIALS

SOURCE = 9  # columns, the last one END
POSITIONS = 8  # of which `target` is the mean
DISTANCE = 32
ROWS = 32


@dataclass(frozen=True)
class Fading:
    """The length of the gradient, against distance."""

    target: list[float]
    source: list[float]
    first: int
    """The distance of source[0]."""

    def as_table(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def fading(model: Writer, vocabulary: int, seed: int = 1, *, distance: int = DISTANCE, rows: int = ROWS) -> Fading:
    """Measure it, up to this distance or as far as the model has positions."""
    if model.longest is not None:
        distance = max(1, min(distance, model.longest - SOURCE - POSITIONS))
    random = torch.Generator().manual_seed(seed)
    source, target_BT = _texts(vocabulary, rows, distance + POSITIONS, random)
    target_BTT, source_BTS = _gradients(model, source, target_BT, random)
    # Row t of the square holds the gradients of position t; those k before it stand on its k-th lower diagonal.
    last_BPT = target_BTT[:, distance:]
    by_distance = [
        torch.stack([last_BPT[:, p, distance + p - k] for p in range(POSITIONS)]) for k in range(distance + 1)
    ]
    middle = SOURCE // 2
    return Fading(
        target=[_mean(lengths) for lengths in by_distance],
        source=[_mean(source_BTS[:, t, middle]) for t in range(distance + 1)],
        first=SOURCE - middle,
    )


def _texts(vocabulary: int, rows: int, length: int, random: torch.Generator) -> tuple[Source, Tensor]:
    """Words drawn evenly from all there are."""
    source_BS = torch.randint(len(SPECIALS), vocabulary, (rows, SOURCE), generator=random)
    source_BS[:, -1] = END
    target_BT = torch.randint(len(SPECIALS), vocabulary, (rows, length), generator=random)
    target_BT[:, 0] = BEGIN
    return Source(source_BS, torch.full((rows,), SOURCE)), target_BT


def _gradients(model: Writer, source: Source, target_BT: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Lengths of the gradients of each target position with respect to each word: of the target and of the source."""
    model = model.cpu().eval()
    with _words_read(model) as read, torch.enable_grad():
        hidden_BTW = model(source, target_BT).hidden_BTW
    inputs, source_of, target_of = _parts(read, source.ids_BS, target_BT)
    direction_BTW = torch.randn(hidden_BTW.shape, generator=random)
    direction_BTW /= direction_BTW.norm(dim=2, keepdim=True)
    along_BT = (hidden_BTW.float() * direction_BTW).sum(2)
    to_target, to_source = [], []
    for t in range(target_BT.shape[1]):
        found = torch.autograd.grad(along_BT[:, t].sum(), inputs, retain_graph=True, allow_unused=True)
        lengths = [
            x_BTW.new_zeros(x_BTW.shape[:2]) if gradient is None else gradient.norm(dim=2)
            for x_BTW, gradient in zip(inputs, found, strict=True)
        ]
        to_target.append(target_of(lengths))
        to_source.append(source_of(lengths))
    return torch.stack(to_target, 1), torch.stack(to_source, 1)


@contextmanager
def _words_read(model: Writer) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Each time the model looks words up in a table: their ids, and their vectors, from which gradients can be asked."""
    read: list[tuple[Tensor, Tensor]] = []

    def keep(_table: nn.Module, ids: tuple[Tensor, ...], vectors: Tensor) -> Tensor:
        vectors = vectors.detach().requires_grad_()
        read.append((ids[0], vectors))
        return vectors

    hooks = [part.register_forward_hook(keep) for part in model.modules() if isinstance(part, nn.Embedding)]
    try:
        yield read
    finally:
        for hook in hooks:
            hook.remove()


Part = Callable[[list[Tensor]], Tensor]


def _parts(read: list[tuple[Tensor, Tensor]], source_BS: Tensor, target_BT: Tensor) -> tuple[list[Tensor], Part, Part]:
    """Among all that was looked up, the source's words and the target's; these may stand in one row, one after the other.

    They are known by their ids: models keep their tables under different names, and look up other things as well.
    """
    joined_BJ = torch.cat([source_BS, target_BT], 1)
    width, last = source_BS.shape[1], joined_BJ.shape[1]
    for ids, vectors in read:
        if ids.dim() == 2 and torch.equal(ids[:, :last], joined_BJ):
            return [vectors], lambda found: found[0][:, :width], lambda found: found[0][:, width:last]
    inputs = [next(vectors for ids, vectors in read if torch.equal(ids, wanted)) for wanted in (source_BS, target_BT)]
    return inputs, lambda found: found[0], lambda found: found[1]


def _mean(lengths: Tensor) -> float:
    return float(lengths.double().square().mean().sqrt())
