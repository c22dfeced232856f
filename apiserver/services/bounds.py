"""Limits of handlers, also in `data/` and `vendors/`: how much a call may ask for, read at once, and wait for."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.common.passwords import COST
from apiserver.reading.log_search import BOUNDS, SearchBounds
from apiserver.reading.whole_series import AT_ONCE

#: The most that ModelArts' API answers of a log, in bytes.
PREVIEW = 5 * 2**20


@dataclass(frozen=True, slots=True)
class CallBounds:
    """Limits of calls. Times are in seconds."""

    queue_turn_seconds: float = 1
    """How long a call waits for its turn to put a task into a queue, or to take it out."""
    password_cost: int = COST
    """Cost of the comparison when a name has no password. It is that of users' passwords: else the time tells names."""
    curves: int = 10_000
    """The most curves that a call about groups is answered from: tasks of all groups, times series."""
    scalars: int = 10_000
    """Least number of events in a page of `get_scalar_metric_data`."""
    downloaded: int = 1024
    """Documents that a download reads at once, a power of two: of large ones, pages are halved until one can be
    read."""
    search: SearchBounds = BOUNDS
    """How much of a log one answer searches."""
    listed: int = 512
    """Documents that a table reads at once; halved while they are too large."""
    log_lines: int = 2000
    """Lines that a table of a log reads at once."""
    hits: int = 50_000
    """About how many hits of a search one answer has."""
    points: int = AT_ONCE
    """Points of curves that a table reads at once."""
    minutes: int = 366 * 24 * 60
    """ModelArts' API answers the last so many minutes of a job: a year."""
    preview_bytes: int = PREVIEW
    """The most that ModelArts' API answers of a log."""
    baseten_points: int = 200_000
    """Points of all curves of one answer of Baseten's API."""
    pai_steps: int = 200_000
    """The most steps of all pods together that PAI's API answers; more are refused."""
    audit_seconds: float = 10
    """How long a call may look through the audit log."""
    short_views: int = 1000
    """Short addresses of one user."""
    short_bytes: int = 4 * 2**20
    """Bytes of one user's short addresses together."""
    named_views: int = 200
    """Named views of one user."""
    listed_views: int = 1000
    """Views of a project that are listed."""
