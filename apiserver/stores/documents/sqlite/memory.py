"""All that is remembered of a store's tables, and the statements that ask for it; forgotten as documents change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apiserver.stores.documents.base import Document
from apiserver.stores.documents.dialect.filters import Condition, names_one
from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.sqlite.answers import Answers
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.contents import MOST_ROWS, Contents
from apiserver.stores.documents.sqlite.derived import Derived
from apiserver.stores.documents.sqlite.orders import Orders
from apiserver.stores.documents.sqlite.pages import finds_first, is_worth, select
from apiserver.stores.documents.sqlite.reading import Documents
from apiserver.stores.documents.sqlite.table import Table
from apiserver.stores.documents.sqlite.texts import Texts
from apiserver.stores.documents.sqlite.translate import Statement


class _Changed(Exception):
    """A row does not meet the condition any more."""


class Memory:
    """What is remembered of all tables. What a call changed is to be forgotten before it returns."""

    def __init__(self, connections: Connections) -> None:
        self.answers = Answers()
        self._connections = connections
        self._orders = Orders()
        self._derived = Derived()
        self._contents = Contents()
        self._texts = Texts()

    def forget(self, table: str, rows: Collection[int], roots: Collection[str] | None) -> None:
        """Rows of a table came, went, or have changed in these top-level fields (None: in any)."""
        self._derived.forget(table, rows, roots)  # before the orders, which are made of it
        self._orders.forget(table, rows, roots)
        self._contents.forget(table, rows, roots)
        self._texts.forget(table, rows, roots)
        self.answers.changed(table, roots)

    def statement(self, table: Table, condition: Condition) -> Statement:
        """One that reads what was committed, for what meets a condition."""
        if not table.apart or names_one(condition):  # there is little to find out
            return self.plain_statement(table)
        search = partial(self._texts.search, table, execute=self._rows)
        return Statement(table, self._connections.callbacks, self._derived, search, self._met)

    def plain_statement(self, table: Table) -> Statement:
        """One that finds what meets a condition by itself, as it is at one moment."""
        return Statement(table, self._connections.callbacks, self._derived)

    def page(
        self,
        table: Table,
        condition: Condition,
        columns: Sequence[str],
        terms: Sequence[Term],
        skip: int,
        limit: int | None,
        made: Documents,
    ) -> list[Document]:
        """The documents `made` of some columns of a page, each row of which meets the condition as it is read."""
        with self.statement(table, condition) as statement, self._connections.read() as connection:
            where, still = statement.where(condition), statement.still(condition)
            page = self._orders.page(connection, statement, where, still, columns, terms, skip, limit, made)
            if page is not None:
                return page
            first = finds_first(connection, statement, condition, where, terms, skip, limit)
            sql = select(statement, where, [still, *columns], terms, skip, limit, found_first=first)
            with suppress(_Changed):
                return made.of(_unchanged(connection.execute(sql, statement.parameters)))
        # What a row was found by has changed since it was remembered.
        with self.plain_statement(table) as statement, self._connections.read() as connection:
            sql = select(statement, statement.where(condition), columns, terms, skip, limit)
            return made.of(connection.execute(sql, statement.parameters))

    def _met(self, statement: Statement, condition: Condition, path: Path, others: str) -> NDArray[np.bool_] | None:
        def worth() -> bool:
            with self._connections.read() as connection:
                return is_worth(connection, statement, others, MOST_ROWS)

        content = self._contents.of(statement.table, path, worth)
        return None if content is None else content.rows(condition, self._rows)

    def _rows(self, sql: str, parameters: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """What a query finds, row by row."""
        with self._connections.read() as connection:
            yield from connection.execute(sql, parameters)


def _unchanged(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows behind their first column, which says whether they still meet the condition."""
    for is_still, *row in rows:
        if not is_still:
            raise _Changed
        yield tuple(row)
