"""How many connections the process can take: each needs open files, whose number the system limits."""

from __future__ import annotations

import contextlib
import resource

from apiserver.http.slots import LINGERING

#: Open files of stores, of connections to engines, of listeners, and of connections accepted in one loop turn.
_OTHER_FILES = 128
#: Open files for each connection: its socket, an upload or download, and a share of the lingering connections.
_FILES_PER_CONNECTION = 2 + LINGERING
#: Most connections unless the settings say otherwise: each takes a few KB of memory.
_DEFAULT = 10_000
_LEAST = 16


def raise_limit() -> None:
    """Raise the process's limit of open files as far as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # on macOS the hard limit is "unlimited", which cannot be set
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connection_limit(limit: int) -> int:
    """How many connections to take: `wanted`, or 10,000 if that is 0, but no more than open files allow.

    For example, with 1024 open files it is (1024 - 128) / 2.125 = 421.
    """
    limit = limit or _DEFAULT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limit
    return min(limit, max(int((soft - _OTHER_FILES) / _FILES_PER_CONNECTION), _LEAST))
