"""Thins series. They are read while others merge, and only what stays is written while others wait.

1. `stores/events/thinned.py` reads the points of some series, a part at a time, and keeps those that stay in memory.
2. If nothing of these series came or went meanwhile, their points are deleted, and those that stay are written again,
   in one transaction. Otherwise the store begins again.

To read 15 million points takes some seconds, to replace them some ten milliseconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from apiserver.events.model import EventType, Owner, selection_of
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.columns.whole import WholePoints
from apiserver.stores.events.embedded.deletion import delete_points
from apiserver.stores.events.embedded.names import Registrar
from apiserver.stores.events.embedded.scalar_merge import merge_whole
from apiserver.stores.events.embedded.series import merged_series


def replace(
    conn: sqlite3.Connection,
    owner: Owner,
    some: Sequence[WholePoints],
    registrar: Registrar,
    worker: Callable[[str], int],
) -> list[int]:
    """Delete all merged points of these series, and write these; returns the ids of the series.

    `worker` gives numbers to names of workers.
    """
    wanted = SeriesQuery(owner, EventType.SCALAR, selection_of(one.series for one in some))
    delete_points(conn, list(merged_series(conn, wanted).values()))
    return merge_whole(conn, owner, some, registrar, worker)
