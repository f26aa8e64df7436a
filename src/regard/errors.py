"""What can go wrong for a user, as one tree.

RegardError            every message a user can cause; the command line prints it on one line and exits with `code`
├── ConfigError        a setting that does not exist or cannot be
├── ArgumentError      something else than a text where a text is wanted; a TypeError too
├── DataError          text that cannot be read or used
├── FolderError        a model folder or checkpoint that is missing, damaged or does not fit
├── BusyError          another process is training in this folder
├── TraceError         what was to be seen is not there, or cannot be right
├── TrainingError      training cannot go on: a loss that is not a number
├── WorkerError        a process that helped has ended before it was done
└── StorageError       the disk is full or will not be written

A message says what is wrong, with which value, and what to do next.
"""

import unicodedata

_LONGEST = 2000  # characters; a name out of a file may have millions


class RegardError(Exception):
    """A mistake a user can mend; never a fault in Regard."""

    code = 1

    def __str__(self) -> str:
        """The message, in which nothing that it quotes can steer a terminal or fill it."""
        told = super().__str__()
        if len(told) > _LONGEST:
            told = f"{told[: _LONGEST // 2]} ... {told[-_LONGEST // 2 :]}"
        return "".join(map(_harmless, told))


class ConfigError(RegardError):
    """A setting that does not exist or cannot be."""

    code = 2


class ArgumentError(RegardError, TypeError):
    """Something else than a text where a text is wanted: a mistake of who calls from Python."""

    code = 2


class DataError(RegardError):
    """Text that cannot be read or used."""

    code = 65


class FolderError(RegardError):
    """A model folder or checkpoint that is missing, damaged or does not fit."""

    code = 66


class BusyError(RegardError):
    """Another process is training in this folder."""

    code = 75


class TraceError(RegardError):
    """What was to be seen is not there, or cannot be right."""

    code = 65


class TrainingError(RegardError):
    """Training cannot go on."""

    code = 70


class WorkerError(RegardError):
    """A process that helped has ended before it was done."""

    code = 71


class StorageError(RegardError):
    """The disk is full or will not be written."""

    code = 74


def _harmless(character: str) -> str:
    shown = character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"
    return character if shown else character.encode("unicode_escape").decode("ascii")
