"""Entries of a source that an import did not bring, or changed: each with its place, and one of few reasons.

Once a run has been read up to a position, its source does not say again what was missing up to there. So that is kept
in the run's task, and each further import tells it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

#: Most entries that are kept of a run; further entries of the same reason become one.
_MOST = 100
#: Characters that are kept of a place and of a cause.
_LONGEST = 300


class Reason(StrEnum):
    """Why something is missing."""

    BROKEN = "broken"
    """It cannot be read."""
    ABSENT = "absent"
    """The source names a file that is not there, or that lies outside of its folder."""
    OVERWRITTEN = "overwritten"
    """Another point of the same series and step came later."""
    OVER_LIMIT = "over a limit"
    """There are more than a task can have, or it is too large."""
    REFUSED = "refused"
    """The server refused it."""
    GONE = "gone"
    """The source has changed, and can only be read as a whole, which would bring back what was deleted here."""
    NO_PLACE = "no place"
    """Nothing here is like it."""


class Missing(msgspec.Struct, frozen=True):
    """Some things that are missing for one reason."""

    reason: Reason
    of: str
    """The place: a file, a run, a series, a line."""
    cause: str
    count: int = 1

    def cut(self) -> Missing:
        """The entry with its texts cut to few characters."""
        return Missing(self.reason, self.of[:_LONGEST], self.cause[:_LONGEST], self.count)


def together(kept: Iterable[Missing], more: Iterable[Missing]) -> list[Missing]:
    """The entries of both in their order; entries of the same reason, place and cause become one with their sum."""
    counts: dict[tuple[Reason, str, str], int] = {}
    for missing in map(Missing.cut, (*kept, *more)):
        key = (missing.reason, missing.of, missing.cause)
        if key not in counts and len(counts) >= _MOST:
            key = (missing.reason, "other places", "")
        counts[key] = counts.get(key, 0) + missing.count
    return [Missing(*key, count) for key, count in counts.items()]
