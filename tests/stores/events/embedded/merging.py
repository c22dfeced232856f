"""Stops merges, so that something can be done meanwhile: half-way, or before they begin."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.stores.events.embedded import merge, samples
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.stores.events.embedded.waiting import eventually


@asynccontextmanager
async def half_merged(store: EmbeddedEventStore) -> AsyncIterator[None]:
    """While inside, a merge of the store is half done, if there is anything to merge; it goes on afterwards."""
    halfway, go_on = threading.Event(), threading.Event()
    real = samples.merge_samples

    def wait(*arguments: Any) -> None:
        halfway.set()
        go_on.wait()
        real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "merge_samples", wait)
        merging = asyncio.create_task(store.merge())
        try:
            await eventually(lambda: halfway.is_set() or merging.done())
            yield
        finally:
            go_on.set()
        await merging


def copy_as_of_a_crash(store: EmbeddedEventStore, folder: Path, to: Path) -> None:
    """Copy the folder that a store is in, as it is now, while nobody adds to the store.

    Merges, deletions and sealing wait: one of them could delete a journal after its database was copied, or write to a
    file while it is copied.
    """
    with store._parts.merger._working:
        shutil.copytree(folder, to)
