"""Where torchrun finds our rendezvous for processes of one machine, by an entry point of the package.

It looks for it while torch is still being imported, so that nothing of torch can be imported here before it is asked for.
"""

from collections.abc import Callable
from typing import Any

BACKEND = "loopback"


def loopback() -> Callable[[Any], Any]:
    """What makes the rendezvous, given torchrun's parameters."""
    return make


def make(parameters: Any) -> Any:
    """The rendezvous."""
    from regard.training.launch import Loopback

    return Loopback(parameters)
