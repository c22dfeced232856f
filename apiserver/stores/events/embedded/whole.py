"""Reads whole series and whole logs for copies, some at a time.

Series whose runs are in the same pages of the tail are read together, however they are named. Of a long series, some
chunks are read at a time. Between two reads, nothing is kept but a place: which series comes next, from which iteration
on. So no read transaction lasts long. Of a log, it is the position of the last line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from apiserver.events.model import LogPosition
from apiserver.events.queries import GREATEST, LEAST
from apiserver.stores.events.codec.lines import Lines, joined
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import WholePoints
from apiserver.stores.events.embedded.log_walk import Log
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.unsettled import hold, parts_of


class Place(NamedTuple):
    """Where the next read begins: with a series of a part, at an iteration."""

    series: Name
    iter: int


def parts(found: Sequence[Series]) -> list[list[Name]]:
    """The series that are read together."""
    return [[found[n].name for n in which.tolist()] for which in parts_of(found)]


def read_points(
    part: Sequence[Series], place: Place | None, workers: Sequence[str]
) -> tuple[list[WholePoints], Place | None]:
    """The next points of the series of a part, and the place behind them; None: these were the last ones."""
    hold(part)
    points: list[WholePoints] = []
    left = part[0].bounds.points_at_a_time if part else 0
    for series in part:
        if place is not None and series.name < place.series:
            continue
        first = place.iter if place is not None and series.name == place.series else LEAST
        if left <= 0:
            return points, Place(series.name, first)
        last = series.end_of(first, left)
        some = series.points(first, last)
        if len(some.iters):
            points.append(WholePoints(series.name, some, workers))
        left -= len(some.iters)
        if last < GREATEST:
            return points, Place(series.name, last + 1)
    return points, None


def read_lines(log: Log, after: LogPosition | None) -> Lines | None:
    """The next lines of a log, behind a position; None: there are none."""
    parts: list[Lines] = []
    size, most = 0, log.bounds.line_bytes_at_a_time
    for segment in log.walk(after, log.blocks(after)):
        parts.append(log.lines(segment).beyond(after, descending=False))
        size += parts[-1].bytes
        if size >= most:
            break
    return joined(parts) if parts else None
