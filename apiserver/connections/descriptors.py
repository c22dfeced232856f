"""The number of files that the process may have open decides how many connections it may take."""

from __future__ import annotations

import contextlib
import resource

from apiserver.connections.places import LINGERING

#: Open files that are neither connections nor uploads and downloads: stores with those to engines, listeners, new
#: connections of one turn of the event loop.
_OTHERS = 128
#: Of each connection: itself, an upload or download, and its part of those that are refused but not closed yet.
_OF_ONE = 2 + LINGERING
#: More connections than these are not taken unless the settings say so: each takes a few KB of memory.
_MOST = 10_000
_LEAST = 16


def raise_limit() -> None:
    """Allow the process as many open files as the system lets it have, not only as many as it was started with."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses "unlimited", which it has as the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections(wanted: int) -> int:
    """How many connections to take: the number `wanted`, or 10,000 for 0, if so many files may be open.

    More than half of the files are left to stores, and to the uploads and downloads of connections: a file each.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = max(int((soft - _OTHERS) / _OF_ONE), _LEAST) if soft != resource.RLIM_INFINITY else wanted or _MOST
    return min(wanted or _MOST, possible)
