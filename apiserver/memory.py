"""Large blocks of memory go back to the system when they are freed.

glibc's allocator learns from large blocks that are freed, of up to 32 MB, to keep such blocks for later. A few answers
of 60 MB left 600 MB in the process that way. With a threshold that is set, it learns nothing.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

#: Blocks of so many bytes are the system's again when they are freed. Of smaller ones, this much free memory is kept.
LARGE = 4 * 2**20
KEPT = 16 * 2**20
#: glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def give_back_large_blocks() -> None:
    """Have the allocator of this process do so; another C library than glibc keeps its own ways."""
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE)
        mallopt(_M_TRIM_THRESHOLD, KEPT)
