"""The statuses of tasks."""

from __future__ import annotations

STATUSES = (
    "created",
    "queued",
    "in_progress",
    "stopped",
    "closed",
    "failed",
    "completed",
    "publishing",
    "published",
    "unknown",
)
#: Those of tasks that must not change any more.
LOCKED = ("publishing", "published")
