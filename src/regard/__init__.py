"""Regard: sequence models you can train, see and serve.

The names below are imported when they are first used, so that `import regard` and `regard --help` do not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.api import check as check
    from regard.api import score as score
    from regard.api import train as train
    from regard.decode.translation import Translation as Translation
    from regard.decode.translator import Translator as Translator
    from regard.errors import RegardError as RegardError
    from regard.inference.load import load as load
    from regard.inference.load import rescored as rescored

_HOME = {
    "RegardError": "regard.errors",
    "Translation": "regard.decode.translation",
    "Translator": "regard.decode.translator",
    "check": "regard.api",
    "load": "regard.inference.load",
    "rescored": "regard.inference.load",
    "score": "regard.api",
    "train": "regard.api",
}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
