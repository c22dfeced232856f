"""An SQLite document store with what every server has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.services.access import defaults
from apiserver.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.sqlite import SqliteDocumentStore

SETTINGS = Settings(company="c0ffee")


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[DocumentStore]:
    store = SqliteDocumentStore(tmp_path / "documents.db")
    await store.open()
    await defaults.ensure_defaults(store, SETTINGS)
    yield store
    await store.close()
