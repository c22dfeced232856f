"""Waiting for what a store does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, scalars

_SECONDS = 120
_PAUSE = 0.002


async def eventually(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; it fails the test if that takes very long."""
    async with asyncio.timeout(_SECONDS):
        while not condition():  # noqa: ASYNC110  # files and threads do not tell
            await asyncio.sleep(_PAUSE)


async def add_until_busy(store: EmbeddedEventStore, first: int = 0) -> tuple[int, EventStoreBusy]:
    """Add points at the iterations from `first` on; return the first that was refused, and why."""
    while True:
        try:
            await store.add(batch(scalars([1.0] * 10, iters=range(first, first + 10))))
        except EventStoreBusy as busy:
            return first, busy
        first += 10
