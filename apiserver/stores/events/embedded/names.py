"""The ids of owners and series in the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, cast

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.codec.names import Name, matcher

#: The number of each event type on disk is its place here.
TYPES = tuple(EventType)
CODES = {type: code for code, type in enumerate(TYPES)}

SeriesKey = tuple[Owner, str, str]  # owner, metric, variant

#: Names that are asked for one by one; of an owner who has more of them wanted, all are read.
_MOST_ASKED = 1000
#: More series than these are not remembered between merges.
MOST_IDS = 65536


def owner_id(conn: sqlite3.Connection, owner: Owner) -> int | None:
    """The owner's id, or None when nothing of it was merged."""
    row = conn.execute(
        "SELECT id FROM owners WHERE company = ? AND name = ? AND is_model = ?",
        (owner.company, owner.id, int(owner.is_model)),
    ).fetchone()
    return None if row is None else int(row[0])


def series_ids(conn: sqlite3.Connection, series: SeriesQuery) -> dict[Name, int]:
    """The ids of the series that were merged, sorted by name."""
    return {(metric, variant): id for metric, variant, id in series_rows(conn, series, "SELECT id FROM series")}


def series_rows(conn: sqlite3.Connection, series: SeriesQuery, query: str) -> list[tuple[Any, ...]]:
    """Metric and variant of each series that was merged, and what `query` finds of it, sorted by name.

    `query` is `SELECT … FROM series`, perhaps with joins.
    """
    number, selection = owner_id(conn, series.owner), series.selection
    if number is None:
        return []
    query = query.replace("SELECT ", "SELECT metric, variant, ", 1) + " WHERE owner = ? AND type = ?"
    key = (number, CODES[series.type])
    if sum(len(names.variants) or 1 for names in selection) > _MOST_ASKED:
        matches = matcher(selection)
        merged = conn.execute(f"{query} ORDER BY metric, variant", key)
        return [row for row in merged if matches(row[0], row[1])]
    if not selection:
        return conn.execute(f"{query} ORDER BY metric, variant", key).fetchall()
    rows: set[tuple[Any, ...]] = set()
    for names in selection:
        if not names.variants:
            rows.update(conn.execute(f"{query} AND metric = ?", (*key, names.metric)))
        for variant in names.variants:
            rows.update(conn.execute(f"{query} AND metric = ? AND variant = ?", (*key, names.metric, variant)))
    return sorted(rows)


class Ids:
    """Ids of owners and series that were looked up, so that few are looked up again.

    They are right as long as transactions commit and delete nothing; after one that does not, forget them.
    """

    def __init__(self) -> None:
        self.owners: dict[Owner, int] = {}
        self.series: dict[EventType, dict[SeriesKey, int]] = {type: {} for type in EventType}

    def forget(self) -> None:
        """Know nothing any more."""
        self.owners.clear()
        for ids in self.series.values():
            ids.clear()

    def forget_if_many(self) -> None:
        """Stay small."""
        if len(self.owners) > MOST_IDS or sum(map(len, self.series.values())) > MOST_IDS:
            self.forget()


class Registrar:
    """Gives ids to new owners and series; part of one write transaction."""

    def __init__(self, conn: sqlite3.Connection, ids: Ids) -> None:
        self._conn = conn
        self._next_series = state(conn, "next_series")
        self._ids = ids

    def owner(self, owner: Owner) -> int:
        """The owner's id, given now if it has none."""
        id = self._ids.owners.get(owner)
        if id is None:
            id = owner_id(self._conn, owner)
            if id is None:
                row = (owner.company, owner.id, int(owner.is_model))
                cursor = self._conn.execute("INSERT INTO owners (company, name, is_model) VALUES (?, ?, ?)", row)
                id = int(cursor.lastrowid or 0)
            self._ids.owners[owner] = id
        return id

    def series(self, type: EventType, keys: Sequence[SeriesKey]) -> list[int]:
        """The id of each series, given now if it has none."""
        ids_by_key = self._ids.series[type]
        ids = list(map(ids_by_key.get, keys))
        if None in ids:
            for n, key in enumerate(keys):
                if ids[n] is None:
                    ids[n] = ids_by_key[key] = self._find_series(type, key)
        return cast(list[int], ids)

    def _find_series(self, type: EventType, series: SeriesKey) -> int:
        owner, *name = series
        key = (self.owner(owner), CODES[type], *name)
        row = self._conn.execute(
            "SELECT id FROM series WHERE owner = ? AND type = ? AND metric = ? AND variant = ?", key
        ).fetchone()
        if row is not None:
            return int(row[0])
        id = self._next_series
        self._next_series += 1
        row = (*key, id)
        self._conn.execute("INSERT INTO series (owner, type, metric, variant, id) VALUES (?, ?, ?, ?, ?)", row)
        return id

    def finish(self) -> None:
        """Write down which ids were given; the last thing before the commit."""
        set_state(self._conn, "next_series", self._next_series)
        self._ids.forget_if_many()


def state(conn: sqlite3.Connection, name: str) -> int:
    """One of the database's counters; sqlite3.DatabaseError if it is missing, which only damage explains."""
    row = conn.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise sqlite3.DatabaseError(f"the table state has no row {name}")
    return int(row[0])


def set_state(conn: sqlite3.Connection, name: str, value: int) -> None:
    """Change one of the database's counters."""
    conn.execute("UPDATE state SET value = ? WHERE name = ?", (value, name))
