"""Options before, between or after what they apply to: `regard translate DIR --beam 5 "A sentence."`."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from regard.errors import ConfigError


class Parser(argparse.ArgumentParser):
    """Says what is wrong as every other mistake is told: in one line."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message.removeprefix('argument ')}. See: {self.prog} --help")


class AnyOrder(Parser):
    """A command's parser. Python's own takes an argument that may be missing for missing as soon as an option comes first."""

    _from_within = False

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """All options first, wherever they stand, then the rest. What is left over is refused with this command's usage."""
        if self._from_within:
            return super().parse_known_args(args, namespace)
        self._from_within = True
        try:
            options, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._from_within = False
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown
