"""Rows in the order of a remembered value, so that a page of very many documents is read without sorting them all.

No index has the metrics, parameters and comments that lists are sorted by. When a good part of a table is sorted by one
of them, the numbers of all its rows are kept in that order: some sixty bytes a row, besides the ids. Rows that changed
get their places anew before the next page, so an order is never older than what was acknowledged.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from bisect import bisect
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.sqlite.pages import A_LOOK, is_far
from apiserver.stores.documents.sqlite.table import dumps
from apiserver.stores.documents.sqlite.translate import Statement

_MOST_ROWS = 1_000_000
"""Of all orders together."""
_WORTH = 8
"""An order is made when one row of so many is wanted: it takes the time to read that field of all documents."""
_FEW = 1000
"""Rows whose places are looked for one by one; of more that changed, all are sorted anew."""
Rows = NDArray[np.int64]
#: Gives numbers, ids and values of some rows (None: of all). A value is None where there is none.
Read = Callable[[Collection[int] | None], Iterable[tuple[int, str, Any]]]

_NONE: Rows = np.zeros(0, np.int64)
_CLASSES = {int: 0, float: 0, str: 1, bytes: 2}


class Order:
    """The rows of a table by the value that a term sorts by, and by their ids."""

    def __init__(self, descending: bool) -> None:
        self._descending = descending
        self._ids: list[str] = []
        self._values: list[Any] = []
        """By row, as the ids."""
        self._there = self._without = self._rows = _NONE
        """Those with a value, the least first; those without; all, the first first. Never changed, but replaced."""
        self._reading = threading.Lock()
        self._noting = threading.Lock()
        self._changed: set[int] | None = None
        """The rows to read again; None: all."""

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def forget(self, rows: Collection[int]) -> None:
        """These rows came, went or have another value."""
        with self._noting:
            if self._changed is not None:
                self._changed.update(rows)

    def rows(self, read: Read) -> Rows:
        """The rows of all that was acknowledged, and maybe of what changes meanwhile, that of the first document first.

        Nobody is to change them.
        """
        with self._reading:
            with self._noting:
                changed, self._changed = self._changed, set()
            if changed is not None and not changed:
                return self._rows
            try:
                if changed is None or len(changed) > _FEW:
                    self._sort(list(read(None)))
                else:
                    self._move(list(changed), read(changed))
            except BaseException:
                self._changed = None
                raise
            first = slice(None, None, -1 if self._descending else 1)
            self._rows = np.concatenate([self._there[first], self._without[first]])
            return self._rows

    def _sort(self, found: Sequence[tuple[int, str, Any]]) -> None:
        self._ids, self._values = [], []
        self._grow(max((row for row, _, _ in found), default=0))
        for row, id, value in found:
            self._ids[row], self._values[row] = sys.intern(id), value
        there = sorted((row for row, _, value in found if value is not None), key=self._place)
        without = sorted((row for row, _, value in found if value is None), key=self._place)
        self._there, self._without = np.array(there, np.int64), np.array(without, np.int64)

    def _move(self, changed: Sequence[int], found: Iterable[tuple[int, str, Any]]) -> None:
        self._grow(max(changed))
        stays = np.ones(len(self._ids), bool)
        stays[changed] = False
        self._there, self._without = self._there[stays[self._there]], self._without[stays[self._without]]
        for row, id, value in found:
            self._ids[row], self._values[row] = sys.intern(id), value
            if value is None:
                self._without = self._with(self._without, row)
            else:
                self._there = self._with(self._there, row)

    def _with(self, rows: Rows, row: int) -> Rows:
        return np.insert(rows, bisect(rows, self._place(row), key=self._place), row)

    def _grow(self, last: int) -> None:
        more = last + 1 - len(self._ids)
        self._ids += [""] * more
        self._values += [None] * more

    def _place(self, row: int) -> tuple[Any, ...]:
        """What SQLite sorts by: numbers, then texts, then blobs."""
        value, id = self._values[row], self._ids[row]
        return (id,) if value is None else (_CLASSES[type(value)], value, id)


class Orders:
    """What is kept of all tables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: OrderedDict[tuple[str, Term], Order] = OrderedDict()

    def forget(self, table: str, rows: Collection[int], roots: Collection[str] | None = None) -> None:
        """Rows of a table came, went, or have changed in these top-level fields (None: in any)."""
        with self._lock:
            orders = [
                order
                for (name, term), order in self._orders.items()
                if name == table and (roots is None or term.path[0] in roots)
            ]
        for order in orders:
            order.forget(rows)

    def page(
        self,
        connection: sqlite3.Connection,
        statement: Statement,
        where: str,
        columns: Sequence[str],
        terms: Sequence[Term],
        skip: int,
        limit: int | None,
    ) -> list[tuple[Any, ...]] | None:
        """A page of some columns; None when no order is kept."""
        if limit is None or (order := self._kept(connection, statement, where, terms)) is None:
            return None
        table, key = f'"{statement.table.name}"', statement.sort_key(terms[0])

        def read(rows: Collection[int] | None) -> Iterable[tuple[int, str, Any]]:
            some = "" if rows is None else f" WHERE row IN (SELECT value FROM json_each({_listed(statement, rows)}))"
            return connection.execute(f"SELECT row, id, {key} FROM {table}{some}", statement.parameters)

        def met(rows: Rows | None) -> Rows:
            looked = table
            if rows is not None:
                places = _listed(statement, rows.tolist())
                looked = f"(SELECT value AS place FROM json_each({places})) CROSS JOIN {table} ON row = place"
            found = connection.execute(f"SELECT row FROM {looked} WHERE {where}", statement.parameters)
            return np.fromiter((row for (row,) in found), np.int64)

        page = _wanted(order.rows(read), met, skip, limit).tolist()
        places = f"SELECT key AS number, value AS place FROM json_each({_listed(statement, page)})"
        sql = f"SELECT {', '.join(columns)} FROM ({places}) CROSS JOIN {table} ON row = place ORDER BY number"
        found = connection.execute(sql, statement.parameters).fetchall()
        return found if len(found) == len(page) else None  # one was deleted meanwhile

    def _kept(
        self, connection: sqlite3.Connection, statement: Statement, where: str, terms: Sequence[Term]
    ) -> Order | None:
        """The order by one remembered value and the id; a new one when a good part of all rows are wanted."""
        match terms:
            case [Term(descending=down) as term, Term(("id",), last)] if down == last and statement.remembers(term):
                pass
            case _:
                return None
        key = (statement.table.name, term)
        with self._lock:
            if key in self._orders:
                self._orders.move_to_end(key)
                return self._orders[key]

        def count(rows: str) -> int:
            sql = f'SELECT count(*) FROM (SELECT 1 FROM "{statement.table.name}" {rows})'
            return int(connection.execute(sql, statement.parameters).fetchone()[0])

        most = min(_WORTH * count(f"WHERE {where}"), _MOST_ROWS)
        if (rows := count(f"LIMIT {most + 1}")) > most:
            return None
        with self._lock:
            while self._orders and rows + sum(map(len, self._orders.values())) > _MOST_ROWS:
                self._orders.popitem(last=False)
            return self._orders.setdefault(key, Order(term.descending))


def _wanted(rows: Rows, met: Callable[[Rows | None], Rows], skip: int, limit: int) -> Rows:
    """A page of the rows that meet a condition; `met` gives those of some rows (None: of all), in any order."""
    end, looked, found = skip + limit, 0, _NONE
    while len(found) < end and looked < len(rows):
        some = rows[looked : max(2 * looked, A_LOOK)]
        found = np.concatenate([found, some[np.isin(some, met(some))]])
        looked += len(some)
        if len(found) < end and is_far(looked, len(found), end):
            found = _in_order(rows, met(None))
            break
    return found[skip:end]


def _in_order(rows: Rows, some: Rows) -> Rows:
    """Some of the rows in the order of them all."""
    wanted = np.zeros(int(rows.max()) + 1, bool)
    wanted[some[some < len(wanted)]] = True
    return rows[wanted[rows]]


def _listed(statement: Statement, rows: Collection[int]) -> str:
    return statement.bind(dumps(list(rows)))
