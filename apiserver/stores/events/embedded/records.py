"""Turns a batch into a journal record, and back: columns of scalars are raw arrays, all else is one msgpack structure.

The columns of all scalars come one after another: all iters, then all timestamps, then all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from apiserver.events.model import EventBatch, EventType, LogColumns, Owner, Sample, Scalars


class _Groups(msgspec.Struct, array_like=True):
    """The groups of points. `owner` has indices into the record's owners, which begin with those of the points."""

    owner: list[int]
    metrics: list[str]
    variants: list[str]
    workers: list[str]
    lengths: list[int]


class _Logs(msgspec.Struct, array_like=True):
    owner: int
    timestamps: bytes
    levels: list[str | None]
    workers: list[str]
    messages: list[str]
    iters: list[int | None]
    metrics: list[str]
    variants: list[str]
    digest: bytes | None
    extras: dict[int, bytes]
    """Further fields of lines as JSON, by the line's number."""


#: A sample with the number of its owner, and with its other fields as they are.
_Sample = tuple[int, EventType, str, str, int, str, int, bytes]


class _Meta(msgspec.Struct, array_like=True):
    received: int
    owners: list[Owner]
    groups: _Groups
    logs: list[_Logs]
    samples: list[_Sample]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Meta)


@dataclass(slots=True)
class Record:
    """One batch, both as bytes for the journal and as events for the memtable."""

    received: int
    columns: bytes
    meta: bytes
    owners: list[Owner]
    """The owners of all events. It begins with those of the scalars."""
    scalars: Scalars
    logs: list[LogColumns]
    samples: list[Sample]
    sequence: int = 0
    """The sequence of the first log line. It is set when the record gets its place in the journal."""

    @property
    def size(self) -> int:
        """Bytes of content."""
        return len(self.columns) + len(self.meta)

    @property
    def lines(self) -> int:
        """How many log lines there are."""
        return sum(len(logs.messages) for logs in self.logs)


def make(batch: EventBatch) -> Record:
    """The batch as a record; raise ValueError if columns of one table differ in length."""
    scalars = batch.scalars
    if not sum(scalars.lengths) == len(scalars.iters) == len(scalars.timestamps) == len(scalars.values):
        raise ValueError("iterations, timestamps and values differ in length")
    owners = _owners(scalars, batch.logs, batch.samples)
    columns = b"".join(column.tobytes() for column in (scalars.iters, scalars.timestamps, scalars.values))
    meta = _meta(batch.received, owners, scalars, batch.logs, batch.samples)
    return Record(batch.received, columns, meta, owners, scalars, batch.logs, batch.samples)


def with_logs(record: Record, logs: list[LogColumns]) -> Record:
    """The same record with other log lines. It must not be in the journal yet."""
    owners = _owners(record.scalars, logs, record.samples)
    meta = _meta(record.received, owners, record.scalars, logs, record.samples)
    return replace(record, meta=meta, owners=owners, logs=logs)


def _owners(scalars: Scalars, logs: Sequence[LogColumns], samples: Sequence[Sample]) -> list[Owner]:
    return list(dict.fromkeys([*scalars.owners, *(one.owner for one in logs), *(one.owner for one in samples)]))


def parse(columns: bytes, meta: bytes, sequence: int) -> Record:
    """The record that was written as these bytes."""
    described = _decoder.decode(meta)
    owners = described.owners
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
            extras=logs.extras,
        )
        for logs in described.logs
    ]
    samples = [Sample(owners[sample[0]], *sample[1:]) for sample in described.samples]
    scalars = _scalars(owners, described.groups, columns)
    return Record(described.received, columns, meta, owners, scalars, logs, samples, sequence)


def _scalars(owners: list[Owner], groups: _Groups, columns: bytes) -> Scalars:
    length = len(columns) // 24
    return Scalars(
        owners[: max(groups.owner, default=-1) + 1],
        groups.owner,
        groups.metrics,
        groups.variants,
        groups.workers,
        [None] * len(groups.owner),
        groups.lengths,
        np.frombuffer(columns, np.int64, length),
        np.frombuffer(columns, np.int64, length, offset=8 * length),
        np.frombuffer(columns, np.float64, length, offset=16 * length),
    )


def _meta(
    received: int, owners: list[Owner], scalars: Scalars, logs: Sequence[LogColumns], samples: Sequence[Sample]
) -> bytes:
    numbers = {owner: number for number, owner in enumerate(owners)}
    return _encoder.encode(
        _Meta(
            received,
            owners,
            _Groups(scalars.owner, scalars.metrics, scalars.variants, scalars.workers, scalars.lengths),
            [_logs(numbers[one.owner], one) for one in logs],
            [(numbers[s.owner], s.type, s.metric, s.variant, s.iter, s.key, s.timestamp, s.document) for s in samples],
        )
    )


def _logs(owner: int, logs: LogColumns) -> _Logs:
    columns = (logs.levels, logs.workers, logs.messages, logs.iters, logs.metrics, logs.variants)
    if not logs.messages or {len(column) for column in columns} != {len(logs.timestamps)}:
        raise ValueError("columns of log lines differ in length, or there is no line")
    timestamps = np.ascontiguousarray(logs.timestamps, np.int64).tobytes()
    return _Logs(owner, timestamps, *columns, logs.digest, logs.extras)
