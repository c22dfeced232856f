"""Sorts sent events: points of scalars go into columns, series by series. Nothing is checked yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apiserver.events.event_types import SentEvent, SentScalar
from apiserver.events.model import Float64Array, Int64Array

#: Stands for a missing timestamp. No client can send it, and all timestamps are greater.
NO_TIMESTAMP = -(2**63)


Source = tuple[str, str | None, bool, bool]
"""(task, model, model_event, allow_locked): who owns an event, and whether the owner may be a published task."""

SeriesKey = tuple[str, str | None, bool, bool, str, str, str, str | None]
"""What all points of a group share: their source, and (metric, variant, worker, x_axis_label)."""


@dataclass(slots=True)
class Gathered:
    """Points, group after group: group n has the key `keys[n]` and the next `lengths[n]` points.

    The points of a series are in the order in which they were sent, because the last one of an iteration counts.
    """

    keys: list[SeriesKey]
    lengths: list[int]
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array
    columns: list[list[Any]] = field(init=False)
    """The columns of `keys`; none if there are no keys."""

    def __post_init__(self) -> None:
        self.columns = columns_of(self.keys)


def columns_of(keys: Iterable[SeriesKey]) -> list[list[Any]]:
    """The columns of some keys."""
    return list(map(list, zip(*keys, strict=True)))


_NOTHING = Gathered([], [], np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


def source_of(line: SentEvent) -> Source:
    """The owner of an event, as its client names it."""
    return line.task, line.model, line.model_event, line.allow_locked


def gather(lines: Sequence[SentEvent]) -> tuple[Gathered, list[SentEvent]]:
    """The points among some events, and the other events."""
    points = [line for line in lines if type(line) is SentScalar]
    others = [line for line in lines if type(line) is not SentScalar] if len(points) < len(lines) else []
    if not points:
        return _NOTHING, others
    groups: dict[SeriesKey, list[SentScalar]] = defaultdict(list)
    for line in points:
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
    if has_mixed_series(columns_of(groups)):
        return _columns(_runs(points)), others
    return _columns(list(groups.items())), others


def has_mixed_series(columns: Sequence[list[Any]]) -> bool:
    """Whether a series has points of several workers, or several labels of its axis. `columns` are those of keys."""
    *series, workers, labels = columns
    if workers.count(workers[0]) == len(workers) and labels.count(labels[0]) == len(labels):  # the usual case
        return False
    return len(set(zip(*series, strict=True))) < len(workers)


def _runs(points: list[SentScalar]) -> list[tuple[SeriesKey, list[SentScalar]]]:
    """Groups such that the points of each series stay in order.

    For example, one series gets points of the workers a, a, b, a. They make three groups: a a, b, a.
    """
    runs: list[tuple[SeriesKey, list[SentScalar]]] = []
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


def _columns(groups: list[tuple[SeriesKey, list[SentScalar]]]) -> Gathered:
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
