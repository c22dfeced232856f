"""Changes of documents within a transaction: rows, their columns, and their entries in side tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from apiserver.stores.documents.base import InvalidDocument
from apiserver.stores.documents.dialect.filters import Condition
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.sqlite.bounds import SqliteBounds
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.pages import Page, select
from apiserver.stores.documents.sqlite.small import SmallFields
from apiserver.stores.documents.sqlite.table import Table, apart_column, decode
from apiserver.stores.documents.sqlite.translate import Statement
from apiserver.stores.documents.sqlite.upkeep import Changes

_LARGEST = 17 * 2**20
"""The most characters of a field with a column of its own, and of all other fields of a document together. The largest
request fits. Each change writes them anew, so each change of an ever growing document would cost more than the last."""
_DERIVED = frozenset([apart_column("last_metrics")])
"""Columns that may be larger, because the server itself writes them. A task that was imported, or that reported while
`max_series_per_task` was higher, may have more series, and has to be kept up to date, too."""


class Transaction:
    """One transaction, which inserts, updates and deletes documents."""

    def __init__(
        self, connection: sqlite3.Connection, callbacks: Callbacks, small: SmallFields, bounds: SqliteBounds
    ) -> None:
        """`small` is told what is written."""
        self.connection = connection
        self._callbacks = callbacks
        self._small = small
        self._bounds = bounds
        self.changed: list[tuple[str, set[str] | None]] = []
        """Tables, and their top-level fields, that were changed. None: documents were added or deleted."""
        self.deleted: list[tuple[str, str]] = []
        """Tables and ids of documents that were deleted."""

    def insert(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows that the table has encoded."""
        self.connection.executemany(table.insertion(), rows)
        if changes := Changes(self.connection, table):
            (last,) = self.connection.execute(f'SELECT max("row") FROM "{table.name}"').fetchone()
            for row, values in enumerate(rows, last - len(rows) + 1):
                changes.put(row, table.as_stored({}, dict(zip(table.columns, values, strict=True))))
        self.changed.append((table.name, None))

    def update(self, table: Table, condition: Condition, change: ParsedUpdate, *, limit: int | None) -> int:
        """Update the matching documents; returns how many there are."""
        changes = Changes(self.connection, table, change.roots)
        apart = [name for name in table.apart if name in change.roots | changes.roots]
        rows = self._matching(table, condition, apart, limit)
        for row, doc, *texts in rows:
            self._change(table, row, decode(doc, apart, texts), change, changes)
        self.changed.append((table.name, change.roots))
        return len(rows)

    def find_and_update(
        self, table: Table, condition: Condition, change: ParsedUpdate, *, return_new: bool
    ) -> Document | None:
        """Update the first matching document; returns it as it was, or as it is now. None if there is none."""
        for row, doc, *texts in self._matching(table, condition, table.apart, 1):
            changes = Changes(self.connection, table, change.roots)
            new = self._change(table, row, decode(doc, table.apart, texts), change, changes)
            self.changed.append((table.name, change.roots))
            return new if return_new else decode(doc, table.apart, texts)
        return None

    def delete(self, table: Table, condition: Condition) -> int:
        """Delete the matching documents; returns how many there were."""
        with Statement(table, self._callbacks, self.connection, None, self._bounds) as statement:
            sql = f'DELETE FROM "{table.name}" WHERE {statement.where(condition)} RETURNING row, id'
            found = statement.found(sql)
        rows = [row for row, _ in found]
        Changes(self.connection, table).remove(rows)
        self.deleted += [(table.name, id) for _, id in found]
        self.changed.append((table.name, None))
        return len(rows)

    def _matching(
        self, table: Table, condition: Condition, apart: Sequence[str], limit: int | None
    ) -> list[tuple[Any, ...]]:
        """The row number, `doc` and the `apart` columns of the documents to update."""
        columns = ["row", "doc", *map(apart_column, apart)]
        with Statement(table, self._callbacks, self.connection, None, self._bounds) as statement:
            return statement.found(select(statement, condition, columns, Page(limit=limit)))

    def _change(self, table: Table, row: int, document: Document, change: ParsedUpdate, changes: Changes) -> Document:
        """Change a document and return it. Only columns and indexes of the top-level fields that change are written."""
        before = changes.values(document)
        new = change.apply(document)
        columns = table.encode_changed(new, change.roots)
        check_size(table, columns.items())
        self._small.wrote(table.name, new["id"], columns.values())
        assigned = ", ".join(f"{column} = ?" for column in columns)
        self.connection.execute(f'UPDATE "{table.name}" SET {assigned} WHERE row = ?', (*columns.values(), row))
        if changes:
            changes.put(row, table.as_stored(new, columns), before)
        return new


def check_size(table: Table, values: Iterable[tuple[str, Any]]) -> None:
    """InvalidDocument if a value is too large. `values` are pairs of column and value."""
    if any(isinstance(value, str) and len(value) > _LARGEST and column not in _DERIVED for column, value in values):
        raise InvalidDocument(f"{table.name}: a document is larger than the {_LARGEST >> 20} MB that are kept")
