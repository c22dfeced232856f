"""Deletes merged events in one transaction: an owner's by type, lines and samples by age and series, whole series."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from apiserver.events.model import EventType, Owner, Selection
from apiserver.events.queries import Range, SeriesQuery
from apiserver.stores.events.codec.names import Name, matcher
from apiserver.stores.events.embedded import tail
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.log_merge import BlockWriter
from apiserver.stores.events.embedded.names import CODES, TYPES, owner_id, series_ids
from apiserver.stores.events.embedded.series import merged_series, merged_stats

_OF_OWNER = "IN (SELECT id FROM series WHERE owner = ? AND type = ?)"


def delete_owner(conn: sqlite3.Connection, owner: Owner, types: Sequence[EventType] | None) -> int:
    """Delete the owner's merged events of `types` (None: all); return how many there were."""
    number = owner_id(conn, owner)
    if number is None:
        return 0
    deleted = 0
    for type in TYPES if types is None else set(types):
        key = (number, CODES[type])
        if type is EventType.SCALAR:
            deleted += delete_points(conn, SeriesQuery(owner, type))
        elif type is EventType.LOG:
            deleted += _delete_logs(conn, number, key)
        else:
            deleted += _delete_samples(conn, key)
        conn.execute("DELETE FROM series WHERE owner = ? AND type = ?", key)
    conn.execute(
        "DELETE FROM owners WHERE id = ? AND NOT EXISTS (SELECT 1 FROM series WHERE owner = owners.id)"
        " AND NOT EXISTS (SELECT 1 FROM log_digests WHERE owner = owners.id)",
        (number,),
    )
    return deleted


def _delete_logs(conn: sqlite3.Connection, owner: int, key: tuple[int, int]) -> int:
    count = conn.execute(f"SELECT coalesce(sum(lines), 0) FROM log_series WHERE series {_OF_OWNER}", key).fetchone()[0]
    conn.execute("DELETE FROM log_blocks WHERE owner = ?", (owner,))
    conn.execute("DELETE FROM log_digests WHERE owner = ?", (owner,))
    conn.execute(f"DELETE FROM log_series WHERE series {_OF_OWNER}", key)
    return int(count)


def _delete_samples(conn: sqlite3.Connection, key: tuple[int, int]) -> int:
    conn.execute(
        f"DELETE FROM sample_documents WHERE id IN (SELECT document FROM samples WHERE series {_OF_OWNER})", key
    )
    return conn.execute(f"DELETE FROM samples WHERE series {_OF_OWNER}", key).rowcount


def delete_samples(conn: sqlite3.Connection, series: SeriesQuery, iterations: Range, before: int | None) -> int:
    """Delete merged samples of the series in these iterations, older than `before`; return how many there were."""
    which, deleted = "series = ? AND iter BETWEEN ? AND ?", 0
    if before is not None:
        which += " AND timestamp < ?"
    for id in series_ids(conn, series).values():
        doomed = (id, iterations.least, iterations.greatest, *([] if before is None else [before]))
        conn.execute(f"DELETE FROM sample_documents WHERE id IN (SELECT document FROM samples WHERE {which})", doomed)
        deleted += conn.execute(f"DELETE FROM samples WHERE {which}", doomed).rowcount
        conn.execute(
            "DELETE FROM series WHERE id = ? AND id NOT IN (SELECT series FROM samples WHERE series = ?)", (id, id)
        )
    return deleted


def delete_points(conn: sqlite3.Connection, wanted: SeriesQuery) -> int:
    """Delete all merged points of the series, which keep their ids; return how many there were."""
    series = merged_series(conn, wanted).values()
    tails = tail.TailWriter(conn)
    tails.remove([one.runs for one in series])
    tails.write()
    ids = (json.dumps([one.id for one in series]),)
    of_series = "IN (SELECT value FROM json_each(?))"
    for table in ("chunk_curves", "chunk_details"):
        conn.execute(f"DELETE FROM {table} WHERE id IN (SELECT id FROM chunk_index WHERE series {of_series})", ids)
    for table in ("chunk_index", "scalars"):
        conn.execute(f"DELETE FROM {table} WHERE series {of_series}", ids)
    return int(merged_stats(series)["count"].sum())


def delete_lines(
    conn: sqlite3.Connection, series: SeriesQuery, before: int | None, exclude: Selection, bounds: EmbeddedBounds
) -> int:
    """Delete the merged log lines of the series that are older than `before` and not excluded; return their number."""
    ids = series_ids(conn, replace(series, selection=()))
    included, excluded = matcher(series.selection), matcher(exclude)
    doomed = {name for name in ids if included(*name) and not (exclude and excluded(*name))}
    number = owner_id(conn, series.owner)
    if number is None or not doomed:
        return 0
    limit = math.inf if before is None else before
    deleted: dict[Name, int] = dict.fromkeys(doomed, 0)
    writer = BlockWriter(conn, series.owner, number, bounds)
    blocks = conn.execute(
        "SELECT id, names, last_time, count FROM log_blocks WHERE owner = ? AND first_time < ?", (number, limit)
    ).fetchall()
    names = {id: name for name, id in ids.items()}
    for id, encoded, last_time, count in blocks:
        present = [names[series] for series in msgspec.msgpack.decode(encoded)]
        if doomed.isdisjoint(present):
            continue
        if len(present) == 1 and last_time < limit:
            writer.remove(id)
            deleted[present[0]] += count
            continue
        _delete_from_block(writer, id, limit, deleted)
    writer.write()
    for name, lines in deleted.items():
        _count_down(conn, number, name, ids[name], lines)
    return sum(deleted.values())


def _delete_from_block(writer: BlockWriter, id: int, limit: float, deleted: dict[Name, int]) -> None:
    lines = writer.read(id)
    kept = []
    for n, (name, time) in enumerate(zip(lines.names, lines.timestamps.tolist(), strict=True)):
        if name in deleted and time < limit:
            deleted[name] += 1
        else:
            kept.append(n)
    if not kept:
        writer.remove(id)
    elif len(kept) < len(lines):
        writer.put(lines.take(np.array(kept)), id)


def _count_down(conn: sqlite3.Connection, owner: int, name: Name, series: int, deleted: int) -> None:
    """Subtract deleted lines from the number of lines of a series, and delete the series if it has none."""
    query = "UPDATE log_series SET lines = lines - ? WHERE series = ? RETURNING lines"
    ((left,),) = conn.execute(query, (deleted, series)).fetchall()
    if left == 0:
        conn.execute("DELETE FROM log_series WHERE series = ?", (series,))
        conn.execute(
            "DELETE FROM series WHERE owner = ? AND type = ? AND metric = ? AND variant = ?",
            (owner, CODES[EventType.LOG], *name),
        )
