"""Typed lines by series: the points of scalars in columns, as they were sent; nothing about them is checked here."""

from __future__ import annotations

from collections.abc import Iterable
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
    """Points group by group, each in the order of its lines: group n has `keys[n]` and the next `lengths[n]` points."""

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
    groups: dict[SeriesKey, list[ScalarLine]] = {}
    others: list[EventLine] = []
    for line in lines:
        if type(line) is not ScalarLine:
            others.append(line)
            continue
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
        try:
            groups[key].append(line)
        except KeyError:
            groups[key] = [line]
    return _columns(groups), others


def _columns(groups: dict[SeriesKey, list[ScalarLine]]) -> Gathered:
    points = [line for group in groups.values() for line in group]
    timestamps: list[Any] = [line.timestamp for line in points]
    if None in timestamps:
        timestamps = [NO_TIMESTAMP if timestamp is None else timestamp for timestamp in timestamps]
    return Gathered(
        list(groups),
        [len(group) for group in groups.values()],
        np.array([line.iter for line in points], np.int64),
        np.array(timestamps, np.int64),
        np.array([line.value for line in points], np.float64),
    )
