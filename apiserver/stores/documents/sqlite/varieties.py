"""Finds documents that together have all names below a top-level field, such as the names of tasks' parameters."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.stores.documents.dialect.filters import parse_filter, paths_of
from apiserver.stores.documents.dialect.paths import parse, project, shape_of
from apiserver.stores.documents.query import Document, Filter
from apiserver.stores.documents.sqlite.remembered import Remembered
from apiserver.stores.documents.sqlite.side_tables import Names, Side
from apiserver.stores.documents.sqlite.table import Table, apart_column, decode, dumps
from apiserver.stores.documents.sqlite.translate import Statement

Shape = tuple[str, int]
"""The id of a document, and the number of its set of names."""


class Varieties:
    """For each set of names, two levels deep, one of the documents that meet a filter. It is asked once."""

    def __init__(self, table: Table, field: str, filter: Filter, remembered: Remembered) -> None:
        self.condition = parse_filter(filter)
        self._table = table
        self._name = parse(field)[0]
        self._question = repr((filter, "varieties", field))
        self._remembered = remembered

    @property
    def sides(self) -> set[Side]:
        """The side tables that help to find the sets of names."""
        return {Names(self._name)} if self._name in self._table.large else set()

    def read(self, statement: Statement) -> list[Document]:
        """The documents, with their ids and the field."""
        roots = {self._name, *(path[0] for path in paths_of(self.condition))}
        shapes = self._remembered.of(self._table.name, roots, self._question, lambda: self._shapes(statement))
        documents = self._documents(statement, [id for id, _ in shapes])
        if {shape_of(document.get(self._name)) for document in documents} >= {shape for _, shape in shapes}:
            return documents
        shapes = self._shapes(statement)  # a remembered document has changed since
        return self._documents(statement, [id for id, _ in shapes])

    def _shapes(self, statement: Statement) -> list[Shape]:
        rows = statement.shapes(self._name, statement.where(self.condition, of_all=True))
        return statement.found(f'SELECT id, shape FROM ({rows}) CROSS JOIN "{self._table.name}" ON row = first')

    def _documents(self, statement: Statement, ids: Sequence[str]) -> list[Document]:
        apart = [self._name] if self._name in self._table.apart else []
        columns = ", ".join(["doc", *map(apart_column, apart)])
        sql = f'SELECT {columns} FROM "{self._table.name}" WHERE id IN (SELECT value FROM json_each(?))'
        rows = statement.connection.execute(sql, (dumps(ids),))
        return [project(decode(doc, apart, texts), [(self._name,)]) for doc, *texts in rows]
