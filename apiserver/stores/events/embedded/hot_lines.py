"""The log lines of an owner that are in memtables, in their order. Only those that are asked for become columns."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import numpy.typing as npt

from apiserver.stores.events.codec.lines import Column, Lines, LogPart, Positions, Texts, Which
from apiserver.stores.events.codec.log_pages import WantedLines


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

    def on_page(self, wanted: WantedLines) -> HotLines:
        """The lines that may be on a page, and one behind them. No line becomes columns for that."""
        positions, which = self.positions, self._where_wanted(wanted)
        start, stop = 0, len(which)
        if wanted.after is not None:
            before = positions.take(which).before(wanted.after, "left" if wanted.descending else "right")
            start, stop = (0, before) if wanted.descending else (before, stop)
        times = positions.timestamps[which[start:stop]]
        count = wanted.end(times[::-1] if wanted.descending else times) + 1
        which = which[max(stop - count, 0) : stop] if wanted.descending else which[start : start + count]
        lines = copy(self)
        lines._order, lines.positions = self._order[which], positions.take(which)
        return lines

    def _where_wanted(self, wanted: WantedLines) -> npt.NDArray[np.intp]:
        """The places of the lines of the series and workers that are wanted."""
        columns = [part.columns for part in self._parts]
        matches, workers = wanted.matches, wanted.workers
        is_wanted = np.ones(sum(len(part_columns.messages) for part_columns in columns), np.bool_)
        if matches is not None:
            names = (
                name
                for part_columns in columns
                for name in zip(part_columns.metrics, part_columns.variants, strict=True)
            )
            is_wanted &= np.array([matches(*name) for name in names], np.bool_)
        if workers is not None:
            is_wanted &= np.array(
                [worker in workers for part_columns in columns for worker in part_columns.workers], np.bool_
            )
        return np.flatnonzero(is_wanted[self._order])

    def lines(self, which: Which) -> Lines:
        """These lines, at least one."""
        lines_of_parts = self._found(which)
        return Lines(
            timestamps=self.positions.timestamps[which],
            sequences=self.positions.sequences[which],
            received=np.array([part.received for part, _ in lines_of_parts], np.int64),
            levels=Column.of([part.columns.levels[n] for part, n in lines_of_parts]),
            workers=Column.of([part.columns.workers[n] for part, n in lines_of_parts]),
            messages=[part.columns.messages[n] for part, n in lines_of_parts],
            iters=Column.of([part.columns.iters[n] for part, n in lines_of_parts]),
            names=Column.of([(part.columns.metrics[n], part.columns.variants[n]) for part, n in lines_of_parts]),
            extras=Column.of([part.columns.extras.get(n) for part, n in lines_of_parts]),
        )

    def texts(self, which: Which) -> Texts:
        """What searches look at, of these lines, at least one."""
        lines_of_parts = self._found(which)
        return Texts(
            levels=Column.of([part.columns.levels[n] for part, n in lines_of_parts]),
            workers=Column.of([part.columns.workers[n] for part, n in lines_of_parts]),
            messages=[part.columns.messages[n] for part, n in lines_of_parts],
        )

    def _found(self, some: Which) -> list[tuple[LogPart, int]]:
        """The part of each of these lines, and its place there."""
        which = self._order[some]
        numbers = np.searchsorted(self._ends, which, "right")
        places = which - self._begins[numbers]
        return [(self._parts[number], n) for number, n in zip(numbers.tolist(), places.tolist(), strict=True)]
