"""Whatever is done in whatever order, the embedded store answers like the plain one.

`EVENTS_EXAMPLES=5000 pytest tests/stores/events/embedded/test_brute_force.py` looks longer.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch, EventType, Owner, ScalarColumns, Scalars
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.comparison import assert_same, assert_same_to_restate
from tests.stores.events.embedded.merging import copy_as_of_a_crash, half_merged
from tests.stores.events.embedded.sizes import SMALL
from tests.stores.events.random_events import (
    OWNERS,
    batches,
    log_series,
    owners,
    ranges,
    sample_series,
    scalar_series,
    selections,
    times,
    types,
)
from tests.stores.events.whole import checksums_of, put_all, source_of

operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("again"), st.integers(0, 5)),
        st.tuples(st.sampled_from(["put", "put_and_add"]), batches),
        st.tuples(st.just("merge")),
        st.tuples(st.just("merge")),
        st.tuples(st.just("merge_meanwhile"), batches),
        st.tuples(st.just("seal")),
        st.tuples(st.sampled_from(["reopen", "crash", "compare", "tell"])),
        st.tuples(st.just("restated"), st.sets(owners)),
        st.tuples(st.just("delete"), st.lists(owners, min_size=1, max_size=2), types),
        st.tuples(st.just("delete_logs"), log_series, st.none() | times, selections),
        st.tuples(st.just("delete_samples"), sample_series, ranges, st.none() | times),
        st.tuples(st.just("thin_scalars"), scalar_series, st.integers(12, 20)),
    ),
    max_size=14,
)


class Both:
    """The two stores that the same is done to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._generation = 0
        self._store = self._made()
        self._plain = PlainEventStore()
        self._added: list[EventBatch] = []

    def _made(self) -> EmbeddedEventStore:
        folder = self._folder / str(self._generation)
        return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6, bounds=SMALL)

    async def run(self, operations: list[tuple[Any, ...]]) -> None:
        await self._store.open()
        try:
            for name, *arguments in [*operations, ("compare",)]:
                await getattr(self, f"do_{name}")(*arguments)
        finally:
            await self._store.close()

    async def do_add(self, batch: EventBatch) -> None:
        await self._store.add(batch)
        await self._plain.add(batch)
        self._added.append(batch)

    async def do_again(self, number: int) -> None:
        if number < len(self._added):
            await self.do_add(self._added[number])

    async def do_put(self, batch: EventBatch) -> None:
        await put_all(await source_of(batch), self._plain, self._store)

    async def do_put_and_add(self, batch: EventBatch) -> None:
        await self.do_put(batch)
        await self.do_add(batch)

    async def do_merge(self) -> None:
        await self._store.merge()

    async def do_seal(self) -> None:
        await self._store.merge()
        await self._store.seal()

    async def do_merge_meanwhile(self, batch: EventBatch) -> None:
        """A batch arrives, and all is read, while a merge is half done."""
        async with half_merged(self._store):
            await self.do_add(batch)
            await self.do_compare()

    async def do_reopen(self) -> None:
        for one in (self._store, self._plain):
            await one.close()
            await one.open()

    async def do_crash(self) -> None:
        """Go on with the files as they are now."""
        before, old = self._store, self._folder / str(self._generation)
        self._generation += 1
        copy_as_of_a_crash(before, old, self._folder / str(self._generation))
        self._store = self._made()
        await before.close()
        await self._store.open()
        # Who was restated in memory only is restated again: more than needed does no harm.
        self._plain.unstated |= self._store._parts.unmerged.unstated
        await self._plain.open()

    async def do_tell(self) -> None:
        await assert_same_to_restate(self._store, self._plain)

    async def do_restated(self, owners: set[Owner]) -> None:
        await self._store.restated(owners)
        await self._plain.restated(owners)

    async def do_delete(self, owners: list[Owner], types: list[EventType] | None) -> None:
        assert await self._store.delete(owners, types) == await self._plain.delete(owners, types)

    async def do_delete_logs(self, *arguments: Any) -> None:
        assert await self._store.delete_logs(*arguments) == await self._plain.delete_logs(*arguments)

    async def do_delete_samples(self, *arguments: Any) -> None:
        assert await self._store.delete_samples(*arguments) == await self._plain.delete_samples(*arguments)

    async def do_thin_scalars(self, series: SeriesQuery, points: int) -> None:
        """What is merged when they are thinned has the checksums of what was read before."""
        read = await checksums_of(self._store.whole_points(series))
        gone = await self._store.thin_scalars(series, points, read)
        assert gone == await self._plain.thin_scalars(series, points)

    async def do_compare(self) -> None:
        await assert_same(self._store, self._plain, OWNERS)


#: Durations that are cut to 2⁶³ − 1, and one that is shorter by 2: many points for few buckets of one millisecond.
LONG_DURATIONS = EventBatch(
    0,
    Scalars.of(
        [
            ScalarColumns(
                OWNERS[0], "a", "x", "", np.arange(40), np.array([-(2**63), -3, *range(38)]), np.arange(40, dtype=float)
            )
        ]
    ),
)


@pytest.mark.test
@examples(6)
@given(operations)
@example([("add", LONG_DURATIONS), ("merge",)])
def test_the_embedded_store_answers_like_the_plain_one(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Both(Path(folder)).run(operations))
