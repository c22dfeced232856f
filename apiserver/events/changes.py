"""What changed in a store since a cursor: which series of which owners, in which range of iterations.

A cursor is a place in the order in which a store takes events. A reader asks with the cursor of the answer before, and
reads again what the answer names. So its data are those of the store. A store never leaves out a change. It may name
more than what changed, and the same change again. For example:

    changes since None           cursor A, and nothing else; the reader reads all that it shows
    a batch: loss/train 90–99
    changes since A              cursor B, loss/train 90–99; the reader reads these iterations
    changes since B              cursor C, nothing
    the owner's events are deleted
    changes since C              cursor D, everything; the reader reads all that it shows
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from apiserver.events.model import EventType, Owner, SeriesName
from apiserver.events.queries import Range

#: Plain values, and lists or tuples of them. Only the store that made a cursor understands it.
Cursor = Any

#: The most series that an answer names.
MOST_SERIES = 10_000


@dataclass(frozen=True, slots=True)
class ChangesQuery:
    """What changed of these owners since a cursor; None: nothing is asked but the cursor of now.

    Owners whose series are beyond the first `most` are answered as if everything of them had changed.
    """

    owners: Collection[Owner]
    since: Cursor | None = None
    most: int = MOST_SERIES


@dataclass(slots=True)
class OwnerChanges:
    """What changed of one owner. Each series of scalars, vectors, plots and images has a range of iterations."""

    series: dict[SeriesName, Range] = field(default_factory=dict)
    log_lines: int = 0
    everything: bool = False
    """Whatever is known of the owner may be wrong: events were deleted, or too much has changed to tell."""

    def __bool__(self) -> bool:
        return bool(self.series or self.log_lines or self.everything)

    def may_have(self, type: EventType) -> bool:
        """Whether events of this type may have come."""
        of_type = self.log_lines if type is EventType.LOG else any(one.type is type for one in self.series)
        return self.everything or bool(of_type)

    def widen(self, series: SeriesName, iterations: Range) -> None:
        """Note that the series changed in these iterations, too."""
        known = self.series.get(series)
        if known is not None:
            iterations = Range(min(known.least, iterations.least), max(known.greatest, iterations.greatest))
        self.series[series] = iterations


EVERYTHING = OwnerChanges(everything=True)


@dataclass(slots=True)
class Changes:
    """The owners of which something changed, and the cursor for the next question."""

    cursor: Cursor
    owners: dict[Owner, OwnerChanges] = field(default_factory=dict)

    @classmethod
    def all_of(cls, cursor: Cursor, owners: Iterable[Owner]) -> Changes:
        """Everything of these owners may have changed."""
        return cls(cursor, dict.fromkeys(owners, EVERYTHING))
