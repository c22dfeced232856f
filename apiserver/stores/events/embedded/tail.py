"""The tail: points that are in no chunk yet, as runs of raw points of one series.

The runs of a series are ascending and disjoint, and lie beyond its last chunk; its row in `scalars` lists their ids, in
order. New runs go to the end of the table, so that ten thousand small series cost a merge few pages.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.stores.events.embedded.points import NO_POINTS, Points, take

#: A series with more runs gets them as one at its next merge.
MOST_RUNS = 16

_POINT = np.dtype([("iter", "<i8"), ("value", "<f8"), ("timestamp", "<i8"), ("worker", "<u4"), ("received", "<i8")])
_ID_BYTES = 8


def run_ids(runs: bytes) -> list[int]:
    """The ids that a series' row lists."""
    ids: list[int] = np.frombuffer(runs, "<i8").tolist()
    return ids


def read(conn: sqlite3.Connection, runs: bytes) -> Points:
    """The points of the runs, in order."""
    if not runs:
        return NO_POINTS
    query = "SELECT body FROM tail WHERE id = ?"
    return _decoded(b"".join(conn.execute(query, (id,)).fetchone()[0] for id in run_ids(runs)))


def read_many(conn: sqlite3.Connection, tails: Sequence[bytes]) -> list[Points]:
    """The points of each of the tails, which are runs, by one query."""
    ids = json.dumps(run_ids(b"".join(tails)))
    bodies = dict(conn.execute("SELECT id, body FROM tail WHERE id IN (SELECT value FROM json_each(?))", (ids,)))
    contents = [b"".join(bodies[id] for id in run_ids(runs)) for runs in tails]
    points = _decoded(b"".join(contents))
    stops = list(accumulate(len(content) // _POINT.itemsize for content in contents))
    return [take(points, slice(start, stop)) for start, stop in zip([0, *stops], stops, strict=False)]


def _decoded(content: bytes) -> Points:
    rows = np.frombuffer(content, _POINT)
    return Points(
        iters=np.ascontiguousarray(rows["iter"]),
        values=np.ascontiguousarray(rows["value"]),
        timestamps=np.ascontiguousarray(rows["timestamp"]),
        workers=rows["worker"].astype(np.int64),
        received=np.ascontiguousarray(rows["received"]),
    )


class TailWriter:
    """Collects runs, then writes them at once."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._next_id = int(conn.execute("SELECT coalesce(max(id), 0) + 1 FROM tail").fetchone()[0])
        self._runs: list[tuple[int, bytes]] = []
        self._removed: list[int] = []

    def put(self, points: Points, lengths: Sequence[int] | Int64Array) -> list[bytes]:
        """Write runs of these lengths, one after another; return what lists each of them in its series' row."""
        rows = np.empty(len(points.iters), _POINT)
        for name, column in zip(
            ("iter", "value", "timestamp", "worker", "received"),
            (points.iters, points.values, points.timestamps, points.workers, points.received),
            strict=True,
        ):
            rows[name] = column
        content = rows.tobytes()
        stops = (np.cumsum(lengths) * _POINT.itemsize).tolist()
        ids = range(self._next_id, self._next_id + len(stops))
        self._next_id = ids.stop
        self._runs += [(id, content[start:stop]) for id, start, stop in zip(ids, [0, *stops], stops, strict=False)]
        listed = np.arange(ids.start, ids.stop, dtype="<i8").tobytes()
        return [listed[at : at + _ID_BYTES] for at in range(0, len(listed), _ID_BYTES)]

    def remove(self, runs: bytes) -> None:
        """Take these runs away."""
        self._removed += run_ids(runs)

    def write(self) -> None:
        """Put all changes into the database."""
        delete(self._conn, self._removed)
        self._conn.executemany("INSERT INTO tail (id, body) VALUES (?, ?)", self._runs)


def delete(conn: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Delete these runs."""
    conn.executemany("DELETE FROM tail WHERE id = ?", ((id,) for id in ids))


def is_crowded(runs: bytes) -> bool:
    """Whether there are so many runs that they had better be one."""
    return len(runs) >= MOST_RUNS * _ID_BYTES
