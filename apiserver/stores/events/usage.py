"""How much is kept of each owner and type of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import EventType, Int64Array, Owner

TYPES = tuple(EventType)
#: Seconds that a server may take to tell how much is kept of a company.
LONGEST = 20.0


class Used(NamedTuple):
    """What is kept of one owner and type.

    `events` are points, log lines or samples; `bytes` those on disk. A log is no series.
    """

    owner: Owner
    type: EventType
    series: int
    events: int
    bytes: int


@dataclass(slots=True)
class Usage:
    """What is kept, in columns: row n is of owners[n], column m of TYPES[m]."""

    owners: list[Owner]
    series: Int64Array
    events: Int64Array
    bytes: Int64Array
    estimated: tuple[str, ...] = ()
    """Which of the numbers may be a little wrong, and why."""
    parts: dict[str, Int64Array] = field(default_factory=dict)
    """Of how many parts each owner's events are, by what an engine calls these: "fragments"."""

    @classmethod
    def of(cls, owners: Sequence[Owner]) -> Usage:
        """Nothing, of these owners."""
        series, events, bytes = (np.zeros((len(owners), len(TYPES)), np.int64) for _ in range(3))
        return cls(list(owners), series, events, bytes)

    def summed(self, groups: Sequence[Owner], group_of: npt.NDArray[np.integer[Any]]) -> Usage:
        """The sums of each group, as if the group were an owner: row n is of groups[group_of[n]]. Without `parts`."""
        sums = Usage.of(groups)
        for of_groups, table in ((sums.series, self.series), (sums.events, self.events), (sums.bytes, self.bytes)):
            np.add.at(of_groups, group_of, table)
        return sums

    def rows(self) -> Iterator[Used]:
        """What is kept of each owner and type of which there is something, in the order of the owners."""
        rows, columns = np.nonzero(self.series | self.events | self.bytes)
        numbers = (table[rows, columns].tolist() for table in (self.series, self.events, self.bytes))
        for row, column, *more in zip(rows.tolist(), columns.tolist(), *numbers, strict=True):
            yield Used(self.owners[row], TYPES[column], *more)


def too_long(seconds: float) -> str:
    """Why nobody is told: it took longer than so many seconds."""
    return f"telling how much is kept takes longer than {seconds:g} seconds here: `apiserver doctor` tells it"
