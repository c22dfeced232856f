"""What a store still knows when it goes on after `kill -9`, whether its events were merged by then or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, batch, lines, messages, scalars
from tests.stores.events.embedded.merging import copy_as_of_a_crash

pytestmark = pytest.mark.anyio


def unmerged(folder: Path) -> EmbeddedEventStore:
    """A store that merges only when told to, at its close, and what an earlier one left."""
    return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedEventStore]:
    made = unmerged(tmp_path / "before")
    await made.open()
    yield made
    await made.close()


@asynccontextmanager
async def after_a_crash(store: EmbeddedEventStore, folder: Path) -> AsyncIterator[EmbeddedEventStore]:
    """A store that goes on with the files of the first one as they are now."""
    copy_as_of_a_crash(store, folder / "before", folder / "after")
    found = unmerged(folder / "after")
    await found.open()
    try:
        yield found
    finally:
        await found.close()


@pytest.mark.parametrize("merged", [False, True], ids=["in the journal", "merged"])
async def test_owners_whose_documents_were_not_written_are_still_to_be_restated(
    store: EmbeddedEventStore, tmp_path: Path, merged: bool
) -> None:
    """Else a task that reports nothing more would show old last values for ever, or none."""
    await store.add(batch(scalars([1.0])))
    if merged:
        await store.merge()
    async with after_a_crash(store, tmp_path) as found:
        assert [owner async for owner in found.owners_to_restate()] == [OWNER]


async def test_lines_of_one_time_that_follow_those_in_the_journal_are_kept_behind_them(
    store: EmbeddedEventStore, tmp_path: Path
) -> None:
    """If they were numbered from the first on again, merging would take them for lines that it has."""
    await store.add(batch(lines(["a", "b"], timestamps=[0, 0])))
    async with after_a_crash(store, tmp_path) as found:
        await found.add(batch(lines(["c", "d"], timestamps=[0, 0])))
        assert await messages(found) == ["a", "b", "c", "d"]
        await found.merge()
        assert await messages(found) == ["a", "b", "c", "d"]
