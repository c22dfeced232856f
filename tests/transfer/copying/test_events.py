"""Copies of events: the same in every way, whatever was interrupted, and counted."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import SAMPLE_TYPES, SINGLE_VALUE_ITERATION, EventBatch, EventType, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStore, EventStoreBusy
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.points import WholePoints
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.transfer.copying.events import EventCopy
from apiserver.transfer.copying.retrying import CopyError
from tests.chance import examples
from tests.contract.event_stores import OWNER, Case, batch, lines, sample, scalars
from tests.contract.event_stores import case as any_case
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.random_events import OWNERS, batches

__all__ = ["any_case"]

pytestmark = pytest.mark.anyio

OTHER = Owner("other company", "task", is_model=True)


#: Little is much.
BOUNDS = EmbeddedBounds(points_at_a_time=7, line_bytes_at_a_time=1000, block_lines=3)


@pytest.fixture
def case(any_case: Case, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Each store, which copies small parts."""
    store = any_case.store
    if isinstance(store, EmbeddedEventStore):
        monkeypatch.setattr(store, "bounds", BOUNDS)
    elif isinstance(store, ElasticsearchEventStore):
        monkeypatch.setattr(store._points, "bounds", ColumnarBounds(copied_points=3, points_at_a_time=7))
    return any_case


class Interrupted(Exception):
    pass


