"""Rows in orders that no index has, so that a page of very many documents is read without sorting them all.

Lists are sorted by metrics, parameters and comments, and by several fields at once. When a good part of a table is, the
numbers of all its rows are kept in that order: some fifty bytes a row and value, besides the ids. Rows that changed get
their places anew before the next page, so an order is never older than what was acknowledged.
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

from apiserver.stores.documents.base import Document
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.sqlite.pages import A_LOOK, is_far, is_indexed, is_worth
from apiserver.stores.documents.sqlite.reading import Documents
from apiserver.stores.documents.sqlite.table import dumps
from apiserver.stores.documents.sqlite.translate import Statement
from apiserver.stores.documents.sqlite.unread import Unread

_MOST_VALUES = 1_000_000
"""Of rows, in all orders together."""
_CHARACTERS = 100
"""Of a text, that count as a value more."""
_FEW = 300
"""Rows whose places are looked for one by one; when more have changed, all are sorted."""
Rows = NDArray[np.int64]
#: Gives of some rows (None: of all) the number, the id and a value for each term but the id, None where there is none.
Read = Callable[[Collection[int] | None], Iterable[tuple[Any, ...]]]

_NONE: Rows = np.zeros(0, np.int64)
_CLASSES = {int: 0, float: 0, str: 1, bytes: 2}
"""What SQLite sorts by first: numbers come before texts, and these before blobs."""


class Order:
    """The rows of a table in the order of some terms, the last of which is the id."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms[:-1]
        self._last = terms[-1]
        self._ids: list[str] = []
        """By row."""
        self._values: list[list[Any]] = [[] for _ in self._terms]
        """Of each term, by row."""
        self._rows = _NONE
        """The first first. Never changed, but replaced."""
        self._long = 0
        """How many values more the long texts count."""
        self.too_large = False
        self.unread = Unread(term.path[0] for term in terms)

    @property
    def size(self) -> int:
        """How many values are kept."""
        return len(self._ids) * len(self._terms) + self._long

    def rows(self, read: Read) -> Rows | None:
        """The rows of all that was acknowledged, and maybe of what changes meanwhile, that of the first document first.

        Nobody is to change them. None when there is too much to be kept.
        """
        with self.unread.taken() as rows:
            if self.too_large:
                self.unread.start_anew()
                return None
            try:
                if rows is None:
                    self._forget()
                    self._sort([self._keep(*row) for row in read(None)])
                elif rows:
                    self._move(list(rows), read(rows))
            except _TooLarge:
                self._forget()
                self.too_large = True
                self.unread.start_anew()
                return None
            return self._rows

    def _forget(self) -> None:
        self._rows, self._ids, self._values, self._long = _NONE, [], [[] for _ in self._terms], 0

    def _sort(self, rows: list[int]) -> None:
        rows.sort(key=self._ids.__getitem__, reverse=self._last.descending)
        for term, values in zip(reversed(self._terms), reversed(self._values), strict=True):
            there = [row for row in rows if values[row] is not None]
            there.sort(key=_keys(values, there), reverse=term.descending)
            rows = there + [row for row in rows if values[row] is None]
        self._rows = np.array(rows, np.int64)

    def _move(self, changed: Sequence[int], found: Iterable[tuple[Any, ...]]) -> None:
        stays = np.ones(max(len(self._ids), *changed) + 1, bool)
        stays[changed] = False
        self._rows = self._rows[stays[self._rows]]
        there = [self._keep(*row) for row in found]
        if len(there) > _FEW:
            return self._sort([*self._rows.tolist(), *there])
        for row in there:
            self._rows = np.insert(self._rows, bisect(self._rows, self._place(row), key=self._place), row)

    def _keep(self, row: int, id: str, *values: Any) -> int:
        more = row + 1 - len(self._ids)
        self._ids += [""] * more
        self._ids[row] = sys.intern(id)
        for kept, value in zip(self._values, values, strict=True):
            kept += [None] * more
            self._long += _more(value) - _more(kept[row])
            kept[row] = value
        if self.size > _MOST_VALUES:
            raise _TooLarge
        return row

    def _place(self, row: int) -> list[Any]:
        """What the row is sorted by: documents without a value come last in either direction."""
        place: list[Any] = []
        for term, values in zip(self._terms, self._values, strict=True):
            value = values[row]
            place.append(value is None)
            if value is not None:
                key = (_CLASSES[type(value)], value)
                place.append(_Descending(key) if term.descending else key)
        return [*place, _Descending(self._ids[row]) if self._last.descending else self._ids[row]]


