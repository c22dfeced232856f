"""Which index SQLite takes: the one that leads to few documents, also while the collection is empty still."""

from __future__ import annotations

import sqlite3

import pytest

from apiserver.stores.documents.dialect.filters import parse_filter
from apiserver.stores.documents.dialect.sorts import parse_sort
from apiserver.stores.documents.indexes import APART, INDEXES, LISTS, NUMERIC
from apiserver.stores.documents.query import AllOf, Filter, In, Sort, Unequal
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.table import Table, create
from apiserver.stores.documents.sqlite.translate import Statement

OLDEST: Sort = [("created", 1), ("id", 1)]
NEWEST: Sort = [("last_update", -1), ("id", 1)]


@pytest.mark.parametrize(
    ("filter", "sort", "index"),
    [
        ({}, OLDEST, "tasks:company,created"),
        ({"public": Unequal(True)}, OLDEST, "tasks:company,created"),
        ({}, NEWEST, "tasks:company,last_update"),
        ({"status": "completed"}, NEWEST, "tasks:company,last_update"),
        ({"project": "p"}, NEWEST, "tasks:company,project"),
        ({"name": "n"}, OLDEST, "tasks:name"),
        ({"parent": "t"}, OLDEST, "tasks:parent"),
        ({"id": In(["a", "b"])}, OLDEST, "sqlite_autoindex_tasks_1"),
        ({"id": "a"}, (), "sqlite_autoindex_tasks_1"),
    ],
)
def test_a_company_is_no_place_to_start_from(filter: Filter, sort: Sort, index: str) -> None:
    table = Table.of("tasks", INDEXES)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create(connection, table)
    with Statement(table, Callbacks(), connection) as statement:
        sql = f"SELECT doc FROM tasks WHERE {statement.where(parse_filter(AllOf([{'company': 'c'}, filter])))}"
        if sort:
            sql += f" ORDER BY {statement.order_by(parse_sort(sort))} LIMIT 30"
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", statement.parameters)]
    connection.close()
    assert any(f"USING INDEX {index} " in f"{step} " for step in plan), plan


@pytest.mark.parametrize("field", ["type", "status", "user", "parent", "tags", "project"])
def test_whole_collections_are_grouped_by_an_index_alone(field: str) -> None:
    table = Table.of("tasks", INDEXES, APART["tasks"], NUMERIC["tasks"], LISTS["tasks"])
    connection = sqlite3.connect(":memory:", isolation_level=None)
    callbacks = Callbacks()
    connection.create_function("ask", 3, callbacks.ask)
    create(connection, table)
    live: Filter = {"company": "c", "system_tags": Unequal("archived")}
    with Statement(table, callbacks, connection) as statement:
        column, _ = statement.grouped((field,))
        sql = f"SELECT count(*), {column} FROM tasks WHERE {statement.where(parse_filter(live))} GROUP BY +{column}"
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", statement.parameters)]
    connection.close()
    assert any("USING COVERING INDEX tasks:company,last_update " in step for step in plan), plan
