"""How the C library hands out memory; no torch."""

import ctypes
import sys


def keep_memory() -> None:
    """Let the C library keep freed memory for the next tensor instead of returning it to the system.

    Otherwise every large tensor of every step is mapped, zeroed page by page and unmapped again. Only glibc has these
    two knobs; elsewhere nothing is done.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    trim_threshold, mmap_threshold = -1, -3
    mallopt(mmap_threshold, 1 << 30)
    mallopt(trim_threshold, (1 << 31) - 1)