class _TooLarge(Exception):
    """There is more than may be kept."""


def _more(value: Any) -> int:
    return len(value) // _CHARACTERS if isinstance(value, str | bytes) else 0


class _Descending:
    """A key that sorts the other way round."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.key == other.key

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.key < self.key)


def _keys(values: Sequence[Any], rows: Iterable[int]) -> Callable[[int], Any]:
    """The function that gives what rows sort by: the values alone, when all are of one class."""
    if len({_CLASSES[type(values[row])] for row in rows}) < 2:
        return values.__getitem__
    return lambda row: (_CLASSES[type(values[row])], values[row])


class Orders:
    """What is kept of all tables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: OrderedDict[tuple[str, tuple[Term, ...]], Order] = OrderedDict()

    def forget(self, table: str, rows: Collection[int], roots: Collection[str] | None = None) -> None:
        """Rows of a table came, went, or have changed in these top-level fields (None: in any)."""
        with self._lock:
            orders = [order for (name, _), order in self._orders.items() if name == table]
        for order in orders:
            order.unread.add(rows, roots)

    def page(
        self,
        connection: sqlite3.Connection,
        statement: Statement,
        where: str,
        still: str,
        columns: Sequence[str],
        terms: Sequence[Term],
        skip: int,
        limit: int | None,
        made: Documents,
    ) -> list[Document] | None:
        """A page of some columns; None when no order is kept, or some of the page has changed meanwhile.

        `still` is what `where` asks, of documents as they are now.
        """
        if limit is None or (order := self._kept(connection, statement, where, terms)) is None:
            return None
        table, keys = f'"{statement.table.name}"', [statement.sort_key(term) for term in terms[:-1]]

        def read(rows: Collection[int] | None) -> Iterable[tuple[Any, ...]]:
            some = "" if rows is None else f" WHERE row IN (SELECT value FROM json_each({_listed(statement, rows)}))"
            return connection.execute(f"SELECT row, id, {', '.join(keys)} FROM {table}{some}", statement.parameters)

        def met(rows: Rows | None) -> Rows:
            looked = table
            if rows is not None:
                places = _listed(statement, rows.tolist())
                looked = f"(SELECT value AS place FROM json_each({places})) CROSS JOIN {table} ON row = place"
            found = connection.execute(f"SELECT row FROM {looked} WHERE {where}", statement.parameters)
            return np.fromiter((row for (row,) in found), np.int64)

        if (in_order := order.rows(read)) is None:
            return None
        self._forget_oldest(order)
        page = _wanted(in_order, met, skip, limit).tolist()
        places = f"SELECT key AS number, value AS place FROM json_each({_listed(statement, page)})"
        found_again = f"({places}) CROSS JOIN {table} ON row = place WHERE {where} AND {still}"
        sql = f"SELECT {', '.join(columns)} FROM {found_again} ORDER BY number"
        found = made.of(connection.execute(sql, statement.parameters))
        return found if len(found) == len(page) else None  # one was deleted, or has another's row now

    def _kept(
        self, connection: sqlite3.Connection, statement: Statement, where: str, terms: Sequence[Term]
    ) -> Order | None:
        """The order of the terms; a new one when no index has it, and a good part of all rows are wanted."""
        if not statement.table.apart or len(terms) < 2 or is_indexed(statement, terms):
            return None
        key = (statement.table.name, tuple(terms))
        with self._lock:
            if key in self._orders:
                self._orders.move_to_end(key)
                return self._orders[key]

        if not is_worth(connection, statement, where, _MOST_VALUES // (len(terms) - 1)):
            return None
        with self._lock:
            return self._orders.setdefault(key, Order(terms))

    def _forget_oldest(self, made: Order) -> None:
        """Keep no more than may be kept, of which this order was made last."""
        with self._lock:
            while sum(order.size for order in self._orders.values()) > _MOST_VALUES:
                key, order = next(iter(self._orders.items()))
                if order is made:
                    break
                del self._orders[key]


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
