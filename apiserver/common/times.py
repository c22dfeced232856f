"""Times as the API writes them: ISO 8601 in UTC, with a fixed width, so that texts sort like times."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache


def now_ms() -> int:
    """Now, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def utc_now() -> str:
    """Now, as documents store it: `2026-11-21T08:02:12.615000+00:00`."""
    return utc_text(datetime.now(UTC))


def from_now(seconds: float) -> str:
    """The time in `seconds`, or that many seconds ago if negative, as documents store it."""
    return utc_text(datetime.now(UTC) + timedelta(seconds=seconds))


def seconds_since(start: str, end: str) -> int:
    """Whole seconds between two times, never less than 0."""
    return max(0, round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()))


def utc_text(moment: datetime) -> str:
    """A time in UTC, as documents store it."""
    return moment.isoformat(timespec="microseconds")


def utc_moment(text: object) -> datetime | None:
    """The moment of an ISO 8601 text; in UTC if it has no offset. None if it is not a time."""
    try:
        moment = datetime.fromisoformat(text)  # type: ignore[arg-type]
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def stored_time(text: object) -> str | None:
    """The time of an ISO 8601 text as documents store it; in UTC if it has no offset. None if it is not a time."""
    moment = utc_moment(text)
    return None if moment is None else utc_text(moment)


def epoch_millis(text: object) -> int | None:
    """The epoch milliseconds of an ISO 8601 text, rounded; UTC if it has no offset. None if it is not a time."""
    try:
        time = datetime.fromisoformat(text)  # type: ignore[arg-type]
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None


@lru_cache(1024)  # many events have the same time of receipt
def iso_millis(epoch_ms: int) -> str:
    """Epoch milliseconds as answers with events write them: `2026-11-21T08:02:12.615Z`."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
