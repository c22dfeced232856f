"""A real event store to read from, and short ways to fill it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.stores.events.embedded.store import EmbeddedEventStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedEventStore]:
    store = EmbeddedEventStore(tmp_path / "events")
    await store.open()
    yield store
    await store.close()
