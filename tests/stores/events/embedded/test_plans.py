"""No read looks at more than its owner's rows: every query goes by an index, whatever else the database holds."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from apiserver.events.model import SAMPLE_TYPES, EventType, MetricSelection
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, batch, lines, sample, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.comparison import assert_same
from tests.stores.events.embedded.sizes import SMALL

pytestmark = pytest.mark.anyio

#: Tables without an owner's rows, or that are made for the one query.
_SMALL = ("state", "json_each", "CONSTANT ROW", "unsealed_chunks")


@pytest.mark.test
async def test_every_read_goes_by_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: set[str] = set()
    plain_reader = Database.reader

    def traced(self: Database) -> sqlite3.Connection:
        connection = plain_reader(self)
        connection.set_trace_callback(statements.add)
        return connection

    monkeypatch.setattr(Database, "reader", traced)
    store, plain = EmbeddedEventStore(tmp_path, bounds=SMALL), PlainEventStore()
    await store.open()
    sent = batch(
        *(scalars([float(n) for n in range(40)], metric=m, variant="x") for m in "ab"),
        scalars([1.0], metric="a", variant="y"),
        lines([str(n) for n in range(30)]),
        lines(["other"], metric="a"),
        *(sample(n, type=type, metric="a", variant="x") for n in range(5) for type in SAMPLE_TYPES),
    )
    for one in (store, plain):
        await one.add(sent)
    await store.merge()
    await store.log_lines(SeriesQuery(OWNER, EventType.LOG, [MetricSelection("a")]), PageQuery(1))
    await assert_same(store, plain, [OWNER])
    await store.series(OWNER, [EventType.PLOT])
    await store.close()
    connection = sqlite3.connect(tmp_path / "events.db")
    queries = [statement for statement in statements if statement.startswith("SELECT")]
    kinds = {re.sub(r"\d+", "", query) for query in queries}
    assert len(kinds) > 15
    for query in queries:
        for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}"):
            assert not step.startswith("SCAN") or any(name in step for name in _SMALL), (query, step)
    connection.close()
