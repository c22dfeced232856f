"""A batch as a journal record, and back: columns as raw arrays, everything else as one msgpack structure.

The columns of all scalars lie one after another (all iters, then all timestamps, then all values), so that a record's
arrays are views of its bytes, whether it was just made or was read from a journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from apiserver.events.model import (
    EventBatch,
    EventType,
    Float64Array,
    Int64Array,
    LogColumns,
    Owner,
    Sample,
    ScalarColumns,
)


class _Scalars(msgspec.Struct, array_like=True):
    owner: int
    metric: str
    variant: str
    worker: str
    length: int


class _Logs(msgspec.Struct, array_like=True):
    owner: int
    timestamps: bytes
    levels: list[str]
    workers: list[str]
    messages: list[str]
    iters: list[int | None]
    metrics: list[str]
    variants: list[str]
    digest: bytes | None


class _Sample(msgspec.Struct, array_like=True):
    owner: int
    type: EventType
    metric: str
    variant: str
    iter: int
    key: str
    timestamp: int
    document: bytes


class _Meta(msgspec.Struct, array_like=True):
    received: int
    owners: list[Owner]
    scalars: list[_Scalars]
    logs: list[_Logs]
    samples: list[_Sample]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Meta)


@dataclass(slots=True)
class ScalarGroup:
    """Points of one series in a record: those at start ≤ n < stop of its columns."""

    owner: Owner
    metric: str
    variant: str
    worker: str
    start: int
    stop: int


@dataclass(slots=True)
class Record:
    """One batch as it is kept: what the journal writes and what hot data refer to."""

    received: int
    columns: bytes
    meta: bytes
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array
    scalars: list[ScalarGroup]
    logs: list[LogColumns]
    samples: list[Sample]
    sequence: int = 0
    """Of the first log line; known when the record gets its place in the journal."""

    @property
    def size(self) -> int:
        """Bytes of content."""
        return len(self.columns) + len(self.meta)

    @property
    def lines(self) -> int:
        """How many log lines there are."""
        return sum(len(logs.messages) for logs in self.logs)

    def owners(self) -> set[Owner]:
        """Whose events these are."""
        groups: chain[ScalarGroup | LogColumns | Sample] = chain(self.scalars, self.logs, self.samples)
        return {group.owner for group in groups}


def make(batch: EventBatch) -> Record:
    """The batch as a record; raise ValueError when a column has another length than its fellows."""
    numbers: dict[Owner, int] = {}

    def number(owner: Owner) -> int:
        return numbers.setdefault(owner, len(numbers))

    lengths = [_length(group.iters, group.timestamps, group.values) for group in batch.scalars]
    scalars = [
        _Scalars(number(group.owner), group.metric, group.variant, group.worker, length)
        for group, length in zip(batch.scalars, lengths, strict=True)
    ]
    logs = [_logs(number(logs.owner), logs) for logs in batch.logs]
    samples = [
        _Sample(number(s.owner), s.type, s.metric, s.variant, s.iter, s.key, s.timestamp, s.document)
        for s in batch.samples
    ]
    meta = _encoder.encode(_Meta(batch.received, list(numbers), scalars, logs, samples))
    columns = _raw_columns(batch)
    stops = list(accumulate(lengths))
    groups = [
        ScalarGroup(group.owner, group.metric, group.variant, group.worker, stop - length, stop)
        for group, stop, length in zip(batch.scalars, stops, lengths, strict=True)
    ]
    return Record(batch.received, columns, meta, *_views(columns), groups, batch.logs, batch.samples)


def with_logs(record: Record, logs: list[LogColumns]) -> Record:
    """The same record with other log lines, its place in the journal not known yet."""
    scalars = [
        ScalarColumns(
            owner=group.owner,
            metric=group.metric,
            variant=group.variant,
            worker=group.worker,
            iters=record.iters[group.start : group.stop],
            timestamps=record.timestamps[group.start : group.stop],
            values=record.values[group.start : group.stop],
        )
        for group in record.scalars
    ]
    return make(EventBatch(record.received, scalars, logs, record.samples))


def parse(columns: bytes, meta: bytes, sequence: int) -> Record:
    """The record whose content was written."""
    known = _decoder.decode(meta)
    stops = list(accumulate(group.length for group in known.scalars))
    groups = [
        ScalarGroup(known.owners[group.owner], group.metric, group.variant, group.worker, stop - group.length, stop)
        for group, stop in zip(known.scalars, stops, strict=True)
    ]
    logs = [
        LogColumns(
            owner=known.owners[logs.owner],
            timestamps=np.frombuffer(logs.timestamps, np.int64),
            levels=logs.levels,
            workers=logs.workers,
            messages=logs.messages,
            iters=logs.iters,
            metrics=logs.metrics,
            variants=logs.variants,
            digest=logs.digest,
        )
        for logs in known.logs
    ]
    samples = [
        Sample(known.owners[s.owner], s.type, s.metric, s.variant, s.iter, s.key, s.timestamp, s.document)
        for s in known.samples
    ]
    return Record(known.received, columns, meta, *_views(columns), groups, logs, samples, sequence)


def _length(*columns: Sequence[object] | npt.NDArray[np.generic]) -> int:
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"columns of one group must have one length, at least 1, not {sorted(lengths)}")
    return lengths.pop()


def _raw_columns(batch: EventBatch) -> bytes:
    arrays: list[npt.NDArray[Any]] = [
        *(np.ascontiguousarray(group.iters, np.int64) for group in batch.scalars),
        *(np.ascontiguousarray(group.timestamps, np.int64) for group in batch.scalars),
        *(np.ascontiguousarray(group.values, np.float64) for group in batch.scalars),
    ]
    return b"".join(array.data for array in arrays)


def _views(columns: bytes) -> tuple[Int64Array, Int64Array, Float64Array]:
    length = len(columns) // 24
    iters = np.frombuffer(columns, np.int64, length)
    timestamps = np.frombuffer(columns, np.int64, length, offset=8 * length)
    return iters, timestamps, np.frombuffer(columns, np.float64, length, offset=16 * length)


def _logs(owner: int, logs: LogColumns) -> _Logs:
    _length(logs.timestamps, logs.levels, logs.workers, logs.messages, logs.iters, logs.metrics, logs.variants)
    timestamps = np.ascontiguousarray(logs.timestamps, np.int64).tobytes()
    return _Logs(
        owner,
        timestamps,
        logs.levels,
        logs.workers,
        logs.messages,
        logs.iters,
        logs.metrics,
        logs.variants,
        logs.digest,
    )
