"""Times as the API writes them: UTC ISO-8601 text of fixed width, so that text order is time order."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def utc_now() -> str:
    """Now, as documents keep it: `2026-11-21T08:02:12.615000+00:00`."""
    return utc_text(datetime.now(UTC))


def from_now(seconds: float) -> str:
    """The time in so many seconds, or that so many ago (below 0), as documents keep it."""
    return utc_text(datetime.now(UTC) + timedelta(seconds=seconds))


def seconds_since(start: str, end: str) -> int:
    """Whole seconds between two times, never less than 0."""
    return max(0, round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()))


def utc_text(moment: datetime) -> str:
    """A moment of UTC as documents keep it."""
    return moment.isoformat(timespec="microseconds")


def epoch_millis(text: object) -> int | None:
    """The epoch milliseconds of an ISO text, rounded; without an offset it is UTC. None if it is no time."""
    try:
        time = datetime.fromisoformat(text)  # type: ignore[arg-type]
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None


@lru_cache(1024)  # many events are received at once
def iso_millis(epoch_ms: int) -> str:
    """Epoch milliseconds as events answer them: `2026-11-21T08:02:12.615Z`."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
