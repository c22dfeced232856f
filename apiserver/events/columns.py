"""Typed lines to an EventBatch: scalars and logs grouped into columns, samples into documents.

Checks that do not need a store are made here, per group: names within their limits, one `allow_locked` an owner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from apiserver.events import documents
from apiserver.events.lines import EventLine, ImageLine, LogLine, PlotLine, ScalarLine, VectorLine
from apiserver.events.model import EventBatch, Int64Array, LogColumns, Owner, ScalarColumns
from apiserver.events.rejects import Contradiction, Reject, Rejects

#: Longest metric, variant, worker and image key, and longest task or model id, in UTF-8 bytes.
MAX_NAME_BYTES = 1024
MAX_ID_BYTES = 128


class _Source(NamedTuple):
    """What tells whose an event is, and whether it may go to a published task."""

    task: str
    model: str | None
    model_event: bool
    allow_locked: bool


#: (task, model, model_event, allow_locked, metric, variant, worker, x_axis_label). Plain, as each point builds one.
_SeriesKey = tuple[str, str | None, bool, bool, str, str, str, str | None]


@dataclass(slots=True)
class _Points:
    iters: list[int] = field(default_factory=list)
    timestamps: list[int | None] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)


@dataclass(slots=True)
class Grouped:
    """A batch not yet checked against the owners' documents."""

    batch: EventBatch
    locked_allowed: dict[Owner, bool]
    """For each owner, whether its events may go to a published task; also the list of all owners."""


def group(
    lines: Iterable[EventLine], rejects: Rejects, *, company: str, received: int, worker: str, body: bytes
) -> Grouped:
    """The batch that `lines` make; what cannot be taken is added to `rejects`.

    `worker` and `received` stand in for a missing worker and timestamp. Raises Contradiction when lines disagree
    about one owner: nothing can be taken then.
    """
    scalars: dict[_SeriesKey, _Points] = {}
    logs: dict[_Source, list[LogLine]] = {}
    samples: list[VectorLine | ImageLine | PlotLine] = []
    for line in lines:
        if isinstance(line, ScalarLine):
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
            points = scalars.get(key)
            if points is None:
                points = scalars[key] = _Points()
            points.iters.append(line.iter)
            points.timestamps.append(line.timestamp)
            points.values.append(line.value)
        elif isinstance(line, LogLine):
            logs.setdefault(_source(line), []).append(line)
        else:
            samples.append(line)
    grouping = _Grouping(rejects, company, received, worker)
    for series, points in scalars.items():
        grouping.add_scalars(series, points)
    if logs:
        grouping.add_logs(logs, body)
    for sample in samples:
        grouping.add_sample(sample)
    return Grouped(grouping.batch, grouping.locked_allowed)


def _source(line: EventLine) -> _Source:
    return _Source(line.task, line.model, line.model_event, line.allow_locked)


class _Grouping:
    """The batch as it grows, group by group."""

    def __init__(self, rejects: Rejects, company: str, received: int, worker: str) -> None:
        self.rejects = rejects
        self.company = company
        self.worker = worker
        self.received = received
        self.batch = EventBatch(received)
        self.locked_allowed: dict[Owner, bool] = {}

    def add_scalars(self, key: _SeriesKey, points: _Points) -> None:
        task, model, model_event, allow_locked, metric, variant, worker, x_axis_label = key
        try:
            owner = self._owner(_Source(task, model, model_event, allow_locked))
            _check_names(metric=metric, variant=variant, worker=worker)
        except Reject as reject:
            self.rejects.add(reject, len(points.iters))
            return
        self.batch.scalars.append(
            ScalarColumns(
                owner,
                metric,
                variant,
                worker or self.worker,
                np.array(points.iters, dtype=np.int64),
                self._timestamps(points.timestamps),
                np.array(points.values, dtype=np.float64),
                x_axis_label,
            )
        )

    def add_logs(self, groups: dict[_Source, list[LogLine]], body: bytes) -> None:
        timed = all(line.timestamp is not None for lines in groups.values() for line in lines)
        digest = hashlib.blake2b(body, digest_size=16).digest() if timed else None
        for source, lines in groups.items():
            try:
                owner = self._owner(source)
                if owner.is_model:
                    raise Reject("Task log events are not supported for models", malformed=False)
            except Reject as reject:
                self.rejects.add(reject, len(lines))
                continue
            if named := [line for line in lines if self._is_named_well(line)]:
                self.batch.logs.append(self._log_columns(owner, named, digest))

    def _is_named_well(self, line: LogLine) -> bool:
        try:
            _check_names(metric=line.metric, variant=line.variant, worker=line.worker)
        except Reject as reject:
            self.rejects.add(reject)
            return False
        return True

    def add_sample(self, line: VectorLine | ImageLine | PlotLine) -> None:
        try:
            owner = self._owner(_source(line))
            key = line.key if isinstance(line, ImageLine) else ""
            _check_names(metric=line.metric, variant=line.variant, worker=line.worker, key=key)
        except Reject as reject:
            self.rejects.add(reject)
            return
        self.batch.samples.append(documents.sample(line, owner, received=self.received, worker=self.worker))

    def _log_columns(self, owner: Owner, lines: list[LogLine], digest: bytes | None) -> LogColumns:
        return LogColumns(
            owner,
            self._timestamps([line.timestamp for line in lines]),
            [line.level for line in lines],
            [line.worker or self.worker for line in lines],
            [line.msg for line in lines],
            [line.iter for line in lines],
            [line.metric for line in lines],
            [line.variant for line in lines],
            digest,
        )

    def _timestamps(self, given: list[int | None]) -> Int64Array:
        if None in given:
            given = [self.received if timestamp is None else timestamp for timestamp in given]
        return np.array(given, dtype=np.int64)

    def _owner(self, source: _Source) -> Owner:
        id = source.model or source.task
        if not id:
            raise Reject("Event must have a 'task' field", malformed=False)
        if len(id.encode()) > MAX_ID_BYTES:
            raise Reject(f"field 'task' is longer than {MAX_ID_BYTES} bytes", field="task")
        owner = Owner(self.company, id, source.model_event or bool(source.model))
        if owner._replace(is_model=not owner.is_model) in self.locked_allowed:
            raise Contradiction(f"Inconsistent model_event setting in the passed events for {id}")
        if self.locked_allowed.setdefault(owner, source.allow_locked) != source.allow_locked:
            raise Contradiction(f"Inconsistent allow_locked setting in the passed events for {id}")
        return owner


def _check_names(**names: str) -> None:
    for field_name, name in names.items():
        if len(name) > MAX_NAME_BYTES // 4 and len(name.encode()) > MAX_NAME_BYTES:
            raise Reject(f"field '{field_name}' is longer than {MAX_NAME_BYTES} bytes", field=field_name)
