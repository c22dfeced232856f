"""A real event store to read from, and short ways to fill it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore


@pytest.fixture
def bounds() -> EmbeddedBounds:
    """Those of the store. Modules may have others."""
    return BOUNDS


@pytest.fixture
async def store(tmp_path: Path, bounds: EmbeddedBounds) -> AsyncIterator[EmbeddedEventStore]:
    store = EmbeddedEventStore(tmp_path / "events", bounds=bounds)
    await store.open()
    yield store
    await store.close()
