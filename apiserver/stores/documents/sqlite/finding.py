"""Finds the documents of a query: the rows of its page, and what is read of them."""

from __future__ import annotations

from array import array

from apiserver.stores.documents.dialect.filters import paths_of
from apiserver.stores.documents.dialect.queries import parse_query
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.query import Document, FindQuery
from apiserver.stores.documents.sqlite.pages import Page, is_indexed, rows_in_order, select, select_rows
from apiserver.stores.documents.sqlite.planning import sides_of_first
from apiserver.stores.documents.sqlite.reading import Documents
from apiserver.stores.documents.sqlite.remembered import Remembered
from apiserver.stores.documents.sqlite.side_tables import Side, Sorted
from apiserver.stores.documents.sqlite.table import Table
from apiserver.stores.documents.sqlite.translate import Statement


class Search:
    """A query of a table. It is asked once, though perhaps a second time, after side tables were made for it."""

    def __init__(self, table: Table, query: FindQuery, remembered: Remembered) -> None:
        parsed = parse_query(query, table.numeric)
        self.table = table
        self.condition = parsed.condition
        self.id = parsed.id
        self._page = Page(parsed.terms, parsed.skip, parsed.limit)
        self._question = (query.filter, parsed.terms)
        roots = None if parsed.fields is None else {path[0] for path in parsed.fields}
        self._apart = [name for name in table.apart if roots is None or name in roots]
        self._documents = Documents(self._apart, parsed.fields, parsed.counted)
        self._remembered = remembered

    @property
    def large(self) -> list[str]:
        """The fields that are read, and that may be large."""
        return [name for name in self._apart if name in self.table.large]

    @property
    def bytes_read(self) -> int:
        """Bytes of all rows that were read."""
        return self._documents.read

    @property
    def sides(self) -> set[Side]:
        """The side tables that help to sort."""
        terms = self._page.terms
        return set() if not terms or is_indexed(self.table, terms) else _sides_of_order(terms)

    def read(self, statement: Statement) -> list[Document]:
        """The documents of the page."""
        columns, page = self._documents.columns, self._page
        if page.is_far_down(statement.bounds.furthest) and self.table.apart:
            rows = self._rows_in_order(statement)[page.skip :][: page.limit]
            sql = select_rows(statement, self.condition, columns, rows)
        else:
            sql = select(statement, self.condition, columns, page)
        return self._documents.of(statement.rows(sql))

    def _rows_in_order(self, statement: Statement) -> array[int]:
        """The row numbers of all documents that meet the condition, in order, as found now or before."""
        terms = self._page.terms

        def ask() -> array[int]:
            with statement.another() as other:
                return array("q", (row for (row,) in other.found(rows_in_order(other, self.condition, terms))))

        paths = [*paths_of(self.condition), *(path for term in terms for path in term.paths)]
        return self._remembered.of(self.table.name, {path[0] for path in paths}, repr(self._question), ask)


def _sides_of_order(terms: tuple[Term, ...]) -> set[Side]:
    """The side tables that help to sort by some terms."""
    if not any(term.others for term in terms):
        return {Sorted(terms)}
    return set().union(*(sides_of_first(term.paths) for term in terms if term.others))
