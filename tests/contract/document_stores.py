"""The document stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.sqlite import SqliteDocumentStore

ENGINES: dict[str, Callable[[Path], DocumentStore]] = {
    "sqlite": lambda folder: SqliteDocumentStore(folder / "documents.db"),
}


@pytest.fixture(params=sorted(ENGINES))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    """An open store with nothing in it."""
    opened = ENGINES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()
