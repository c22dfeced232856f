"""Makes side tables, fills them, and changes them together with their documents.

The table "side:tables" in the file lists all side tables. A read sees the list of its own moment, so it uses only side
tables that fit the documents it reads. A change of documents writes their rows in side tables in the same transaction.

A side table is made the first time that it would help. Filling it takes a second for 100,000 documents. So it is filled
in many small transactions, and others may write in between. They also write to the side table that is being filled, and
the filling leaves alone the rows that it finds there. For example, a side table of four tasks:

    filling reads tasks 1 and 2
    someone changes task 2          and writes its row
    filling writes rows             of 1 only, as 2 is there
    filling reads and writes        3 and 4
    filling sets state = 'ready'    from now on, queries use the side table

Side tables stay over restarts. A collection has at most as many as the bounds say: a new one replaces the
least recently used.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import count, repeat
from typing import Any

from apiserver.stores.documents.query import Document
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.side_tables import Side, parse_side, roots_of, text_of
from apiserver.stores.documents.sqlite.table import Table, apart_column, decode, dumps

_parse = lru_cache(maxsize=256)(parse_side)


class Upkeep:
    """Makes side tables and keeps them up to date. One thread at a time may call `fill`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._bounds = connections.bounds
        self._uses = count(1)
        self._used: dict[str, int] = {}

    def known(self, connection: sqlite3.Connection, table: Table) -> dict[Side, str | None]:
        """The names of the side tables that are filled; None for those that would be too large."""
        sql = "SELECT holds, number, state FROM \"side:tables\" WHERE collection = ? AND state <> 'filling'"
        found = connection.execute(sql, (table.name,))
        return {_parse(holds): _name(number) if state == "ready" else None for holds, number, state in found}

    def used(self, names: Iterable[str]) -> None:
        """Note that a statement uses these side tables."""
        self._used.update(dict.fromkeys(names, next(self._uses)))

    def fill(self, table: Table, side: Side) -> None:
        """Make a side table unless there is one. DocumentStoreError if that is not possible, as on a full disk."""
        number = self._begun(table, side)
        row, size = 0, 0
        while number and (found := self._read(table, side, row)):
            row = found[-1][0]
            size += sum(len(value) for values in found for value in values if isinstance(value, str))
            if size > self._bounds.side_characters:
                return self._end(number, "large")
            with self._connections.write(spare_reserve=True) as connection:
                # Since they were read, documents may have been changed (then their rows are there) or deleted.
                between = "BETWEEN :first AND :last"
                left = (
                    f'SELECT row FROM "{table.name}" WHERE row {between} '
                    f'EXCEPT SELECT rowid FROM "{_name(number)}" WHERE rowid {between}'
                )
                rows = {row for (row,) in connection.execute(left, {"first": found[0][0], "last": row})}
                connection.executemany(_put(_name(number), side), [values for values in found if values[0] in rows])
        if number:
            self._end(number, "ready")
            self._connections.checkpoint()

    def _begun(self, table: Table, side: Side) -> int:
        """The number of a new, empty side table; 0 if there is one already."""
        with self._connections.write(spare_reserve=True) as connection:
            sql = 'SELECT number, holds, state FROM "side:tables" WHERE collection = ?'
            there = {holds: (number, state) for number, holds, state in connection.execute(sql, (table.name,))}
            number, state = there.get(text_of(side), (0, "filling"))
            if state != "filling":
                return 0
            by_use = sorted((number for number, _ in there.values()), key=lambda one: self._used.get(_name(one), 0))
            for old in [number] if number else by_use[: max(0, len(there) + 1 - self._bounds.sides)]:
                connection.execute(f'DROP TABLE IF EXISTS "{_name(old)}"')
                connection.execute('DELETE FROM "side:tables" WHERE number = ?', (old,))
            new = "INSERT INTO \"side:tables\" (collection, holds, state) VALUES (?, ?, 'filling') RETURNING number"
            ((number,),) = connection.execute(new, (table.name, text_of(side))).fetchall()
            for definition in side.definition(_name(number)):
                connection.execute(definition)
            return int(number)

    def _read(self, table: Table, side: Side, after: int) -> list[tuple[Any, ...]]:
        """Number and values of the next rows."""
        roots = roots_of([side])
        apart = [name for name in table.apart if name in roots]
        doc = "doc" if roots.difference(apart, ["id"]) else "json_object('id', id)"
        columns = ", ".join(["row", *(f"CAST({column} AS BLOB)" for column in (doc, *map(apart_column, apart)))])
        sql = f'SELECT {columns} FROM "{table.name}" WHERE row > ? ORDER BY row LIMIT {self._bounds.documents_at_once}'
        rows: list[tuple[Any, ...]] = []
        size = 0
        with self._connections.read() as connection:
            for row, *texts in connection.execute(sql, (after,)):
                rows.append((row, *side.of(decode(texts[0], apart, texts[1:]))))
                size += sum(len(text) for text in texts if text is not None)
                if size >= self._bounds.bytes_at_once:
                    break
        return rows

    def _end(self, number: int, state: str) -> None:
        with self._connections.write(spare_reserve=True) as connection:
            connection.execute('UPDATE "side:tables" SET state = ? WHERE number = ?', (state, number))
            if state == "large":
                connection.execute(f'DROP TABLE "{_name(number)}"')


class Changes:
    """Writes to the side tables what a transaction changes in the documents of a table."""

    def __init__(self, connection: sqlite3.Connection, table: Table, roots: Collection[str] | None = None) -> None:
        """`roots`: the top-level fields that change; None if documents are added or deleted."""
        self._connection = connection
        found: Iterable[tuple[int, str]] = ()
        if table.apart:
            sql = "SELECT number, holds FROM \"side:tables\" WHERE collection = ? AND state <> 'large'"
            found = connection.execute(sql, (table.name,)).fetchall()
        sides = {_name(number): _parse(holds) for number, holds in found}
        self._sides: Mapping[str, Side] = {
            name: side for name, side in sides.items() if roots is None or not roots_of([side]).isdisjoint(roots)
        }

    def __bool__(self) -> bool:
        return bool(self._sides)

    @property
    def roots(self) -> set[str]:
        """The top-level fields that the side tables are made of."""
        return roots_of(self._sides.values())

    def values(self, document: Document) -> list[tuple[Any, ...]]:
        """The values of a document in each side table."""
        return [side.of(document) for side in self._sides.values()]

    def put(self, row: int, document: Document, before: Iterable[tuple[Any, ...] | None] = repeat(None)) -> None:
        """Write the values of a document that differ from those `before`."""
        for (name, side), new, old in zip(self._sides.items(), self.values(document), before, strict=False):
            if new != old:
                self._connection.execute(_put(name, side), (row, *new))

    def remove(self, rows: Collection[int]) -> None:
        """Remove the rows of documents that were deleted."""
        for name in self._sides:
            gone = f'DELETE FROM "{name}" WHERE rowid IN (SELECT value FROM json_each(?))'
            self._connection.execute(gone, (dumps(list(rows)),))


def _put(name: str, side: Side) -> str:
    columns = ", ".join(["rowid", *side.columns])
    return f'INSERT OR REPLACE INTO "{name}" ({columns}) VALUES ({", ".join("?" * (1 + len(side.columns)))})'


def _name(number: int) -> str:
    return f"side:{number}"
