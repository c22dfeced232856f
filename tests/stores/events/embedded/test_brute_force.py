"""Whatever is done in whatever order, the embedded store answers like the plain one.

`EVENTS_EXAMPLES=5000 pytest tests/stores/events/embedded/test_brute_force.py` looks longer.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.events.model import (
    SAMPLE_TYPES,
    SINGLE_VALUE_ITERATION,
    EventBatch,
    EventType,
    LogColumns,
    MetricSelection,
    Owner,
    Sample,
    ScalarColumns,
    Scalars,
)
from apiserver.stores.events.embedded import EmbeddedEventStore, merge, sample_merge
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.comparison import assert_same
from tests.stores.events.embedded.sizes import make_small
from tests.stores.events.embedded.waiting import eventually

EXAMPLES = int(os.environ.get("EVENTS_EXAMPLES", "20"))
OWNERS = (Owner("company", "task"), Owner("company", "task", is_model=True))


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        yield


owners = st.sampled_from(OWNERS)
metrics = st.sampled_from(["a", "b"])
variants = st.sampled_from(["x", "y"])
extremes = st.sampled_from([-(2**63), -(2**63) + 3, 2**63 - 4, 2**63 - 1])
iterations = st.one_of(
    st.integers(-3, 20), st.integers(-3, 20), st.just(SINGLE_VALUE_ITERATION), st.just(2**40), extremes
)
times = st.one_of(st.integers(-5, 30), st.integers(-5, 30), extremes)
# No sum of these depends much on the order of its terms.
values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1e300, 5e-324, -2.5, math.nan, math.inf, -math.inf]) | st.floats(
    -1000, 1000
)
texts = st.sampled_from(["", "one", "two\0", "three ÿ"])


@st.composite
def scalars(draw: st.DrawFn) -> ScalarColumns:
    """Points in any order, or a run of increasing iterations."""
    if draw(st.booleans()):
        start, length = draw(st.integers(-3, 40)), draw(st.integers(1, 25))
        rows = [(start + n, start + n, draw(values)) for n in range(length)]
    else:
        rows = draw(st.lists(st.tuples(iterations, times, values), min_size=1, max_size=6))
    columns = list(zip(*rows, strict=True))
    return ScalarColumns(
        draw(owners),
        draw(metrics),
        draw(variants),
        draw(texts),
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.float64),
    )


@st.composite
def logs(draw: st.DrawFn) -> LogColumns:
    row = st.tuples(times, texts, texts, texts, st.none() | st.integers(0, 3), metrics, variants)
    rows = draw(st.lists(row, min_size=1, max_size=8))
    timestamps, levels, workers, messages, iters, names, kinds = (list(column) for column in zip(*rows, strict=True))
    return LogColumns(
        owner=draw(owners),
        timestamps=np.array(timestamps, np.int64),
        levels=levels,
        workers=workers,
        messages=messages,
        iters=iters,
        metrics=names,
        variants=kinds,
        digest=draw(st.none() | st.binary(min_size=8, max_size=8)),
    )


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    return Sample(
        draw(owners),
        draw(st.sampled_from(SAMPLE_TYPES)),
        draw(metrics),
        draw(variants),
        draw(st.integers(-1, 5)),
        draw(st.sampled_from(["", "k"])),
        draw(times),
        draw(st.sampled_from([b"{}", b'{"x":1}', b'{"x":2}'])),
    )


batches = st.builds(
    EventBatch,
    received=st.integers(0, 3),
    scalars=st.lists(scalars(), max_size=4).map(Scalars.of),
    logs=st.lists(logs(), max_size=2),
    samples=st.lists(samples(), max_size=4),
)
types = st.none() | st.lists(st.sampled_from(EventType), min_size=1, max_size=2)
selections = st.lists(st.sampled_from([MetricSelection("a"), MetricSelection("b", ("x",))]), max_size=1)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("again"), st.integers(0, 5)),
        st.tuples(st.just("merge")),
        st.tuples(st.just("merge")),
        st.tuples(st.just("merge_meanwhile"), batches),
        st.tuples(st.sampled_from(["reopen", "crash", "compare"])),
        st.tuples(st.just("restated"), st.sets(owners)),
        st.tuples(st.just("delete"), st.lists(owners, min_size=1, max_size=2), types),
        st.tuples(st.just("delete_logs"), owners, st.none() | times, selections, selections),
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
        return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6)

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

    async def do_merge(self) -> None:
        await self._store.merge()

    async def do_merge_meanwhile(self, batch: EventBatch) -> None:
        """A batch arrives, and all is read, while a merge is half done."""
        halfway, go_on = threading.Event(), threading.Event()
        real = sample_merge.merge_samples

        def wait(*arguments: Any) -> None:
            halfway.set()
            go_on.wait()
            real(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merge, "merge_samples", wait)
            merging = asyncio.create_task(self._store.merge())
            try:
                await eventually(lambda: halfway.is_set() or merging.done())
                await self.do_add(batch)
                await self.do_compare()
            finally:
                go_on.set()
            await merging

    async def do_reopen(self) -> None:
        await self._store.close()
        await self._store.open()

    async def do_crash(self) -> None:
        """Go on with the files as they are now."""
        before, old = self._store, self._folder / str(self._generation)
        self._generation += 1
        with before._parts.merger._working:  # else a merge might delete a journal after its database was copied
            shutil.copytree(old, self._folder / str(self._generation))
        self._store = self._made()
        await before.close()
        await self._store.open()
        # Who was restated in memory only is restated again: more than needed does no harm.
        async for owner in self._store.owners_to_restate():
            self._plain.unstated.add(owner)

    async def do_restated(self, owners: set[Owner]) -> None:
        await self._store.restated(owners)
        await self._plain.restated(owners)

    async def do_delete(self, owners: list[Owner], types: list[EventType] | None) -> None:
        assert await self._store.delete(owners, types) == await self._plain.delete(owners, types)

    async def do_delete_logs(self, *arguments: Any) -> None:
        assert await self._store.delete_logs(*arguments) == await self._plain.delete_logs(*arguments)

    async def do_compare(self) -> None:
        await assert_same(self._store, self._plain, OWNERS)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(operations)
def test_the_embedded_store_answers_like_the_plain_one(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Both(Path(folder)).run(operations))
