"""A page of log lines, which is made of blocks of lines in walking order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Self

import numpy as np

from apiserver.events.model import Int64Array, LogLine, LogPosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.names import Matcher, matcher
from apiserver.stores.events.codec.points import page_end
from apiserver.stores.events.sizes import PAGE_BYTES, TIMESTAMP_BYTES, page_of, whole_timestamps_of


def of_parts(numbers: Sequence[int], firsts: Int64Array) -> list[tuple[int, Int64Array]]:
    """Which parts of a log have lines with these ascending numbers, and the places of these lines in each.

    Part n has the numbers from firsts[n] on; the last of `firsts` is how many lines there are.
    """
    wanted = np.array([number for number in numbers if number < firsts[-1]], np.int64)
    parts = np.searchsorted(firsts, wanted, "right") - 1
    edges = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(wanted)]
    return [(n := int(parts[a]), wanted[a:b] - firsts[n]) for a, b in pairwise(edges) if a < b]


class WantedLines(NamedTuple):
    """The page that is asked for: lines of series that `matches` (None: all), and of these `workers` (None: all)."""

    matches: Matcher | None
    workers: frozenset[str] | None
    after: LogPosition | None
    descending: bool
    limit: int
    whole: bool
    most: int = PAGE_BYTES

    @classmethod
    def of(cls, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None) -> Self:
        """The page that the queries ask for."""
        matches = matcher(series.selection) if series.selection else None
        of_workers = None if workers is None else frozenset(workers)
        return cls(matches, of_workers, page.after, page.descending, page.limit, page.whole)

    @property
    def of_one_timestamp(self) -> Self:
        """The page with only the lines of its first timestamp, which may take more bytes."""
        return self._replace(most=TIMESTAMP_BYTES, limit=1)

    def end(self, times: Int64Array) -> int:
        """How many lines are on the page if these are the timestamps of all lines, in walking order."""
        return page_end(times, self.limit, whole=self.whole)


class PageOfLines:
    """The lines of a page so far."""

    def __init__(self, wanted: WantedLines) -> None:
        self._wanted = wanted
        self._parts: list[Lines] = []
        self._times = np.empty(0, np.int64)
        self._size = 0

    def add(self, lines: Lines) -> bool:
        """Take those that are wanted of the next lines, which ascend. Whether the page needs no more then."""
        wanted = self._wanted
        lines = lines.beyond(wanted.after, wanted.descending)
        if wanted.matches is not None:
            names = [name for name in lines.names.table if wanted.matches(*name)]
            if len(names) < len(lines.names.table):
                lines = lines.take(lines.names.where(names))
        if wanted.workers is not None:
            theirs = lines.workers.where(wanted.workers)
            lines = lines if len(theirs) == len(lines) else lines.take(theirs)
        lines = lines.reversed() if wanted.descending else lines
        before, self._times = len(self._times), np.concatenate([self._times, lines.timestamps])
        end = wanted.end(self._times)
        self._parts.append(lines.slice(0, end - before))
        self._size += self._parts[-1].bytes
        return end < len(self._times) or self.is_large

    @property
    def is_large(self) -> bool:
        """Whether the page ends because of its bytes."""
        return self._size >= self._wanted.most

    def lines(self) -> list[LogLine]:
        """The lines of the page."""
        lines = chain.from_iterable(lines.log_lines() for lines in self._parts)
        return page_of(lines, self._wanted.most) if self.is_large else [*lines]

    def whole_timestamps(self) -> list[LogLine]:
        """The lines of the page, without those of its last timestamp, of which some may be missing; perhaps none."""
        return whole_timestamps_of(self.lines())
