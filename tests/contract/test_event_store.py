"""What every event store does with the events of all types, by its protocol alone: keep, count, delete, restate."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.events.model import SAMPLE_TYPES, EventType, MetricSelection, Owner, SeriesName
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStore
from tests.contract.event_stores import (
    LOGS,
    OWNER,
    PLOTS,
    SCALARS,
    Case,
    batch,
    case,
    iters,
    lines,
    messages,
    sample,
    scalars,
    select,
)

__all__ = ["case"]

pytestmark = pytest.mark.anyio

OTHERS = [
    Owner("other company", "task"),
    Owner("company", "other task"),
    Owner("company", "task", is_model=True),
    Owner("company\0task", ""),
    Owner("", ""),
]

FILLED = 2 * len(EventType)


async def fill(store: EventStore, *owners: Owner) -> None:
    """Two events of each type for each owner."""
    for owner in owners:
        samples = [sample(n, type=type, owner=owner) for type in SAMPLE_TYPES for n in range(2)]
        await store.add(batch(scalars([1.0, 2.0], owner=owner), lines(["a", "b"], owner=owner, digest=b"d"), *samples))


async def test_an_unknown_owner_has_nothing(case: Case) -> None:
    store = case.store
    assert await store.series(OWNER) == []
    assert await store.events_count(OWNER) == 0
    assert await store.log_count(LOGS) == 0
    assert await messages(store) == []
    assert (await store.scalar_points(SCALARS, PageQuery(10))).iters.tolist() == []
    assert await store.last_values(SCALARS, 3) == {}
    assert await store.latest_samples(PLOTS, 1) == []
    assert await store.delete([OWNER]) == 0
    assert await store.delete_logs(LOGS, None) == 0


async def test_an_empty_batch_is_nothing(case: Case) -> None:
    await case.store.add(batch())
    assert [owner async for owner in case.store.owners_to_restate()] == []


async def test_owners_are_apart(case: Case) -> None:
    await fill(case.store, OWNER)
    await case.settle()
    for owner in OTHERS:
        assert await case.store.events_count(owner) == 0
        assert await case.store.series(owner) == []
        assert await messages(case.store, SeriesQuery(owner, EventType.LOG)) == []
    await fill(case.store, *OTHERS)
    await case.settle()
    assert await case.store.delete(OTHERS[:2]) == 2 * FILLED
    for owner in (OWNER, *OTHERS[2:]):
        assert await case.store.events_count(owner) == FILLED


async def test_series_of_all_types(case: Case) -> None:
    await fill(case.store, OWNER)
    await case.settle()
    await case.store.add(batch(scalars([1.0], variant="valid"), lines(["x"], metric="other")))
    found = await case.store.series(OWNER)
    assert found == sorted(
        [SeriesName(type, "plots", "roc") for type in SAMPLE_TYPES]
        + [SeriesName(EventType.SCALAR, "loss", variant) for variant in ("train", "valid")]
        + [SeriesName(EventType.LOG, metric, "") for metric in ("console", "other")]
    )
    assert await case.store.series(OWNER, [EventType.LOG]) == [name for name in found if name.type is EventType.LOG]


async def test_events_are_counted_by_type(case: Case) -> None:
    await fill(case.store, OWNER)
    await case.settle()
    await fill(case.store, OWNER)
    for type in EventType:
        assert await case.store.events_count(OWNER, [type]) == 2
    assert await case.store.events_count(OWNER) == FILLED
    assert await case.store.events_count(OWNER, []) == 0


async def test_every_owner_is_named(case: Case) -> None:
    assert [owner async for owner in case.store.owners()] == []
    await fill(case.store, OWNER, *OTHERS[:3])
    await case.settle()
    await fill(case.store, OWNER, *OTHERS[3:])
    assert sorted([owner async for owner in case.store.owners()]) == sorted([OWNER, *OTHERS])


async def test_everything_of_an_owner_is_deleted(case: Case) -> None:
    await fill(case.store, OWNER)
    await case.settle()
    await case.store.add(batch(scalars([1.0, 5.0], iters=[1, 2]), lines(["c"]), sample(1), sample(7)))
    assert await case.store.delete([OWNER]) == FILLED + 3
    assert await case.store.events_count(OWNER) == 0
    assert await case.store.series(OWNER) == []
    await case.settle()
    assert await case.store.events_count(OWNER) == 0


async def test_one_type_is_deleted(case: Case) -> None:
    await fill(case.store, OWNER)
    await case.settle()
    for deleted, type in enumerate(EventType, start=1):
        assert await case.store.delete([OWNER], [type]) == 2
        assert await case.store.events_count(OWNER) == FILLED - 2 * deleted
        assert type not in {name.type for name in await case.store.series(OWNER)}


async def test_a_deleted_owner_may_come_back(case: Case) -> None:
    for _ in range(3):
        await fill(case.store, OWNER)
        await case.settle()
        assert await case.store.events_count(OWNER) == FILLED
        assert await messages(case.store) == ["a", "b"]
        assert await iters(case.store) == [0, 1]
        assert await case.store.delete([OWNER, OWNER]) == FILLED


async def test_names_are_not_joined(case: Case) -> None:
    pairs = [("a", "b/c"), ("a/b", "c"), ("a\0b", "c"), ("a", "b\0c"), ("", "a"), ("a", "")]
    await case.store.add(batch(*(scalars([float(n)], metric=m, variant=v) for n, (m, v) in enumerate(pairs))))
    await case.settle()
    for n, (metric, variant) in enumerate(pairs):
        (stats,) = await case.store.scalar_stats(select(SCALARS, MetricSelection(metric, (variant,))))
        assert stats.sum == n


async def test_batches_may_be_added_at_once(case: Case) -> None:
    await asyncio.gather(
        *(case.store.add(batch(scalars([1.0], iters=[n]), lines([str(n)], digest=b"%d" % (n // 2)))) for n in range(40))
    )
    await case.settle()
    assert await case.store.events_count(OWNER, [EventType.SCALAR]) == 40
    assert await case.store.log_count(LOGS) == 20


async def test_owners_are_to_be_restated_until_they_are(case: Case) -> None:
    await fill(case.store, OWNER, OTHERS[0])
    await case.settle()
    assert [owner async for owner in case.store.owners_to_restate()] == sorted([OWNER, OTHERS[0]])
    await case.store.restated([OWNER, OTHERS[1]])
    assert [owner async for owner in case.store.owners_to_restate()] == [OTHERS[0]]
    await case.settle()
    assert [owner async for owner in case.store.owners_to_restate()] == [OTHERS[0]]
    await case.store.restated([OTHERS[0]])
    await case.settle()
    assert [owner async for owner in case.store.owners_to_restate()] == []
    await fill(case.store, OTHERS[1])
    await case.settle()
    assert [owner async for owner in case.store.owners_to_restate()] == [OTHERS[1]]


async def test_what_was_left_is_to_be_restated_until_somebody_was_told(case: Case) -> None:
    await fill(case.store, OWNER, OTHERS[0])
    await case.store.close()
    await case.store.open()
    await case.store.restated([OTHERS[0]])
    await fill(case.store, OTHERS[0])
    await case.store.restated([OTHERS[0]])
    assert [owner async for owner in case.store.owners_to_restate()] == sorted([OWNER, OTHERS[0]])
    await case.store.restated([OTHERS[0]])
    assert [owner async for owner in case.store.owners_to_restate()] == [OWNER]
