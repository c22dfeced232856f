"""What a process counts while it works: requests and how long they took, events, bytes, holds of the event loop."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

#: Upper bounds of the buckets of durations, in seconds.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

#: What is counted beside requests.
_COUNTED = (
    *("event_bytes", "events.scalars", "events.logs", "events.samples"),
    *("quota_refusals", "loop_holds", "loop_held_seconds"),
)
#: So many requests are counted together.
_AT_ONCE = 100

#: Counts of a process, or of several together, as JSON.
Snapshot = dict[str, Any]


class Counters:
    """The counters of one process. They only grow. All are changed on the event loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, int, float]] = []
        """Requests that are to be counted."""
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * (len(BOUNDS) + 2))
        self._counts: dict[str, float] = dict.fromkeys(_COUNTED, 0)

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request that was answered. `endpoint` is one of the server's own names, never a client's text."""
        self._waiting.append((endpoint, status, seconds))
        if len(self._waiting) == _AT_ONCE:
            self._count_requests()

    def _count_requests(self) -> None:
        """Count the waiting requests. Many together take half as long as each by itself."""
        waiting, self._waiting = self._waiting, []
        for endpoint, status, seconds in waiting:
            self._requests[endpoint, status] += 1
            durations = self._durations[endpoint]
            durations[bisect_left(BOUNDS, seconds)] += 1
            durations[-1] += seconds

    @property
    def answered(self) -> int:
        """How many requests were answered."""
        return self._requests.total() + len(self._waiting)

    def batch(self, bytes: int, points: int, lines: int, samples: int) -> None:
        """Count the bytes of a body with events, and the events of it that were added, by type."""
        counts = self._counts
        counts["event_bytes"] += bytes
        counts["events.scalars"] += points
        counts["events.logs"] += lines
        counts["events.samples"] += samples

    def count(self, name: str, by: float = 1) -> None:
        """Count something else, which is in `_COUNTED`."""
        self._counts[name] += by

    def snapshot(self) -> Snapshot:
        """All counts so far."""
        self._count_requests()
        return {
            "requests": [[endpoint, status, count] for (endpoint, status), count in self._requests.items()],
            "durations": {endpoint: list(durations) for endpoint, durations in self._durations.items()},
            "counts": dict(self._counts),
        }


def together(snapshots: Iterable[Snapshot]) -> Snapshot:
    """The sums of several processes' counts."""
    requests: Counter[tuple[str, int]] = Counter()
    durations: dict[str, list[float]] = {}
    counts: Counter[str] = Counter()
    for snapshot in snapshots:
        for endpoint, status, count in snapshot["requests"]:
            requests[endpoint, status] += count
        for endpoint, seconds in snapshot["durations"].items():
            sums = durations.get(endpoint)
            durations[endpoint] = seconds if sums is None else [a + b for a, b in zip(sums, seconds, strict=True)]
        counts.update(snapshot["counts"])
    return {
        "requests": [[endpoint, status, count] for (endpoint, status), count in requests.items()],
        "durations": durations,
        "counts": dict(counts),
    }
