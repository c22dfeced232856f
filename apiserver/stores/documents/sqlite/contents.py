"""What documents have at paths inside the fields kept apart, remembered by row: which rows meet a condition on a path.

Lists are filtered by parameters, metrics, queues and tags, and to look for one in all of a company's tasks means to
parse hundreds of megabytes of JSON. So when a good part of a table is searched, what is at that path stays in memory:
each different value once, and four bytes a row. A condition is then asked of the different values only. Rows that
changed are read again before the next search, so what is remembered is never older than what was acknowledged.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from apiserver.stores.documents.dialect.filters import All, Compare, Condition, Field, Not, Test
from apiserver.stores.documents.dialect.paths import Path, reach
from apiserver.stores.documents.dialect.values import MISSING
from apiserver.stores.documents.sqlite.table import Table, dumps
from apiserver.stores.documents.sqlite.unread import Unread

_MOST = 8
"""Paths of which contents are remembered."""
MOST_ROWS = 500_000
"""Of a table whose contents are remembered."""
_LARGEST = 16 * 2**20
"""Characters of different values, at one path and at all that are kept beside it."""

Execute = Callable[[str, tuple[Any, ...]], Iterable[tuple[Any, ...]]]
_NO_ROW = -1


class Content:
    """What is at one path of a table's documents."""

    def __init__(self, table: Table, path: Path) -> None:
        self.unread = Unread(path[:1])
        self._table = table
        self._column, self._below = table.source(path)
        self._found: list[list[Any]] = []
        """The different things there are: each as all values that the path reaches."""
        self._numbers = np.zeros(0)
        """Those that are one number, which a float is exactly; NaN for others."""
        self._places: dict[str, int] = {}
        """Their places, by what they look like."""
        self.size = 0
        """Characters of them."""
        self.too_large = False
        self._of: NDArray[np.int32] = np.zeros(0, np.int32)
        """By row, the place of what is there. Never changed, but replaced."""

    def rows(self, condition: Condition, execute: Execute) -> NDArray[np.bool_] | None:
        """By row, whether a condition on the path is met; None when there is too much to be remembered."""
        with self.unread.taken() as rows:
            if not self.too_large:
                most_are_gone = len(self._found) > 2 * len(self._of)
                self._read(None if most_are_gone else rows, execute)
            if self.size > _LARGEST:
                self._forget()
                self.too_large = True
            if self.too_large:
                self.unread.start_anew()
                return None
            of, found, numbers = self._of, [*self._found, []], np.append(self._numbers, np.nan)
        met = _met(condition, found, numbers)
        met[_NO_ROW] = False
        return met[of]

    def _forget(self) -> None:
        self._found, self._places, self.size, self._numbers = [], {}, 0, np.zeros(0)

    def _read(self, rows: Collection[int] | None, execute: Execute) -> None:
        if rows is None:
            self._forget()
            self._of = self._with(np.zeros(0, np.int32), execute(self._sql("1"), ()))
        elif rows:
            of = self._of.copy()
            of[[row for row in rows if row < len(of)]] = _NO_ROW
            there = execute(self._sql("row IN (SELECT value FROM json_each(?))"), (dumps(list(rows)),))
            self._of = self._with(of, there)
        fresh = self._found[len(self._numbers) :]
        self._numbers = np.concatenate([self._numbers, np.fromiter(map(_number, fresh), float)])

    def _sql(self, where: str) -> str:
        return f'SELECT row, {self._column} FROM "{self._table.name}" WHERE {where}'

    def _with(self, of: NDArray[np.int32], found: Iterable[tuple[Any, ...]]) -> NDArray[np.int32]:
        places: dict[int, int] = {}
        for row, text in found:
            places[row] = self._place(text)
            if self.size > _LARGEST:
                break
        more = max(places, default=-1) + 1 - len(of)
        if more > 0:
            of = np.concatenate([of, np.full(more, _NO_ROW, np.int32)])
        of[list(places)] = list(places.values())
        return of

    def _place(self, text: str | None) -> int:
        """The place of what is in a column's JSON."""
        found = [MISSING] if text is None else list(reach(orjson.loads(text), self._below))
        key = repr(found)
        place = self._places.setdefault(key, len(self._found))
        if place == len(self._found):
            self._found.append(found)
            self.size += len(key)
        return place


def _met(condition: Condition, found: Sequence[list[Any]], numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether documents meet a condition on the one path at which they have these values."""
    if isinstance(condition, Field):
        return _accepted(condition.test, found, numbers)
    if isinstance(condition, Not):
        return ~_met(condition.condition, found, numbers)
    inner = np.array([_met(item, found, numbers) for item in condition.conditions], bool).reshape(-1, len(found))
    return np.asarray(inner.all(0) if isinstance(condition, All) else inner.any(0))


def _accepted(test: Test, found: Sequence[list[Any]], numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a test accepts one of these values. Numbers are compared many at a time."""
    accepted, asked = np.zeros(len(found), bool), np.arange(len(found))
    if isinstance(test, Compare) and not np.isnan(number := _number([test.operand])):
        accepted, asked = _COMPARISONS[test.op](numbers, number), np.flatnonzero(np.isnan(numbers))
    for place in asked.tolist():
        accepted[place] = any(map(test.accepts, found[place]))
    return accepted


_COMPARISONS: Mapping[str, Callable[..., NDArray[np.bool_]]] = {
    "$eq": np.equal,
    "$gt": np.greater,
    "$gte": np.greater_equal,
    "$lt": np.less,
    "$lte": np.less_equal,
}


def _number(values: list[Any]) -> float:
    """A single number as a float, NaN when there is none or it would be another."""
    match values:
        case [bool()]:
            return np.nan
        case [float() | int() as number] if isinstance(number, float) or abs(number) < 2**53:
            return float(number)
    return np.nan


class Contents:
    """What is remembered of all tables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, Path], Content] = OrderedDict()

    def of(self, table: Table, path: Path, worth: Callable[[], bool]) -> Content | None:
        """What is at a path; None when it is not remembered, and not worth it."""
        key = (table.name, path)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        if not worth():
            return None
        with self._lock:
            content = self._kept.setdefault(key, Content(table, path))  # a new one has no size yet
            while len(self._kept) > _MOST or sum(kept.size for kept in self._kept.values()) > _LARGEST:
                self._kept.popitem(last=False)
            return content

    def forget(self, table: str, rows: Collection[int], roots: Collection[str] | None = None) -> None:
        """Rows of a table came, went, or have changed in these top-level fields (None: in any)."""
        with self._lock:
            kept = [content for (name, _), content in self._kept.items() if name == table]
        for content in kept:
            content.unread.add(rows, roots)
