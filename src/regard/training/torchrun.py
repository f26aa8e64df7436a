"""Whether others train beside this process, and how it leaves them. Without torch: every command asks as it ends."""

import os
import sys
from typing import NoReturn


def is_one_of_several() -> bool:
    """Whether `torchrun` started this process and others beside it."""
    size = os.environ.get("WORLD_SIZE", "")
    return size.isdigit() and int(size) > 1


def leave(code: int) -> NoReturn:
    """End this process, at once.

    The threads by which processes talk may still hold a tensor of the last talk. Were they to let go of it while Python
    cleans up, Python would end that thread, and with it, by SIGABRT, a process that had done all its work.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
