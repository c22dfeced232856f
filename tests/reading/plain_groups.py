"""One curve of many runs in plain Python, value by value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from apiserver.reading.groups import Fill

#: A run's value in each bucket, or None.
Row = list[float | None]


def filled(values: Sequence[float], how: Fill) -> Row:
    """The values, with those between finite ones filled in."""
    row: Row = [value if math.isfinite(value) else None for value in values]
    known = [place for place, value in enumerate(row) if value is not None]
    for before, behind in pairwise(known):
        first, last = values[before], values[behind]
        for place in range(before + 1, behind):
            part = (place - before) / (behind - before)
            row[place] = first if how is Fill.LAST else first * (1 - part) + last * part
    return row


def curve(rows: Sequence[Row], quantiles: Sequence[float]) -> list[tuple[float, ...]]:
    """For each bucket with runs: its place, how many there are, mean, deviation and quantiles."""
    found: list[tuple[float, ...]] = []
    for place, column in enumerate(zip(*rows, strict=True)):
        values = sorted(value for value in column if value is not None)
        if values:
            mean = math.fsum(values) / len(values)
            deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
            found.append((place, len(values), mean, deviation, *[quantile(values, wanted) for wanted in quantiles]))
    return found


def extremes(points: Sequence[Sequence[Sequence[float]]], rows: Sequence[Row]) -> list[tuple[float, float]]:
    """For each bucket with runs: the least and the greatest of all their points there, and of what is filled in.

    `points` has the values of each run in each bucket, `rows` what each run has there after it was filled.
    """
    found: list[tuple[float, float]] = []
    for place in range(len(rows[0])):
        values: list[float] = []
        for of_run, row in zip(points, rows, strict=True):
            finite = [value for value in of_run[place] if math.isfinite(value)]
            value = row[place]
            values += finite or ([] if value is None else [value])
        if values:
            found.append((min(values), max(values)))
    return found


def quantile(values: Sequence[float], wanted: float) -> float:
    """A quantile of ascending values."""
    place = wanted * (len(values) - 1)
    below, above = values[math.floor(place)], values[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))
