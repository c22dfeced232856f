"""The logs of the servers that tests started, for who says where to look after a failure (`tests/failing.py`)."""

from __future__ import annotations

from pathlib import Path

from tests.warm import Process

_SERVERS: dict[Path, Process] = {}


def started(log: Path, process: Process) -> None:
    """A server was started, and writes this log."""
    _SERVERS[log] = process


def forget_ended() -> None:
    """Forget the servers that do not run any more."""
    for log in [log for log, process in _SERVERS.items() if process.poll() is not None]:
        del _SERVERS[log]


def there() -> list[Path]:
    """The logs of all servers that are not forgotten, if they are still there."""
    return [log for log in _SERVERS if log.exists()]
