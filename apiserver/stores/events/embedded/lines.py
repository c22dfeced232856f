"""Columns of log lines of one owner in (timestamp, sequence) order, and the codec of a block of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array, LogLine, LogPosition
from apiserver.stores.events.embedded import compression, integers
from apiserver.stores.events.embedded.hot import LogPart, Name


@dataclass(slots=True)
class Lines:
    """Lines, ascending by (timestamp, sequence); all columns have the same length."""

    timestamps: Int64Array
    sequences: Int64Array
    received: Int64Array
    levels: list[str]
    workers: list[str]
    messages: list[str]
    iters: list[int | None]
    names: list[Name]

    def __len__(self) -> int:
        return len(self.messages)

    def take(self, which: npt.NDArray[np.intp]) -> Lines:
        """The lines at these indices."""
        listed = which.tolist()
        return Lines(
            timestamps=self.timestamps[which],
            sequences=self.sequences[which],
            received=self.received[which],
            levels=[self.levels[n] for n in listed],
            workers=[self.workers[n] for n in listed],
            messages=[self.messages[n] for n in listed],
            iters=[self.iters[n] for n in listed],
            names=[self.names[n] for n in listed],
        )

    def slice(self, start: int, stop: int) -> Lines:
        """The lines at start ≤ n < stop."""
        return Lines(*(getattr(self, name)[start:stop] for name in Lines.__slots__))

    def reversed(self) -> Lines:
        """The same lines from the last one to the first."""
        return Lines(*(getattr(self, name)[::-1] for name in Lines.__slots__))

    def beyond(self, after: LogPosition | None, descending: bool) -> Lines:
        """The lines on the far side of `after`, in the order they are in here."""
        if after is None:
            return self
        before = self._count_before(after, inclusive=not descending)
        return self.slice(0, before) if descending else self.slice(before, len(self))

    def _count_before(self, position: LogPosition, *, inclusive: bool) -> int:
        start = int(np.searchsorted(self.timestamps, position.timestamp, "left"))
        stop = int(np.searchsorted(self.timestamps, position.timestamp, "right"))
        same_time = self.sequences[start:stop]
        return start + int(np.searchsorted(same_time, position.sequence, "right" if inclusive else "left"))

    def log_lines(self) -> list[LogLine]:
        """All lines, each for itself."""
        positions = map(LogPosition, self.timestamps.tolist(), self.sequences.tolist())
        metrics, variants = zip(*self.names, strict=True) if self.names else ((), ())
        columns = (positions, self.levels, self.workers, self.messages, self.iters, metrics, variants)
        return list(map(LogLine, *columns, self.received.tolist()))


def of_parts(parts: Sequence[LogPart]) -> Lines:
    """The lines of one or more batches; there must be at least one."""
    columns = [part.columns for part in parts]
    lengths = [len(one.messages) for one in columns]
    lines = Lines(
        timestamps=np.concatenate([one.timestamps for one in columns]),
        sequences=np.concatenate(
            [np.arange(part.sequence, part.sequence + n) for part, n in zip(parts, lengths, strict=True)]
        ),
        received=np.repeat(np.array([part.received for part in parts], np.int64), lengths),
        levels=list(chain.from_iterable(one.levels for one in columns)),
        workers=list(chain.from_iterable(one.workers for one in columns)),
        messages=list(chain.from_iterable(one.messages for one in columns)),
        iters=list(chain.from_iterable(one.iters for one in columns)),
        names=list(chain.from_iterable(zip(one.metrics, one.variants, strict=True) for one in columns)),
    )
    return in_order(lines)


def in_order(lines: Lines) -> Lines:
    """The same lines, sorted."""
    times = lines.timestamps
    if bool((times[1:] >= times[:-1]).all() and (np.diff(lines.sequences) > 0).all()):
        return lines
    return lines.take(np.lexsort((lines.sequences, times)))


def joined(parts: Sequence[Lines]) -> Lines:
    """All lines of the parts, sorted."""
    if len(parts) == 1:
        return parts[0]
    return in_order(
        Lines(
            timestamps=np.concatenate([part.timestamps for part in parts]),
            sequences=np.concatenate([part.sequences for part in parts]),
            received=np.concatenate([part.received for part in parts]),
            levels=list(chain.from_iterable(part.levels for part in parts)),
            workers=list(chain.from_iterable(part.workers for part in parts)),
            messages=list(chain.from_iterable(part.messages for part in parts)),
            iters=list(chain.from_iterable(part.iters for part in parts)),
            names=list(chain.from_iterable(part.names for part in parts)),
        )
    )


class _Coded(msgspec.Struct, array_like=True):
    """A column of few distinct values: a table and, unless there is one value only, the number of each."""

    table: list[Any]
    codes: bytes

    @classmethod
    def of(cls, column: Sequence[Any]) -> _Coded:
        numbers = {value: n for n, value in enumerate(dict.fromkeys(column))}
        if len(numbers) == 1:
            return cls(list(numbers), b"")
        return cls(list(numbers), integers.encode(np.array([numbers[value] for value in column], np.int64)))

    def column(self, length: int) -> list[Any]:
        if not self.codes:
            return self.table * length
        return [self.table[n] for n in integers.decode(self.codes, length).tolist()]


class _Block(msgspec.Struct, array_like=True):
    timestamps: bytes
    sequences: bytes
    received: bytes
    levels: _Coded
    workers: _Coded
    series: _Coded
    iters: _Coded
    messages: list[str]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Block)


def encode(lines: Lines, ids: Mapping[Name, int]) -> bytes:
    """The lines as a block that names series by their ids."""
    block = _Block(
        timestamps=integers.encode(lines.timestamps),
        sequences=integers.encode(lines.sequences),
        received=integers.encode(lines.received),
        levels=_Coded.of(lines.levels),
        workers=_Coded.of(lines.workers),
        series=_Coded.of([ids[name] for name in lines.names]),
        iters=_Coded.of(lines.iters),
        messages=lines.messages,
    )
    return compression.compress(_encoder.encode(block))


def decode(body: bytes, names: Mapping[int, Name]) -> Lines:
    """The lines of a block."""
    block = _decoder.decode(compression.decompress(body))
    length = len(block.messages)
    return Lines(
        timestamps=integers.decode(block.timestamps, length),
        sequences=integers.decode(block.sequences, length),
        received=integers.decode(block.received, length),
        levels=block.levels.column(length),
        workers=block.workers.column(length),
        messages=block.messages,
        iters=block.iters.column(length),
        names=[names[id] for id in block.series.column(length)],
    )
