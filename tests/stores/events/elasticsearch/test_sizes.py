"""What is large is complete and exact on Elasticsearch, too. `EVENTS_POINTS=1000000` makes the long series longer."""

from __future__ import annotations

import os

import numpy as np
import pytest

from apiserver.events.aggregates import ENVELOPE, Aggregate
from apiserver.events.model import BucketAxis, EventType, MetricSelection, ScalarColumns, ScalarPosition
from apiserver.events.queries import BucketQuery, PageQuery, SeriesQuery
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.sizes import may_go_on
from tests.contract.event_stores import LOGS, OWNER, SCALARS, batch, lines

COUNT, MEAN, LAST = Aggregate.COUNT, Aggregate.MEAN, Aggregate.LAST

pytestmark = pytest.mark.anyio

POINTS = int(os.environ.get("EVENTS_POINTS", "100000"))
VARIANTS, LINES = 5_000, 100_000


def points(variant: str, numbers: range) -> ScalarColumns:
    """Points whose timestamps and values are their iterations."""
    iters = np.array(numbers, np.int64)
    return ScalarColumns(OWNER, "metric", variant, "worker", iters, iters, iters.astype(np.float64))


async def test_thousands_of_variants(store: ElasticsearchEventStore) -> None:
    await store.add(batch(*(points(f"{n:04}", range(n % 3 + 1)) for n in range(VARIANTS))))
    found = await store.scalar_stats(SeriesQuery(OWNER, EventType.SCALAR, [MetricSelection("metric")]))
    assert [(one.variant, one.count, one.last_value) for one in found] == [
        (f"{n:04}", n % 3 + 1, n % 3) for n in range(VARIANTS)
    ]
    histogram = await store.scalar_buckets(SCALARS, BucketQuery(BucketAxis.ITER, lambda *_: 1))
    assert [one.values[MEAN].tolist() for one in histogram] == [list(range(n % 3 + 1)) for n in range(VARIANTS)]
    assert len(await store.last_values(SCALARS, 1)) == VARIANTS


async def test_a_long_series(store: ElasticsearchEventStore) -> None:
    for start in range(0, POINTS, 20_000):
        await store.add(batch(points("long", range(start, min(start + 20_000, POINTS)))))
    (stats,) = await store.scalar_stats(SCALARS)
    assert (stats.count, stats.min_iter, stats.max_iter) == (POINTS, 0, POINTS - 1)
    assert stats.sum == POINTS * (POINTS - 1) / 2
    (whole,) = await store.scalar_buckets(SCALARS, BucketQuery(BucketAxis.ITER, lambda *_: 1))
    assert np.array_equal(whole.x, np.arange(POINTS))
    assert np.array_equal(whole.values[MEAN], np.arange(POINTS))
    (wide,) = await store.scalar_buckets(SCALARS, BucketQuery(BucketAxis.ITER, lambda *_: 1000, aggregates=ENVELOPE))
    assert (wide.values[COUNT].tolist(), wide.values[LAST].tolist()) == (
        [1000] * (POINTS // 1000),
        list(range(999, POINTS, 1000)),
    )
    after = ScalarPosition(POINTS // 2, "metric", "long")
    page = await store.scalar_points(SCALARS, PageQuery(25_000, after))
    assert np.array_equal(page.iters, np.arange(POINTS // 2 + 1, min(POINTS // 2 + 25_001, POINTS)))


async def test_many_lines_of_one_timestamp(store: ElasticsearchEventStore) -> None:
    sent = [f"line {n}" for n in range(LINES)]
    for start in range(0, LINES, 10_000):
        part = sent[start : start + 10_000]
        await store.add(batch(lines(part, timestamps=[7] * len(part), digest=b"%d" % start)))
    assert await store.log_count(LOGS) == LINES
    found = await store.log_lines(LOGS, PageQuery(100, whole=True))
    while may_go_on(page := await store.log_lines(LOGS, PageQuery(LINES, found[-1].position)), LINES):
        found += page
    assert [line.message for line in [*found, *page]] == sent
    assert len(found) > LINES // 3
    middle = await store.log_lines(LOGS, PageQuery(500, found[LINES // 2].position, descending=True))
    assert [line.message for line in middle] == sent[LINES // 2 - 500 : LINES // 2][::-1]
