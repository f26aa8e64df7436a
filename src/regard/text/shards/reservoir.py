"""Some of many things, drawn while they pass by."""

import random
from typing import Generic, TypeVar

T = TypeVar("T")


class Reservoir(Generic[T]):
    """Some of many things, each as likely as every other, in one pass (Vitter 1985, algorithm R)."""

    def __init__(self, most: int, chosen: random.Random) -> None:
        self.kept: list[T] = []
        self.offered = 0
        self._most, self._random = most, chosen

    def offer(self, thing: T) -> None:
        """Perhaps keep it."""
        self.offered += 1
        if len(self.kept) < self._most:
            self.kept.append(thing)
        elif (place := self._random.randrange(self.offered)) < self._most:
            self.kept[place] = thing
