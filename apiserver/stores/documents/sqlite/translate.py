"""A statement over a collection's table: SQL of filters and sorts, its parameters, and the rows that it finds.

SQLite itself tests fields that have a column of their own, short lists, and what side tables hold. For anything else,
SQLite calls Python with the JSON of a document. SQL of a filter is made in three steps: a plan (`plans.py`), looks into
side tables (`looks.py`), and SQL of the plan (`rendering.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from apiserver.stores.documents.dialect.filters import Condition
from apiserver.stores.documents.dialect.paths import Path, gathered, shape_of
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.sqlite.bounds import BOUNDS, SqliteBounds
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.looks import Looks
from apiserver.stores.documents.sqlite.planning import has_key
from apiserver.stores.documents.sqlite.plans import Planner, sides_of_values
from apiserver.stores.documents.sqlite.rendering import Rendering
from apiserver.stores.documents.sqlite.side_tables import Names, Side, sort_value
from apiserver.stores.documents.sqlite.table import Table, apart_column, column_of, decode_key, dumps, sorted_column


class Statement(Rendering):
    """A statement that is being put together: its SQL in parts, its parameters and its Python functions."""

    def __init__(
        self,
        table: Table,
        callbacks: Callbacks,
        connection: sqlite3.Connection,
        sides: Mapping[Side, str] | None = None,
        bounds: SqliteBounds = BOUNDS,
    ) -> None:
        """`sides`: the side tables that the statement may use, with their names."""
        super().__init__(table, callbacks)
        self.connection = connection
        self.sides = sides or {}
        self.bounds = bounds

    def found(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a query with the parameters of this statement finds."""
        return self.connection.execute(sql, self.parameters).fetchall()

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The same rows, one after another."""
        return self.connection.execute(sql, self.parameters)

    def another(self) -> Statement:
        """Another statement over the same table, of the same moment."""
        return Statement(self.table, self._callbacks, self.connection, self.sides, self.bounds)

    def where(self, condition: Condition, *, of_all: bool = False) -> str:
        """SQL that is true for exactly the documents that meet the condition. NULL stands for false.

        With `of_all`, it is made for finding all such documents; otherwise, for testing one document after another. The
        result is the same, only the speed differs.
        """
        plan = Planner(self.table, self.sides).plan(condition)
        if self.sides:
            plan = Looks(self.connection, self, self.bounds, of_all=of_all).noted(plan)
        return self.sql(plan)

    def order_by(self, terms: Iterable[Term]) -> str:
        """The terms of ORDER BY."""
        return ", ".join(f"{self.sort_key(term)} {'DESC' if term.descending else 'NULLS LAST'}" for term in terms)

    def ascending_key(self, terms: Sequence[Term]) -> str | None:
        """SQL of the field that an index sorts by, if the terms are this field and the id, both ascending."""
        match terms:
            case [Term(path, False, False, ()), Term(("id",), False)] if path in self.table.keys:
                return sorted_column(path)
        return None

    def sort_key(self, term: Term) -> str:
        """SQL of the value that SQLite sorts a document by; NULL if it has none."""
        if self.asks(term):
            asked = self.ask_of(lambda document: sort_value(term, document), term.path[0])
            sides = sides_of_values(self.sides, term.paths) if term.others else []
            return self.of_first_number(sides, "value", asked) if sides else asked
        return "id" if term.path == ("id",) else sorted_column(term.path)

    def asks(self, term: Term) -> bool:
        """Whether SQLite has to call Python for the value of a term, because no column has it."""
        return not has_key(self.table, term.path) or term.numeric or bool(term.others)

    def grouped(self, path: Path, longest: int | None = None) -> tuple[str, Callable[[Any], Any]]:
        """SQL of the value at a path, and the function that decodes what this SQL gives.

        A missing value is null. If the path leads through a list, the value is the list of all values there.
        `longest`: longer texts may be cut to one character more, as SQLite sorts all values in memory.
        """
        if has_key(self.table, path):
            return column_of(path), decode_key
        if len(path) == 1 and path[0] in self.table.apart:
            return apart_column(path[0]), lambda text: None if text is None else orjson.loads(text)

        def text(document: Document) -> str | None:
            found = gathered(document, path)
            if longest is not None and isinstance(found, str):
                found = found[: longest + 1]
            return None if found is None else dumps(found)

        return self.ask_of(text, path[0]), lambda text: None if text is None else orjson.loads(text)

    def shapes(self, name: str, where: str) -> str:
        """SQL of one row for each set of names that a field has, two levels deep, with the number of that set."""
        table = f'"{self.table.name}"'
        if (side := self.sides.get(Names(name))) is not None:
            met = f"+rowid IN (SELECT row FROM {table} WHERE {where})"
            return f'SELECT min(rowid) AS first, value AS shape FROM "{side}" WHERE {met} GROUP BY value'
        shape = self.ask_of(lambda document: shape_of(gathered(document, (name,))), name)
        return f"SELECT min(row) AS first, {shape} AS shape FROM {table} WHERE {where} GROUP BY 2"