class Stopping(PlainEventStore):
    """A store that takes only so many batches and parts, and is too busy for every third, and for a read of parts."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.batches = batches
        self.asked = 0
        self.reads_fail = True

    def _take(self) -> None:
        self.asked += 1
        if self.asked % 3 == 0:
            raise EventStoreBusy("too busy", retry_after=0)
        if self.batches == 0:
            raise Interrupted
        self.batches -= 1

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        self._take()
        return await super().add(batch)

    async def put_points(self, owner: Owner, curves: Sequence[WholePoints]) -> None:
        self._take()
        await super().put_points(owner, curves)

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        self._take()
        await super().put_lines(owner, lines)

    async def whole_points(self, series: SeriesQuery) -> AsyncIterator[Sequence[WholePoints]]:
        parts = 0
        async for some in super().whole_points(series):
            yield some
            parts += 1
            if parts == 1 and self.reads_fail:
                self.reads_fail = False
                raise EventStoreBusy("too busy", retry_after=0)


async def copy(source: EventStore, target: EventStore) -> dict[EventType, int]:
    copied = EventCopy(source, target, lambda line: None, owners_at_once=2, page_of_samples=2)
    await copied.run()
    return copied.counts


async def content(store: EventStore, owner: Owner) -> list[str]:
    """All that a store holds of an owner, in order."""
    points = await store.scalar_points(SeriesQuery(owner, EventType.SCALAR), PageQuery(10**6))
    names = [points.names[n] for n in points.series.tolist()]
    columns = (points.iters.tolist(), points.timestamps.tolist(), points.values.tolist(), points.received.tolist())
    lines = [
        (line.position.timestamp, *line[1:])
        for line in await store.log_lines(SeriesQuery(owner, EventType.LOG), PageQuery(10**6))
    ]
    samples = [one for type in SAMPLE_TYPES for one in await store.samples(SeriesQuery(owner, type), PageQuery(10**6))]
    return [repr(one) for one in (*zip(names, points.workers, *columns, strict=True), *lines, *samples)]


async def unstated(store: EventStore) -> set[Owner]:
    return {owner async for owner in store.owners_to_restate()}


@pytest.mark.test
@examples(15)
@given(st.lists(batches, max_size=6), st.sets(st.sampled_from(OWNERS)), st.integers(0, 12))
def test_a_copy_answers_like_the_original_however_it_was_interrupted(
    added: list[EventBatch], restated: set[Owner], stop: int
) -> None:
    async def check() -> None:
        source, target = PlainEventStore(), Stopping(stop)
        for one in added:
            await source.add(one)
        await source.restated(restated)
        try:
            await copy(source, target)
        except Interrupted:
            target.batches = 10**9
            await copy(source, target)
        with tempfile.TemporaryDirectory() as folder:
            embedded = EmbeddedEventStore(Path(folder), bounds=BOUNDS)
            await embedded.open()
            try:
                await copy(target, embedded)
                assert [await content(embedded, owner) for owner in OWNERS] == [
                    await content(source, owner) for owner in OWNERS
                ]
                assert await unstated(embedded) == await unstated(source)
            finally:
                await embedded.close()

    asyncio.run(check())


@pytest.mark.test
async def test_to_and_from_every_store(case: Case) -> None:
    source, back = PlainEventStore(), PlainEventStore()
    nan, inf = float("nan"), float("inf")
    await source.add(batch(scalars([1.0, nan, inf, -inf, -0.0], worker="v"), sample(1), lines(["a", "b"]), received=5))
    await source.add(batch(scalars([0.1] * 9, iters=range(-2, 7), worker="w"), scalars([2.0], metric="m"), received=7))
    await source.add(batch(scalars([0.5], iters=[SINGLE_VALUE_ITERATION], metric="accuracy"), received=9))
    await source.add(batch(lines([str(n) for n in range(10)], timestamps=[3] * 10), received=8))
    await source.add(batch(lines(["late"], timestamps=[3]), received=6))
    for type in SAMPLE_TYPES:
        samples = [sample(n, type=type, key=key, owner=OTHER) for n in range(3) for key in "kl"]
        await source.add(batch(*samples, scalars([1.0], owner=OTHER)))
    await source.restated([OTHER])
    counts = await copy(source, case.store)
    assert counts == {
        type: await source.events_count(OWNER, [type]) + await source.events_count(OTHER, [type]) for type in EventType
    }
    assert await unstated(case.store) == {OWNER}
    await case.settle()
    assert await copy(source, case.store) == counts
    assert await copy(case.store, back) == counts
    assert [await content(back, owner) for owner in (OWNER, OTHER)] == [
        await content(source, owner) for owner in (OWNER, OTHER)
    ]


@pytest.mark.test
async def test_bodies_that_are_sent_again_add_no_line(case: Case) -> None:
    source, back = PlainEventStore(), PlainEventStore()
    sent = [batch(lines([f"{n}", "next"], timestamps=[n, 7], digest=bytes([n]) * 16)) for n in range(6)]
    deleted = batch(lines(["gone"], digest=b"gone" * 4, owner=OTHER), scalars([1.0], owner=OTHER))
    for one in (*sent, deleted):
        await source.add(one)
    await source.delete_logs(SeriesQuery(OTHER, EventType.LOG), None)
    await copy(source, case.store)
    await case.settle()
    await copy(case.store, back)
    fresh = batch(lines(["fresh"], timestamps=[3], digest=b"fresh"))
    for store in (source, case.store, back):
        for one in (*sent, deleted, fresh, fresh):
            await store.add(one)
        await case.settle()
        assert [await content(store, owner) for owner in (OWNER, OTHER)] == [
            await content(source, owner) for owner in (OWNER, OTHER)
        ]
        assert await store.log_count(SeriesQuery(OWNER, EventType.LOG)) == 13
        assert await store.log_count(SeriesQuery(OTHER, EventType.LOG)) == 0
        await store.delete([OWNER])
        await store.add(sent[0])
        assert await store.log_count(SeriesQuery(OWNER, EventType.LOG)) == 2
        await store.delete([OWNER])
        for one in (*sent, fresh):
            await store.add(one)


async def test_a_page_that_is_sent_again_adds_no_line() -> None:
    source, target = PlainEventStore(), PlainEventStore()
    await source.add(batch(lines([str(n) for n in range(10)], timestamps=[1] * 10)))
    await copy(source, target)
    await target.delete_logs(SeriesQuery(OWNER, EventType.LOG), None)
    await target.add(batch(lines(["other"])))
    with pytest.raises(CopyError, match="the source has 10 events of type 'log' of 'task', the target 1"):
        await copy(source, target)


async def test_what_is_done_is_passed_over() -> None:
    source, target = PlainEventStore(), Stopping(100)
    for n in range(6):
        await source.add(batch(scalars([1.0], owner=Owner("c", str(n)))))
    await copy(source, target)
    asked = target.asked
    await source.add(batch(scalars([1.0, 2.0], owner=Owner("c", "3"))))
    await copy(source, target)
    assert target.asked - asked <= 2


async def test_a_target_that_holds_something_else_is_refused() -> None:
    source, target = PlainEventStore(), PlainEventStore()
    await source.add(batch(scalars([1.0])))
    await target.add(batch(scalars([1.0], owner=OTHER)))
    with pytest.raises(CopyError, match="holds events of 'task', but the source has none"):
        await copy(source, target)
    assert await target.events_count(OWNER) == 0


async def test_what_a_target_has_beside_is_deleted_if_the_copy_replaces() -> None:
    source, target = PlainEventStore(), PlainEventStore()
    await source.add(batch(scalars([1.0]), lines(["a"])))
    await target.add(batch(scalars([1.0], owner=OTHER)))
    await target.add(batch(scalars([5.0, 6.0], metric="else"), lines(["b", "c"]), sample(1)))
    await EventCopy(source, target, lambda line: None, replaces=True).run()
    for owner in (OWNER, OTHER):
        assert await content(target, owner) == await content(source, owner)


async def test_what_the_target_refuses_is_an_error() -> None:
    class Refusing(PlainEventStore):
        async def add(self, batch: EventBatch) -> Mapping[str, int]:
            return {"too long": 1}

    source = PlainEventStore()
    await source.add(batch(sample(1)))
    with pytest.raises(CopyError, match="refuses an event of 'task': too long"):
        await copy(source, Refusing())
