"""Limits of live streams: how many there are, what they follow and hold, and how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiveBounds:
    """Limits of all live streams of a server. Times are in seconds."""

    streams: int = 4000
    """The most streams: 80 MB of memory."""
    tasks_in_all: int = 600_000
    """The most tasks of all streams together, each counted as often as it is watched: 50 MB of memory at worst."""
    of_one_user: float = 3 / 4
    """One user gets at most this part of both."""
    turn_seconds: float = 15
    """After so long, a stream says that it goes on. Proxies close a connection that is silent for a minute."""
    waiting_bytes: int = 256 * 2**10
    """Bytes that wait for one watcher. With more, what waits becomes a `reset`."""
    waiting_bytes_in_all: int = 32 * 2**20
    """Bytes that wait for all watchers."""
    tasks: int = 5000
    """The most tasks of one watcher."""
    followed: int = 50_000
    """The most tasks of all watchers of a company: engines are asked for all of them at once."""
    linger_seconds: float = 60
    """When nobody has watched for so long, following ends. Long polls come again and again."""
