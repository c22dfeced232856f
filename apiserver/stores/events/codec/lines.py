"""Columns of log lines of one owner in (timestamp, sequence) order, and their encoding as a block."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from apiserver.common import answers
from apiserver.events.log_filter import LineFilter
from apiserver.events.model import Int64Array, LogColumns, LogLine, LogPosition
from apiserver.stores.events.codec import compression, integers
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.sizes import EVENT_BYTES

#: Some lines: their range, or their indices.
Which = slice | npt.NDArray[np.intp]

#: These make positions and lines in half the time that their classes take. Pages have many lines.
_POSITION: Callable[[Iterable[int]], LogPosition] = partial(tuple.__new__, LogPosition)
_LINE: Callable[[Iterable[Any]], LogLine] = partial(tuple.__new__, LogLine)


#: Bytes of the id of a body.
BODY_ID = 10


def body_id(digest: bytes) -> bytes:
    """The id of the body with this digest (`LogColumns.digest`), by which stores know that it is sent again."""
    return hashlib.blake2b(digest, digest_size=BODY_ID).digest()


class LogPart(NamedTuple):
    """Lines of one owner and batch. `sequence` is that of the first line."""

    sequence: int
    received: int
    columns: LogColumns


class Positions(NamedTuple):
    """Positions of lines, ascending."""

    timestamps: Int64Array
    sequences: Int64Array

    def at(self, n: int) -> LogPosition:
        """The n-th position."""
        return LogPosition(int(self.timestamps[n]), int(self.sequences[n]))

    def take(self, which: npt.NDArray[np.intp]) -> Positions:
        """The positions at these indices."""
        return Positions(self.timestamps[which], self.sequences[which])

    def before(self, position: LogPosition, side: Literal["left", "right"] = "left") -> int:
        """How many of them lie before the position; "right": or at it."""
        start = int(np.searchsorted(self.timestamps, position.timestamp, "left"))
        stop = int(np.searchsorted(self.timestamps, position.timestamp, "right"))
        return start + int(np.searchsorted(self.sequences[start:stop], position.sequence, side))

    def until_each(self, ends: Positions) -> npt.NDArray[np.intp]:
        """How many of them lie before each of these ascending positions, or at it."""
        if not len(self.timestamps):
            return np.zeros(len(ends.timestamps), np.intp)
        is_end = np.repeat([False, True], [len(self.timestamps), len(ends.timestamps)])
        times, sequences = (np.concatenate(columns) for columns in zip(self, ends, strict=True))
        order = np.lexsort((is_end, sequences, times))
        return np.flatnonzero(order >= len(self.timestamps)) - np.arange(len(ends.timestamps))


@dataclass(slots=True)
class Column:
    """A column with few distinct values: a table of them, and each line's place in the table.

    For example, the levels info, info, error, info have the table [info, error] and the places 0, 0, 1, 0.
    """

    table: list[Any]
    places: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: list[Any]) -> Column:
        """The column of these values; there must be at least one."""
        if values.count(values[0]) == len(values):
            return cls(values[:1], np.zeros(len(values), np.int64))
        numbers = {value: n for n, value in enumerate(dict.fromkeys(values))}
        return cls(list(numbers), np.fromiter(map(numbers.__getitem__, values), np.int64, len(values)))

    def __iter__(self) -> Iterator[Any]:
        return map(self.table.__getitem__, self.places.tolist())

    def take(self, which: Which) -> Column:
        """The values at `which`."""
        return Column(self.table, self.places[which])

    def where(self, values: Collection[Any]) -> npt.NDArray[np.intp]:
        """The indices of lines with one of these values."""
        return np.flatnonzero(np.isin(self.places, [n for n, value in enumerate(self.table) if value in values]))

    def distinct(self) -> Column:
        """The same column, with a table of only the values that lines have."""
        if len(self.table) == 1:
            return self
        used, places = np.unique(self.places, return_inverse=True)
        return Column([self.table[n] for n in used.tolist()], places)

    def map(self, values: Mapping[Any, Any]) -> Column:
        """The column with each value replaced by `values[value]`; no two of these may be the same."""
        return Column([values[value] for value in self.table], self.places)

    def with_column(self, other: Column) -> Column:
        """The column of pairs of this column's and the other column's values."""
        width = len(other.table)
        if len(self.table) == width == 1:
            return Column([(self.table[0], other.table[0])], self.places)
        used, places = np.unique(self.places * width + other.places, return_inverse=True)
        return Column([(self.table[n // width], other.table[n % width]) for n in used.tolist()], places)


def _joined(columns: Sequence[Column]) -> Column:
    if all(column.table == columns[0].table for column in columns):
        return Column(columns[0].table, np.concatenate([column.places for column in columns]))
    return Column.of([*chain.from_iterable(columns)])


@dataclass(slots=True)
class Lines:
    """Log lines as columns of the same length, ascending by (timestamp, sequence)."""

    timestamps: Int64Array
    sequences: Int64Array
    received: Int64Array
    levels: Column
    workers: Column
    messages: list[str]
    iters: Column
    """Whole numbers and None."""
    names: Column
    """Pairs of metric and variant."""
    extras: Column
    """JSON objects in UTF-8 and None."""

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def texts(self) -> Texts:
        """What searches look at."""
        return Texts(self.levels, self.workers, self.messages)

    @property
    def sizes(self) -> Int64Array:
        """Bytes of memory that each line takes as `LogLine`, about."""
        sizes = EVENT_BYTES + np.fromiter(map(len, self.messages), np.int64, len(self))
        if self.extras.table != [None]:
            sizes += np.array([len(extra or b"") for extra in self.extras], np.int64)
        return sizes

    @property
    def bytes(self) -> int:
        """Bytes of memory that the lines take as `LogLine` each, about."""
        extras = 0 if self.extras.table == [None] else sum(len(extra) for extra in self.extras if extra)
        return EVENT_BYTES * len(self) + sum(map(len, self.messages)) + extras

    @property
    def positions(self) -> Positions:
        """The position of each line."""
        return Positions(self.timestamps, self.sequences)

    def position(self, n: int) -> LogPosition:
        """The position of a line."""
        return self.positions.at(n)

    def take(self, which: npt.NDArray[np.intp]) -> Lines:
        """The lines at these indices."""
        return self._at(which, [self.messages[n] for n in which.tolist()])

    def slice(self, start: int, stop: int) -> Lines:
        """The lines at start ≤ n < stop."""
        return self._at(slice(start, stop), self.messages[start:stop])

    def _at(self, which: Which, messages: list[str]) -> Lines:
        return Lines(
            timestamps=self.timestamps[which],
            sequences=self.sequences[which],
            received=self.received[which],
            levels=self.levels.take(which),
            workers=self.workers.take(which),
            messages=messages,
            iters=self.iters.take(which),
            names=self.names.take(which),
            extras=self.extras.take(which),
        )

    def reversed(self) -> Lines:
        """The lines from the last one to the first."""
        return self._at(slice(None, None, -1), self.messages[::-1])

    def beyond(self, after: LogPosition | None, descending: bool) -> Lines:
        """The lines that a walk meets after `after`, still ascending."""
        if after is None:
            return self
        at = self.before(after, "left" if descending else "right")
        return self.slice(0, at) if descending else self.slice(at, len(self))

    def without(self, others: Lines) -> Lines:
        """The lines at positions that none of the others has."""
        taken = {*zip(others.timestamps.tolist(), others.sequences.tolist(), strict=True)}
        positions = zip(self.timestamps.tolist(), self.sequences.tolist(), strict=True)
        free = [number for number, position in enumerate(positions) if position not in taken]
        return self if len(free) == len(self) else self.take(np.array(free, np.intp))

    def before(self, position: LogPosition, side: Literal["left", "right"] = "left") -> int:
        """How many of the lines lie before the position; "right": or at it."""
        return self.positions.before(position, side)

    def log_lines(self) -> list[LogLine]:
        """All lines as `LogLine`."""
        positions = map(_POSITION, zip(self.timestamps.tolist(), self.sequences.tolist(), strict=True))
        metrics, variants = zip(*self.names, strict=True) if len(self) else ((), ())
        columns = (positions, self.levels, self.workers, self.messages, self.iters, metrics, variants)
        extras = repeat(None, len(self)) if self.extras.table == [None] else self.extras
        return list(map(_LINE, zip(*columns, self.received.tolist(), extras, strict=True)))


@dataclass(slots=True)
class Texts:
    """What searches look at: columns of the same length."""

    levels: Column
    workers: Column
    messages: list[str]

    def places(self, line_filter: LineFilter) -> list[int]:
        """Where the matching lines are."""
        matching = np.arange(len(self.messages))
        if line_filter.levels:
            matching = self.levels.where(line_filter.levels)
        if line_filter.workers:
            matching = np.intersect1d(matching, self.workers.where(line_filter.workers), assume_unique=True)
        places: list[int] = matching.tolist()
        are_all = len(places) == len(self.messages)
        return line_filter.by_message(places, self.messages if are_all else [self.messages[n] for n in places])


def of_parts(parts: Sequence[LogPart]) -> Lines:
    """The lines of the parts, sorted; there must be at least one part."""
    columns = [part.columns for part in parts]
    lengths = [len(part_columns.messages) for part_columns in columns]
    lines = Lines(
        timestamps=np.concatenate([part_columns.timestamps for part_columns in columns]),
        sequences=np.concatenate(
            [np.arange(part.sequence, part.sequence + n) for part, n in zip(parts, lengths, strict=True)]
        ),
        received=np.repeat(np.array([part.received for part in parts], np.int64), lengths),
        levels=_column(part_columns.levels for part_columns in columns),
        workers=_column(part_columns.workers for part_columns in columns),
        messages=[*chain.from_iterable(part_columns.messages for part_columns in columns)],
        iters=_column(part_columns.iters for part_columns in columns),
        names=_column(part_columns.metrics for part_columns in columns).with_column(
            _column(part_columns.variants for part_columns in columns)
        ),
        extras=(
            _column(map(part_columns.extras.get, range(n)) for part_columns, n in zip(columns, lengths, strict=True))
            if any(part_columns.extras for part_columns in columns)
            else Column([None], np.zeros(sum(lengths), np.int64))
        ),
    )
    return in_order(lines)


def _column(parts: Iterable[Iterable[Any]]) -> Column:
    return Column.of([*chain.from_iterable(parts)])


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
            levels=_joined([part.levels for part in parts]),
            workers=_joined([part.workers for part in parts]),
            messages=[*chain.from_iterable(part.messages for part in parts)],
            iters=_joined([part.iters for part in parts]),
            names=_joined([part.names for part in parts]),
            extras=_joined([part.extras for part in parts]),
        )
    )


class _Coded(msgspec.Struct, array_like=True):
    """An encoded column. `places` is empty if the table has only one value."""

    table: list[Any]
    places: bytes

    @classmethod
    def of(cls, column: Column) -> _Coded:
        column = column.distinct()
        return cls(column.table, b"" if len(column.table) == 1 else integers.encode(column.places))

    def column(self, length: int) -> Column:
        places = integers.decode(self.places, length) if self.places else np.zeros(length, np.int64)
        return Column(self.table, places)


_NONE = _Coded([None], b"")


class _Block(msgspec.Struct, array_like=True):
    timestamps: bytes
    sequences: bytes
    received: bytes
    levels: _Coded
    workers: _Coded
    series: _Coded
    iters: _Coded
    messages: list[str]
    extras: _Coded | None
    """None if no line has any."""


class _BlockTexts(msgspec.Struct, array_like=True):
    """The fields of `_Block`, of which only some are decoded."""

    timestamps: msgspec.Raw
    sequences: msgspec.Raw
    received: msgspec.Raw
    levels: _Coded
    workers: _Coded
    series: msgspec.Raw
    iters: msgspec.Raw
    messages: list[str]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Block)
_texts_decoder = msgspec.msgpack.Decoder(_BlockTexts)


def encode(lines: Lines, ids: Mapping[Name, int]) -> bytes:
    """The lines as a block, in which ids stand for series."""
    block = _Block(
        timestamps=integers.encode(lines.timestamps),
        sequences=integers.encode(lines.sequences),
        received=integers.encode(lines.received),
        levels=_Coded.of(lines.levels),
        workers=_Coded.of(lines.workers),
        series=_Coded.of(lines.names.map(ids)),
        iters=_Coded.of(lines.iters),
        messages=lines.messages,
        extras=None if lines.extras.table == [None] else _Coded.of(lines.extras),
    )
    return compression.compress(_encoder.encode(block), checked=True)


def decode(body: bytes, names: Mapping[int, Name]) -> Lines:
    """The lines of a block."""
    answers.will_read(compression.size_of(body))
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
        names=block.series.column(length).map(names),
        extras=_NONE.column(length) if block.extras is None else block.extras.column(length),
    )


def decode_texts(body: bytes) -> Texts:
    """The texts of a block, in a third of the time of `decode`. The caller counts its bytes (`answers.will_read`)."""
    block = _texts_decoder.decode(compression.decompress(body))
    length = len(block.messages)
    return Texts(block.levels.column(length), block.workers.column(length), block.messages)
