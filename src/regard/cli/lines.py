"""The lines a command reads: of a text, a file or standard input, some at a time."""

import argparse
import logging
import sys
from collections.abc import Iterable, Iterator

from regard.cli.streams import someone_types
from regard.errors import ConfigError

AT_A_TIME = 1000
"""Lines that are read, and answered, together."""
_TOLD = 10
"""Lines that cannot be read and are told of one by one."""


class Lines:
    """The texts to work on, in order; one that cannot be read is empty, and told of, so that output keeps step with input."""

    def __init__(self, options: argparse.Namespace) -> None:
        """`options` have a `text` and an `input`, of which one may be given."""
        if options.text is not None and options.input is not None:
            raise ConfigError("Both a TEXT and --input were given. Give one of them.")
        self.one = options.text is not None
        """Whether it is a text given as an argument."""
        self.typed = options.text is None and options.input is None and someone_types()
        """Whether someone is typing, who wants each answer at once."""
        self.together = 1 if self.typed else AT_A_TIME
        self._options = options
        self._unreadable = 0

    def __iter__(self) -> Iterator[str]:
        from regard.text.corpus import read_lines

        text, name = self._options.text, self._options.input
        yield from counted(text.split("\n") if text is not None else read_lines(name or "-", unreadable=self._tell))
        if self._unreadable > _TOLD:
            logging.getLogger(__name__).warning(
                "%d lines in all could not be read, and are left empty.", self._unreadable
            )

    def _tell(self, number: int, why: str) -> None:
        self._unreadable += 1
        if self._unreadable <= _TOLD:
            logging.getLogger(__name__).warning("Line %d is left empty: %s", number, why)


def counted(lines: Iterable[str]) -> Iterator[str]:
    """The lines themselves, with a count on stderr if someone is watching it and not the output."""
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    for number, line in enumerate(lines, start=1):
        yield line
        if watched and number % 1000 == 0:
            print(f"\r{number:,} lines", end="", file=sys.stderr, flush=True)
    if watched:
        print(file=sys.stderr)
