"""The SQL of sorted pages, and whether a page is found by walking in its order or by looking for all that matches.

SQLite cannot know how many documents meet a condition, nor where they are. So the first documents of the order are
asked: if some of them are wanted, a page is soon full. If hardly any is, all that are wanted are found first, for which
an index alone is often enough, and only these are sorted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from apiserver.stores.documents.dialect.filters import All, Compare, Condition, Field
from apiserver.stores.documents.dialect.sorts import Term
from apiserver.stores.documents.sqlite.translate import Statement

A_LOOK = 200
"""Documents that are looked at first."""
FURTHEST = 3000
"""Documents that may be looked at for one page: to find all that are wanted takes less time than to look further."""
_WORTH = 8
"""One row of so many is to be wanted: it takes the time to read a field of all documents."""
_SPARSE = 20
"""One of so many documents is wanted, or fewer: of these it does not take long to sort all."""


def select(
    statement: Statement,
    where: str,
    columns: Sequence[str],
    terms: Sequence[Term],
    skip: int,
    limit: int | None,
    *,
    found_first: bool = False,
) -> str:
    """SQL of some columns of a page. `found_first`: find all that is wanted before any of it is sorted."""
    table = f'"{statement.table.name}"'
    page = f" LIMIT {statement.bind(-1 if limit is None else limit)} OFFSET {statement.bind(skip)}"
    if not terms:
        return f"SELECT {', '.join(columns)} FROM {table} WHERE {where}{page}"
    # The rows' numbers are sorted, and only the page is read. SQLite keeps the order of what has a limit.
    rows = f"SELECT row AS place FROM {table} WHERE {where}"
    if found_first:  # a query with a limit is not made one with that around it
        rows = f"SELECT place FROM ({rows} LIMIT -1) CROSS JOIN {table} ON row = place"
    if found_first or (key := statement.ascending_key(terms)) is None:
        rows += f" ORDER BY {statement.order_by(terms)}{page}"
    else:  # an index has documents without a value first
        ahead = statement.bind(-1 if limit is None else skip + limit)
        there = f"{rows} AND {key} IS NOT NULL ORDER BY {key}, id LIMIT {ahead}"
        missing = f"{rows} AND {key} IS NULL ORDER BY id LIMIT {ahead}"
        rows = f"SELECT place FROM ({there}) UNION ALL SELECT place FROM ({missing}){page}"
    return f"SELECT {', '.join(columns)} FROM ({rows}) CROSS JOIN {table} ON row = place"


def finds_first(
    connection: sqlite3.Connection,
    statement: Statement,
    condition: Condition,
    where: str,
    terms: Sequence[Term],
    skip: int,
    limit: int | None,
) -> bool:
    """Whether to find all that is wanted before any of it is sorted."""
    if any(map(statement.remembers, terms)):  # no index has what is sorted by
        return True
    if limit is None or not statement.table.apart or (company := _company(statement, condition, terms)) is None:
        return False
    table = f'"{statement.table.name}"'
    first = select(statement, statement.where(company), ["row AS first"], terms, 0, A_LOOK)
    sql = f"SELECT count(*), total({where}) FROM ({first}) CROSS JOIN {table} ON row = first"
    looked, found = connection.execute(sql, statement.parameters).fetchone()
    return looked == A_LOOK and found * _SPARSE < looked and is_far(looked, int(found), skip + limit)


def is_worth(connection: sqlite3.Connection, statement: Statement, where: str, most: int) -> bool:
    """Whether a good part of all rows is wanted, and these are not more than `most`, to remember something of all."""

    def count(rows: str) -> int:
        sql = f'SELECT count(*) FROM (SELECT 1 FROM "{statement.table.name}" {rows})'
        return int(connection.execute(sql, statement.parameters).fetchone()[0])

    most = min(_WORTH * count(f"WHERE {where}"), most)
    return count(f"LIMIT {most + 1}") <= most


def is_far(looked: int, found: int, wanted: int) -> bool:
    """Whether so many documents seem to be wide apart, when so many of those looked at were found."""
    return looked * wanted > FURTHEST * found


def is_indexed(statement: Statement, terms: Sequence[Term]) -> bool:
    """Whether an index has the order of the terms."""
    match terms:
        case [Term(("id",))]:
            return True
        case [Term(path, down, False), Term(("id",), last)]:
            return down == last and statement.table.sorts_by(path)
    return False


def _company(statement: Statement, condition: Condition, terms: Sequence[Term]) -> Field | None:
    """The condition on the field that the index that sorts by the terms begins with, if there is one."""
    if not is_indexed(statement, terms):
        return None
    starts = {index.fields[0] for index in statement.table.indexes if index.sorts and index.fields[1:] == terms[0].path}
    return next((field for field in _equal(condition) if field.path[0] in starts), None)


def _equal(condition: Condition) -> list[Field]:
    """What the condition demands of single fields."""
    if isinstance(condition, All):
        return [field for inner in condition.conditions for field in _equal(inner)]
    is_equal = isinstance(condition, Field) and isinstance(condition.test, Compare) and condition.test.op == "$eq"
    return [condition] if isinstance(condition, Field) and is_equal and len(condition.path) == 1 else []
