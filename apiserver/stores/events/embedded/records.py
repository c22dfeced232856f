"""A batch as a journal record, and back: columns as raw arrays, everything else as one msgpack structure.

The columns of all scalars lie one after another (all iters, then all timestamps, then all values), so that a record's
arrays are views of its bytes, whether it was just made or was read from a journal. What describes the groups of points
of one series and worker is columns, too: group n has the next `lengths[n]` points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
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


class Groups(msgspec.Struct, array_like=True):
    """The groups of points of a record; `owners` index its table of owners."""

    owners: list[int]
    metrics: list[str]
    variants: list[str]
    workers: list[str]
    lengths: list[int]


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
    groups: Groups
    logs: list[_Logs]
    samples: list[_Sample]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Meta)


@dataclass(slots=True)
class Record:
    """One batch as it is kept: what the journal writes and what hot data refer to."""

    received: int
    columns: bytes
    meta: bytes
    owners: list[Owner]
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array
    groups: Groups
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


def make(batch: EventBatch) -> Record:
    """The batch as a record; raise ValueError when columns of one group differ in length."""
    numbers: dict[Owner, int] = {}
    everything: chain[ScalarColumns | LogColumns | Sample] = chain(batch.scalars, batch.logs, batch.samples)
    for one in everything:
        numbers.setdefault(one.owner, len(numbers))
    scalars = batch.scalars
    groups = Groups(
        [numbers[group.owner] for group in scalars],
        [group.metric for group in scalars],
        [group.variant for group in scalars],
        [group.worker for group in scalars],
        _lengths([group.iters for group in scalars]),
    )
    if not groups.lengths == [len(group.values) for group in scalars] == [len(group.timestamps) for group in scalars]:
        raise ValueError("iterations, timestamps and values of a group differ in length")
    columns = _raw_columns(batch, sum(groups.lengths))
    meta = _meta(batch.received, numbers, groups, batch.logs, batch.samples)
    return Record(batch.received, columns, meta, list(numbers), *_views(columns), groups, batch.logs, batch.samples)


def with_logs(record: Record, logs: list[LogColumns]) -> Record:
    """The same record with other log lines, its place in the journal not known yet."""
    numbers = {owner: number for number, owner in enumerate(record.owners)}
    meta = _meta(record.received, numbers, record.groups, logs, record.samples)
    return replace(record, meta=meta, logs=logs)


def parse(columns: bytes, meta: bytes, sequence: int) -> Record:
    """The record whose content was written."""
    known = _decoder.decode(meta)
    owners = known.owners
    logs = [
        LogColumns(
            owner=owners[logs.owner],
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
        Sample(owners[s.owner], s.type, s.metric, s.variant, s.iter, s.key, s.timestamp, s.document)
        for s in known.samples
    ]
    return Record(known.received, columns, meta, owners, *_views(columns), known.groups, logs, samples, sequence)


def _lengths(columns: Sequence[npt.NDArray[Any]]) -> list[int]:
    lengths = [len(column) for column in columns]
    if 0 in lengths:
        raise ValueError("a group without points")
    return lengths


def _raw_columns(batch: EventBatch, length: int) -> bytes:
    if not length:
        return b""
    raw = np.empty(3 * length, np.int64)
    np.concatenate([group.iters for group in batch.scalars], out=raw[:length])
    np.concatenate([group.timestamps for group in batch.scalars], out=raw[length : 2 * length])
    np.concatenate([group.values for group in batch.scalars], out=raw[2 * length :].view(np.float64))
    return raw.tobytes()


def _views(columns: bytes) -> tuple[Int64Array, Int64Array, Float64Array]:
    length = len(columns) // 24
    iters = np.frombuffer(columns, np.int64, length)
    timestamps = np.frombuffer(columns, np.int64, length, offset=8 * length)
    return iters, timestamps, np.frombuffer(columns, np.float64, length, offset=16 * length)


def _meta(
    received: int, numbers: dict[Owner, int], groups: Groups, logs: Sequence[LogColumns], samples: Sequence[Sample]
) -> bytes:
    return _encoder.encode(
        _Meta(
            received,
            list(numbers),
            groups,
            [_logs(numbers[one.owner], one) for one in logs],
            [
                _Sample(numbers[s.owner], s.type, s.metric, s.variant, s.iter, s.key, s.timestamp, s.document)
                for s in samples
            ],
        )
    )


def _logs(owner: int, logs: LogColumns) -> _Logs:
    columns = (logs.levels, logs.workers, logs.messages, logs.iters, logs.metrics, logs.variants)
    if not logs.messages or {len(column) for column in columns} != {len(logs.timestamps)}:
        raise ValueError("columns of log lines differ in length, or there is no line")
    timestamps = np.ascontiguousarray(logs.timestamps, np.int64).tobytes()
    return _Logs(owner, timestamps, *columns, logs.digest)
