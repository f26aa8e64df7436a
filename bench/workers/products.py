"""The matrix products of a Transformer's training step at its very shapes, and nothing else: how fast it could be.

Operands lie ready and are used again and again, so that they stay in cache where they fit: no real step can be faster.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench import worker
from bench.batches import Batch, load
from regard.system.allocator import keep_memory


class Product(NamedTuple):
    """(many) x (rows, inner) @ (inner, columns)."""

    many: int
    rows: int
    inner: int
    columns: int
    turned: str
    """Which factor lies transposed in memory: "left", "right" or neither."""

    @property
    def operations(self) -> int:
        """Additions and multiplications."""
        return 2 * self.many * self.rows * self.inner * self.columns


def linear(rows: int, inner: int, columns: int) -> list[Product]:
    """A linear layer: forward, the gradient of its input, the gradient of its weight."""
    return [
        Product(1, rows, inner, columns, "right"),
        Product(1, rows, columns, inner, ""),
        Product(1, columns, rows, inner, "left"),
    ]


def attention(many: int, queries: int, keys: int, width: int) -> list[Product]:
    """Scores and contexts of so many heads, and the gradients of both factors of each."""
    return [
        Product(many, queries, width, keys, "right"),
        Product(many, queries, keys, width, ""),
        Product(many, keys, queries, width, "left"),
        Product(many, queries, keys, width, ""),
        Product(many, queries, width, keys, "right"),
        Product(many, keys, queries, width, "left"),
    ]


def of_batch(batch: Batch, shape: dict[str, Any], vocabulary: int, padded: bool) -> Iterator[Product]:
    """All products of a step. Without padding, linear layers see real words only; attention is padded in any case."""
    rows, source = batch.source.shape
    target = batch.target.shape[1] - 1
    reads = rows * source if padded else int(batch.source_lengths.sum())
    writes = rows * target if padded else batch.tokens
    width, inner, heads = shape["width"], shape["inner"], shape["heads"]
    for _ in range(shape["depth"]):
        yield from linear(reads, width, 3 * width)
        yield from attention(rows * heads, source, source, width // heads)
        yield from linear(reads, width, width)
        yield from linear(reads, width, inner)
        yield from linear(reads, inner, width)
    for _ in range(shape["depth"]):
        yield from linear(writes, width, 3 * width)
        yield from attention(rows * heads, target, target, width // heads)
        yield from linear(writes, width, width)
        yield from linear(writes, width, width)
        yield from linear(reads, width, 2 * width)
        yield from attention(rows * heads, target, source, width // heads)
        yield from linear(writes, width, width)
        yield from linear(writes, width, inner)
        yield from linear(writes, inner, width)
    yield from linear(writes, width, vocabulary)


class Operands:
    """Three stretches of memory, large enough for every product; each product takes what it needs of them."""

    def __init__(self, products: list[Product], precision: torch.dtype) -> None:
        sizes = [
            max(p.many * p.rows * p.inner for p in products),
            max(p.many * p.inner * p.columns for p in products),
            max(p.many * p.rows * p.columns for p in products),
        ]
        # Small enough that no product overflows; zeros might be multiplied faster than numbers on some processor.
        self._all = [torch.full((size,), 0.01, dtype=precision) for size in sizes]

    def of(self, p: Product) -> tuple[Tensor, Tensor, Tensor]:
        """Left, right and result."""
        left, right, result = self._all
        return (
            _matrix(left, p.many, p.rows, p.inner, p.turned == "left"),
            _matrix(right, p.many, p.inner, p.columns, p.turned == "right"),
            _matrix(result, p.many, p.rows, p.columns, False),
        )


def _matrix(memory: Tensor, many: int, rows: int, columns: int, turned: bool) -> Tensor:
    part = memory[: many * rows * columns]
    return part.view(many, columns, rows).transpose(1, 2) if turned else part.view(many, rows, columns)


def multiply(left: Tensor, right: Tensor, result: Tensor) -> None:
    """One product."""
    if len(left) == 1:
        torch.mm(left[0], right[0], out=result[0])
    else:
        torch.bmm(left, right, out=result)


def prepare(settings: dict[str, Any]) -> Any:
    """All operands of all batches, or of one square product."""
    keep_memory()
    precision = getattr(torch, settings["precision"])
    if "square" in settings:
        side = settings["square"]
        products, amount = [Product(1, side, side, side, "right")] * max(1, (4096 // side) ** 2), 0
    else:
        batches, vocabulary = load(settings["batches"])
        products = [p for b in batches for p in of_batch(b, settings["model"], vocabulary, settings["padded"])]
        amount = sum(batch.tokens for batch in batches)
    operands = Operands(products, precision)
    ready = [operands.of(product) for product in products]
    operations = sum(product.operations for product in products)

    def go(order: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        for left, right, result in ready:
            multiply(left, right, result)
        return {"amount": amount or operations, "operations": operations, "seconds": time.perf_counter() - began}

    return go


if __name__ == "__main__":
    worker.serve(prepare)
