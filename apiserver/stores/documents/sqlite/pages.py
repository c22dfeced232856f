"""Makes the SQL of sorted pages. There are two ways to find a page, and this module chooses the faster one.

- Walk: go through the documents in the order of the page, and take those that meet the condition until the page is
  full. This is fast if many documents meet the condition.
- Search: find all documents that meet the condition, and sort them. This is fast if few do.

SQLite cannot know how many documents meet a condition. So the first 200 documents of the order are tested. For example,
a page of 50: if 100 of the 200 meet the condition, a walk of about 100 documents fills the page. If only one does, the
walk would take about 10,000, so all that meet the condition are found first.

A page that begins far down takes long either way. So for the first such page, the row numbers of all documents are
found in order, and the store remembers them: the next windows into the same list are read by these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from apiserver.stores.documents.dialect.filters import Condition, Field
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.query import Equal
from apiserver.stores.documents.sqlite.bounds import SqliteBounds
from apiserver.stores.documents.sqlite.planning import flattened
from apiserver.stores.documents.sqlite.side_tables import Sorted
from apiserver.stores.documents.sqlite.table import Table, dumps, index_name
from apiserver.stores.documents.sqlite.translate import Statement


@dataclass(frozen=True, slots=True)
class Page:
    """The part of the documents that is wanted, and its order."""

    terms: tuple[Term, ...] = ()
    skip: int = 0
    limit: int | None = None

    def is_far_down(self, furthest: int) -> bool:
        """Whether finding the page takes so long that the order of all documents is worth remembering.

        `furthest`: how many documents a walk may test.
        """
        return bool(self.terms) and self.limit is not None and self.skip > 0 and 3 * (self.skip + self.limit) > furthest

    @property
    def is_all(self) -> bool:
        """Whether all documents are wanted, in any order."""
        return not self.terms and self.limit is None


def select(statement: Statement, condition: Condition, columns: Sequence[str], page: Page) -> str:
    """SQL of some columns of the documents on a page."""
    table = f'"{statement.table.name}"'
    if not page.terms:
        where = statement.where(condition, of_all=page.is_all)
        return f"SELECT {', '.join(columns)} FROM {table} WHERE {where}{_limited(statement, page)}"
    # Only row numbers are sorted. Then the page is read; SQLite keeps the order of a query with a limit.
    return f"SELECT {', '.join(columns)} FROM ({_rows(statement, condition, page)}) CROSS JOIN {table} ON row = place"


def rows_in_order(statement: Statement, condition: Condition, terms: tuple[Term, ...]) -> str:
    """SQL of the row numbers of all documents that meet the condition, in order."""
    return _rows(statement, condition, Page(terms))


def select_rows(statement: Statement, condition: Condition, columns: Sequence[str], rows: Sequence[int]) -> str:
    """SQL of some columns of the documents in these rows, in this order, of those that still meet the condition."""
    table, numbers = f'"{statement.table.name}"', statement.bind(dumps(list(rows)))
    there = f"(SELECT key AS turn, value AS place FROM json_each({numbers})) CROSS JOIN {table} ON row = place"
    return f"SELECT {', '.join(columns)} FROM {there} WHERE {statement.where(condition)} ORDER BY turn"


def is_indexed(table: Table, terms: Sequence[Term]) -> bool:
    """Whether an index has the order of the terms."""
    match terms:
        case [Term(("id",))]:
            return True
        case [Term(path, down, False, ()), Term(("id",), last)]:
            return down == last and path in table.sorted
    return False


def _rows(statement: Statement, condition: Condition, page: Page) -> str:
    """SQL of the row numbers of a page, found the faster way."""
    if (side := statement.sides.get(Sorted(page.terms))) is not None:
        return _rows_beside(statement, condition, side, page)
    if any(map(statement.asks, page.terms)):
        return rows_sorted(statement, condition, page, found_first=True)
    company = _company(statement, condition, page.terms)
    if company is None or page.limit is None or not statement.table.apart:
        return rows_sorted(statement, condition, page)
    bounds = statement.bounds
    first = rows_sorted(statement, company, Page(page.terms, 0, bounds.first_look))
    looked, met = _looked(statement, condition, first)
    if looked == bounds.first_look and not _is_far(bounds, page, looked, met):
        # SQLite would rather find all documents of a project, which may be nearly all there are, and sort them.
        return rows_sorted(statement, condition, page, walked=(".".join(company.path), ".".join(page.terms[0].path)))
    far = met * bounds.sparse < looked and _is_far(bounds, page, looked, met)
    return rows_sorted(statement, condition, page, found_first=far)


def rows_sorted(
    statement: Statement, condition: Condition, page: Page, *, found_first: bool = False, walked: Sequence[str] = ()
) -> str:
    """SQL of the row numbers of a page. `found_first`: search instead of walking.

    `walked`: the fields of the index that SQLite has to walk. Without them, it chooses.
    """
    where, limited = statement.where(condition, of_all=found_first), _limited(statement, page)
    name = statement.table.name
    index = f' INDEXED BY "{index_name(name, walked)}"' if walked else ""
    rows = f'SELECT row AS place FROM "{name}"{index} WHERE {where}'
    if found_first:  # the limit keeps SQLite from merging the inner query with the outer one
        rows = f'SELECT place FROM ({rows} LIMIT -1) CROSS JOIN "{statement.table.name}" ON row = place'
    if found_first or (key := statement.ascending_key(page.terms)) is None:
        return f"{rows} ORDER BY {statement.order_by(page.terms)}{limited}"
    # The index has documents without a value first, but the page has them last.
    ahead = statement.bind(-1 if page.limit is None else page.skip + page.limit)
    there = f"{rows} AND {key} IS NOT NULL ORDER BY {key}, id LIMIT {ahead}"
    missing = f"{rows} AND {key} IS NULL ORDER BY id LIMIT {ahead}"
    return f"SELECT place FROM ({there}) UNION ALL SELECT place FROM ({missing}){limited}"


def _rows_beside(statement: Statement, condition: Condition, side: str, page: Page) -> str:
    """SQL of the row numbers of a page in the order of a side table."""
    table, order, bounds = f'"{statement.table.name}"', f"ORDER BY {Sorted(page.terms).order}", statement.bounds
    first = f'SELECT rowid AS place FROM "{side}" {order} LIMIT {bounds.first_look}'
    if not _is_far(bounds, page, *_looked(statement, condition, first)):
        met = f"EXISTS (SELECT 1 FROM {table} WHERE row = side.rowid AND {statement.where(condition)})"
        return f'SELECT rowid AS place FROM "{side}" AS side WHERE {met} {order}{_limited(statement, page)}'
    # SQLite sorts the few rows it finds. If many are skipped, "+rowid" makes it walk the side table's index instead.
    place = "+rowid" if page.skip > bounds.furthest else "rowid"
    met = f"{place} IN (SELECT row FROM {table} WHERE {statement.where(condition, of_all=True)})"
    return f'SELECT rowid AS place FROM "{side}" WHERE {met} {order}{_limited(statement, page)}'


def _looked(statement: Statement, condition: Condition, first: str) -> tuple[int, int]:
    """The number of rows that SQL of the `first` of an order gives, and how many of these meet the condition."""
    there = f'({first}) CROSS JOIN "{statement.table.name}" ON row = place'
    ((looked, met),) = statement.found(f"SELECT count(*), total({statement.where(condition)}) FROM {there}")
    return looked, met


def _is_far(bounds: SqliteBounds, page: Page, looked: int, met: int) -> bool:
    """Whether a walk to the end of a page seems to be long, judging by the rows that were tested first."""
    end = inf if page.limit is None else page.skip + page.limit
    return looked == bounds.first_look and looked * end > bounds.furthest * met


def _limited(statement: Statement, page: Page) -> str:
    return f" LIMIT {statement.bind(-1 if page.limit is None else page.limit)} OFFSET {statement.bind(page.skip)}"


def _company(statement: Statement, condition: Condition, terms: Sequence[Term]) -> Field | None:
    """The condition on the field that the index that sorts by the terms begins with, if there is one."""
    if not is_indexed(statement.table, terms):
        return None
    sorting = [index for index in statement.table.indexes if index.sorts and index.fields[1:] == terms[0].path]
    starts = {index.fields[:1] for index in sorting}
    fields = [item for item in flattened(condition) if isinstance(item, Field) and item.path in starts]
    texts = (field for field in fields if isinstance(field.test, Equal) and isinstance(field.test.value, str))
    return next(texts, None)
