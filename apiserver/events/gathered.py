"""Typed lines by series: the points of scalars in columns, as they were sent; nothing about them is checked here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from apiserver.events.lines import EventLine, ScalarLine
from apiserver.events.model import Float64Array, Int64Array

#: Stands for a timestamp that was not given; no line can give it.
NO_TIMESTAMP = -(2**63)


Source = tuple[str, str | None, bool, bool]
"""(task, model, model_event, allow_locked): whose an event is, and whether it may go to a published task."""

SeriesKey = tuple[str, str | None, bool, bool, str, str, str, str | None]
"""What the points of a group have in common: their source, and (metric, variant, worker, x_axis_label)."""


@dataclass(slots=True)
class Gathered:
    """Points group by group: group n has `keys[n]` and the next `lengths[n]` points.

    All points of a series are in the order of their lines: the last of an iteration is the one that counts.
    """

    keys: list[SeriesKey]
    lengths: list[int]
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array


def source_of(line: EventLine) -> Source:
    """Whose the line is."""
    return line.task, line.model, line.model_event, line.allow_locked


def gather(lines: Iterable[EventLine]) -> tuple[Gathered, list[EventLine]]:
    """The points among the lines, and the lines that are something else."""
    groups: dict[SeriesKey, list[ScalarLine]] = defaultdict(list)
    others: list[EventLine] = []
    points: list[ScalarLine] = []
    for line in lines:
        if type(line) is not ScalarLine:
            others.append(line)
            continue
        points.append(line)
        key = (
            line.task,
            line.model,
            line.model_event,
            line.allow_locked,
            line.metric,
            line.variant,
            line.worker,
            line.x_axis_label,
        )
        groups[key].append(line)
    if has_mixed_series(groups):
        return _columns(_runs(points)), others
    return _columns(list(groups.items())), others


def has_mixed_series(keys: Collection[SeriesKey]) -> bool:
    """Whether the points of a series are of several workers, or have several labels."""
    return len({key[:6] for key in keys}) < len(keys)


def _runs(points: list[ScalarLine]) -> list[tuple[SeriesKey, list[ScalarLine]]]:
    """As many groups as it takes for the points of each series to stay in order."""
    runs: list[tuple[SeriesKey, list[ScalarLine]]] = []
    newest: dict[tuple[Source, str, str], int] = {}
    for line in points:
        series = (source_of(line), line.metric, line.variant)
        key = (*series[0], line.metric, line.variant, line.worker, line.x_axis_label)
        number = newest.get(series)
        if number is None or runs[number][0] != key:
            number = newest[series] = len(runs)
            runs.append((key, []))
        runs[number][1].append(line)
    return runs


def _columns(groups: list[tuple[SeriesKey, list[ScalarLine]]]) -> Gathered:
    points = [line for _, group in groups for line in group]
    timestamps: list[Any] = [line.timestamp for line in points]
    if None in timestamps:
        timestamps = [NO_TIMESTAMP if timestamp is None else timestamp for timestamp in timestamps]
    return Gathered(
        [key for key, _ in groups],
        [len(group) for _, group in groups],
        np.array([line.iter for line in points], np.int64),
        np.array(timestamps, np.int64),
        np.array([line.value for line in points], np.float64),
    )
