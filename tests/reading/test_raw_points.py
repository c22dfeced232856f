"""Pages of raw points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    EventBatch,
    EventType,
    MetricSelection,
    ScalarColumns,
    Scalars,
)
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading import raw_points
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.reading.any_events import looked_at
from tests.reading.events import NOW, TASK, scalars

pytestmark = pytest.mark.anyio

M = SeriesQuery(TASK, EventType.SCALAR, [MetricSelection("m")])
Point = tuple[int, str, int]
"""(iteration, variant, timestamp)"""


def at(*points: Point) -> EventBatch:
    """Points whose values name them."""
    groups: list[ScalarColumns] = []
    for iter, variant, timestamp in points:
        (columns,) = scalars([(iter, float(iter * 100 + timestamp))], variant=variant).scalars
        columns.timestamps[:] = timestamp
        groups.append(columns)
    return EventBatch(NOW, Scalars.of(groups))


async def walk(store: EmbeddedEventStore, axis: BucketAxis, limit: int) -> list[list[tuple[int, str, float]]]:
    pages = []
    beyond = None
    while (page := await raw_points.page(store, M, axis, PageQuery(limit, beyond))).returned:
        shown = []
        for variant, (keys, values) in page.variants.items():
            assert keys.tolist() == sorted(keys.tolist())
            shown += [(key, variant, value) for key, value in zip(keys.tolist(), values.tolist(), strict=True)]
        assert len(shown) == page.returned
        pages.append(sorted(shown))
        beyond = page.last
    return pages


async def test_a_page_never_splits_a_key(store: EmbeddedEventStore) -> None:
    await store.add(at(*((n, variant, n // 2) for n in range(6) for variant in "ab")))
    by_iteration = await walk(store, BucketAxis.ITER, 5)
    assert [[key for key, _, _ in page] for page in by_iteration] == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]
    by_time = await walk(store, BucketAxis.TIMESTAMP, 5)
    assert [[key for key, _, _ in page] for page in by_time] == [[0] * 4 + [1] * 4, [2] * 4]


async def test_single_values_are_points_too(store: EmbeddedEventStore) -> None:
    single = [(SINGLE_VALUE_ITERATION, variant, 0) for variant in "abcdef"]
    await store.add(at(*single, (SINGLE_VALUE_ITERATION - 1, "a", 1), (3, "a", 2), (4, "b", 3)))
    assert await raw_points.count(store, M) == 9
    assert [len(page) for page in await walk(store, BucketAxis.ITER, 2)] == [7, 2]
    assert [len(page) for page in await walk(store, BucketAxis.TIMESTAMP, 2)] == [6, 2, 1]
    for axis in BucketAxis:
        assert [len(page) for page in await walk(store, axis, 100)] == [9]


@pytest.mark.test
@given(
    points=st.lists(st.tuples(st.integers(-5, 30), st.sampled_from("abc"), st.integers(0, 10)), max_size=40),
    limit=st.integers(1, 12),
    axis=st.sampled_from(BucketAxis),
)
@looked_at
async def test_every_point_is_on_one_page(
    store: EmbeddedEventStore,
    points: list[Point],
    limit: int,
    axis: BucketAxis,
) -> None:
    await store.delete([TASK])
    if points:
        await store.add(at(*points))
    kept = {(iter, variant): timestamp for iter, variant, timestamp in points}
    wanted = sorted(
        (iter if axis is BucketAxis.ITER else timestamp, variant, float(iter * 100 + timestamp))
        for (iter, variant), timestamp in kept.items()
    )
    pages = await walk(store, axis, limit)
    assert [point for page in pages for point in page] == wanted
    assert all(len(page) >= limit for page in pages[:-1])
    assert await raw_points.count(store, M) == len(wanted)
