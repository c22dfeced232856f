"""Holds, which calls of servers with different clocks see alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.common.times import from_now
from apiserver.services.documents.holds import Hold
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

pytestmark = pytest.mark.anyio

HOLD = Hold("being_deleted_until", 60.0)


@pytest.mark.parametrize(("later", "is_held"), [(-61, False), (-59, True), (0, True), (9, True), (11, False)])
async def test_a_hold_holds_if_its_call_came_a_little_later_or_its_clock_is_ahead(
    tmp_path: Path, later: float, is_held: bool
) -> None:
    """A condition may wait before it is applied: a model was published while its task was deleted."""
    store = SqliteDocumentStore(tmp_path / "documents.db")
    await store.open()
    try:
        condition = HOLD.condition()
        model: Document = {"id": "m", "company": "c", HOLD.field: from_now(HOLD.seconds + later)}
        await store.insert("models", [model])
        assert await store.count("models", condition) == is_held
        assert HOLD.holds(model) == is_held
    finally:
        await store.close()
