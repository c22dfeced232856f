"""How much each worker logged. Each block says so of its lines, but blocks of older versions have to be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from apiserver.events.log_text import sizes_of, text_of
from apiserver.events.model import EventType, Int64Array, LogSize, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.embedded import lines as codec
from apiserver.stores.events.embedded.hot import LogPart
from apiserver.stores.events.embedded.lines import Column, Lines
from apiserver.stores.events.embedded.names import owner_id, series_ids
from apiserver.stores.events.embedded.points import grouped

_Sizes = list[tuple[str, int, int]]

_decoder = msgspec.msgpack.Decoder(_Sizes)


def sizes(conn: sqlite3.Connection, owner: Owner, hot: Sequence[Sequence[LogPart]]) -> dict[str, LogSize]:
    """How much each worker logged."""
    found: dict[str, LogSize] = {}
    number = owner_id(conn, owner)
    for (known,) in conn.execute("SELECT sizes FROM log_blocks WHERE owner = ? AND sizes IS NOT NULL", (number,)):
        _add(found, _decoder.decode(known))
    names = {id: name for name, id in series_ids(conn, SeriesQuery(owner, EventType.LOG)).items()}
    for (body,) in conn.execute("SELECT body FROM log_blocks WHERE owner = ? AND sizes IS NULL", (number,)):
        _add(found, _of_lines(codec.decode(body, names)))
    for part in (part for table in hot for part in table):
        columns = part.columns
        _add(found, _by_worker(Column.of(columns.workers), columns.timestamps, sizes_of(columns.messages)))
    return found


def encode(lines: Lines) -> bytes:
    """The sizes that a block keeps of its lines."""
    return msgspec.msgpack.encode(_of_lines(lines))


def workers(encoded: bytes) -> list[str]:
    """The workers that logged the lines of a block."""
    return [worker for worker, _, _ in _decoder.decode(encoded)]


def bytes_of(encoded: bytes | None) -> int:
    """Bytes of the lines of a block; 0 for a block of an older version, which does not say."""
    return 0 if encoded is None else sum(size for _, _, size in _decoder.decode(encoded))


def _of_lines(lines: Lines) -> _Sizes:
    if len(lines.workers.table) == 1:
        return [(lines.workers.table[0], int(lines.timestamps[0]), len(text_of(lines.messages)))]
    return _by_worker(lines.workers, lines.timestamps, sizes_of(lines.messages))


def _by_worker(workers: Column, timestamps: Int64Array, sizes: Int64Array) -> _Sizes:
    order, starts = grouped(workers.places)
    names = [workers.table[number] for number in workers.places[order[starts]].tolist()]
    first, bytes = np.minimum.reduceat(timestamps[order], starts), np.add.reduceat(sizes[order], starts)
    return list(zip(names, first.tolist(), bytes.tolist(), strict=True))


def _add(found: dict[str, LogSize], sizes: Iterable[tuple[str, int, int]]) -> None:
    for worker, first, size in sizes:
        known = found.get(worker)
        found[worker] = LogSize(first, size) if known is None else LogSize(min(first, known[0]), size + known[1])
