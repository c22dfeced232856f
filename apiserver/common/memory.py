"""How much memory is free; and makes the allocator keep little of what is freed.

When a program frees large blocks of up to 32 MB, glibc's allocator starts to keep such blocks for later. A few answers
of 60 MB left 600 MB in the process that way. If the threshold is set, the allocator does not change it.

Threads take smaller blocks from arenas, each of which keeps some. glibc makes up to eight a processor, so that threads
need not wait for one another. Here few of them run at once, as Python's lock is of one thread at a time.
"""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path

#: Blocks of at least this many bytes go back to the system.
LARGE = 4 * 2**20
#: Bytes of free memory that each arena keeps in smaller blocks.
KEPT = 16 * 2**20
#: Arenas. With one or two, readers were as fast as with one a thread.
ARENAS = 2
_MACHINE, _CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
#: glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_little() -> None:
    """Bound what this process's allocator keeps, before threads begin; without glibc, this does nothing."""
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, LARGE)
        mallopt(_M_TRIM_THRESHOLD, KEPT)
        if "MALLOC_ARENA_MAX" not in os.environ:
            mallopt(_M_ARENA_MAX, ARENAS)


def available() -> int | None:
    """Bytes of memory that the machine can give, within the limit of the container; None if neither is told."""
    try:
        said = re.search(r"^MemAvailable: *([0-9]+) kB$", _MACHINE.read_text(), re.MULTILINE)
    except OSError:
        return None
    free = [int(said[1]) * 1024] if said else []
    with suppress(OSError, ValueError):
        free.append(int(_CONTAINER.read_text()))  # ValueError: it says "max"
    return min(free, default=None)
