"""Typed lines by series: the points of scalars in columns, as they were sent; nothing about them is checked here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from apiserver.events.lines import EventLine, ScalarLine
from apiserver.events.model import Float64Array, Int64Array

#: Stands for a timestamp that was not given; no line can give it.
NO_TIMESTAMP = -(2**63)


class Source(NamedTuple):
    """What tells whose an event is, and whether it may go to a published task."""

    task: str
    model: str | None
    model_event: bool
    allow_locked: bool


class SeriesKey(NamedTuple):
    """What the points of a group have in common."""

    source: Source
    metric: str
    variant: str
    worker: str
    x_axis_label: str | None


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
    return Source(line.task, line.model, line.model_event, line.allow_locked)


def gather(lines: Iterable[EventLine]) -> tuple[Gathered, list[EventLine]]:
    """The points among the lines, and the lines that are something else."""
    groups: dict[tuple[Any, ...], list[ScalarLine]] = {}
    others: list[EventLine] = []
    for line in lines:
        if type(line) is not ScalarLine:
            others.append(line)
            continue
        key = (  # plain, as each point builds one
            line.task,
            line.metric,
            line.variant,
            line.worker,
            line.x_axis_label,
            line.model,
            line.model_event,
            line.allow_locked,
        )
        try:
            groups[key].append(line)
        except KeyError:
            groups[key] = [line]
    return _columns(list(groups.values())), others


def _columns(groups: list[list[ScalarLine]]) -> Gathered:
    points = [line for group in groups for line in group]
    timestamps: list[Any] = [line.timestamp for line in points]
    if None in timestamps:
        timestamps = [NO_TIMESTAMP if timestamp is None else timestamp for timestamp in timestamps]
    return Gathered(
        [_key(group[0]) for group in groups],
        [len(group) for group in groups],
        np.array([line.iter for line in points], np.int64),
        np.array(timestamps, np.int64),
        np.array([line.value for line in points], np.float64),
    )


def _key(line: ScalarLine) -> SeriesKey:
    return SeriesKey(source_of(line), line.metric, line.variant, line.worker, line.x_axis_label)
