"""Models loaded once in a process, for all its threads. A process that is forked, or that is sent one, loads its own."""

import ctypes
import os
from collections.abc import Callable, Hashable
from functools import cache
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")
_all: "WeakSet[Loaded[Any]]" = WeakSet()


class Loaded(Generic[T]):
    """What has been loaded, by its key. Two threads that ask for the same at once get the same."""

    def __init__(self) -> None:
        self.begin()
        _watch_forks()
        _all.add(self)

    def begin(self) -> None:
        """Nothing is loaded."""
        self._lock = Lock()
        self._found: dict[Hashable, T] = {}

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """What is loaded under the key, or else what `load` gives now."""
        if key not in self._found:
            with self._lock:
                if key not in self._found:
                    self._found[key] = load()
        return self._found[key]

    def forget_without_ending(self) -> None:
        """Nothing is loaded; but what was is never ended, which would wait for its threads, and a fork has none of them."""
        for one in self._found.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
        self.begin()

    def __reduce__(self) -> tuple[type["Loaded[T]"], tuple[()]]:
        return Loaded, ()


@cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    for loaded in list(_all):
        loaded.forget_without_ending()
