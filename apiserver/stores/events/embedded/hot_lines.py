"""The log lines of an owner that are in memtables, in their order. Only those that are asked for become columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy

import numpy as np

from apiserver.stores.events.columns.lines import Column, Lines, LogPart, Positions, Texts, Which
from apiserver.stores.events.columns.names import Matcher


class HotLines:
    """The lines of some parts, ascending by position."""

    def __init__(self, parts: Sequence[LogPart]) -> None:
        self._parts = parts
        lengths = np.array([len(part.columns.messages) for part in self._parts], np.int64)
        self._ends = np.cumsum(lengths)
        self._begins = self._ends - lengths
        times = np.concatenate([np.empty(0, np.int64), *(part.columns.timestamps for part in self._parts)])
        firsts = np.array([part.sequence for part in self._parts], np.int64) - self._begins
        sequences = np.repeat(firsts, lengths) + np.arange(len(times))
        self._order = np.lexsort((sequences, times))
        self.positions = Positions(times[self._order], sequences[self._order])

    def __len__(self) -> int:
        return len(self._order)

    def only(self, matches: Matcher | None, workers: Collection[str] | None) -> HotLines:
        """The lines of series that match, and of these workers (None: of all). No line becomes columns for that."""
        columns = [part.columns for part in self._parts]
        wanted = np.ones(sum(len(one.messages) for one in columns), np.bool_)
        if matches is not None:
            names = (name for one in columns for name in zip(one.metrics, one.variants, strict=True))
            wanted &= np.array([matches(*name) for name in names], np.bool_)
        if workers is not None:
            wanted &= np.array([worker in workers for one in columns for worker in one.workers], np.bool_)
        which = np.flatnonzero(wanted[self._order])
        found = copy(self)
        found._order = self._order[which]
        found.positions = Positions(*(column[which] for column in self.positions))
        return found

    def lines(self, some: Which) -> Lines:
        """These lines, at least one."""
        found = self._found(some)
        return Lines(
            timestamps=self.positions.timestamps[some],
            sequences=self.positions.sequences[some],
            received=np.array([part.received for part, _ in found], np.int64),
            levels=Column.of([part.columns.levels[n] for part, n in found]),
            workers=Column.of([part.columns.workers[n] for part, n in found]),
            messages=[part.columns.messages[n] for part, n in found],
            iters=Column.of([part.columns.iters[n] for part, n in found]),
            names=Column.of([(part.columns.metrics[n], part.columns.variants[n]) for part, n in found]),
            extras=Column.of([part.columns.extras.get(n) for part, n in found]),
        )

    def texts(self, some: Which) -> Texts:
        """What searches look at, of these lines, at least one."""
        found = self._found(some)
        return Texts(
            levels=Column.of([part.columns.levels[n] for part, n in found]),
            workers=Column.of([part.columns.workers[n] for part, n in found]),
            messages=[part.columns.messages[n] for part, n in found],
        )

    def _found(self, some: Which) -> list[tuple[LogPart, int]]:
        """The part of each of these lines, and its place there."""
        which = self._order[some]
        numbers = np.searchsorted(self._ends, which, "right")
        places = which - self._begins[numbers]
        return [(self._parts[number], n) for number, n in zip(numbers.tolist(), places.tolist(), strict=True)]
