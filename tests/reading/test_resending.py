"""What is sent again, or in other parts and another order, changes no answer.

`EVENTS_EXAMPLES=1000 pytest tests/reading/test_resending.py` looks longer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import SAMPLE_TYPES, BucketAxis, EventType, MetricSelection
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading import latest_scalars, logs, raw_points, single_values, task_events
from apiserver.reading.histogram import HistogramQuery, Key, histogram
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.reading.any_events import METRICS, Line, add, body_of, events, looked_at
from tests.reading.events import LOGS, SCALARS, TASK
from tests.stores.events.embedded.sizes import SMALL

pytestmark = pytest.mark.anyio

MANY = 10_000


@pytest.fixture
def bounds() -> EmbeddedBounds:
    """Blocks may widen buckets, and what is merged when decides which blocks there are."""
    return replace(SMALL, most_widening=0)


async def answers(store: EventStore) -> dict[str, Any]:
    """What readers are told of everything but the log."""
    found: dict[str, Any] = {}
    for key in (Key.ITER, Key.TIMESTAMP):
        for count in (0, 3):
            found[f"histogram {key} {count}"] = await histogram(
                store, SCALARS, HistogramQuery(count, key, envelope=True)
            )
    for metric in METRICS:
        for axis in BucketAxis:
            series = SeriesQuery(TASK, EventType.SCALAR, [MetricSelection(metric)])
            page = await raw_points.page(store, series, axis, PageQuery(MANY))
            found[f"raw {metric} {axis}"] = page.variants
    for type in (EventType.SCALAR, *SAMPLE_TYPES):
        page_of_type = await task_events.page(store, TASK, type, PageQuery(MANY, descending=True))
        found[f"events {type}"] = page_of_type.events
        found[f"count {type}"] = await store.events_count(TASK, [type])
    for type in SAMPLE_TYPES:
        found[f"latest {type}"] = [
            orjson.Fragment(sample.document) for sample in await store.latest_samples(SeriesQuery(TASK, type), 2)
        ]
    found["stats"] = [repr(stats) for stats in await store.scalar_stats(SCALARS)]
    found["latest"] = await latest_scalars.latest_scalars(store, SCALARS)
    found["single values"] = await single_values.single_values(store, SCALARS)
    found["series"] = [list(name) for name in await store.series(TASK, [EventType.SCALAR, *SAMPLE_TYPES])]
    plain: dict[str, Any] = orjson.loads(orjson.dumps(found, option=orjson.OPT_SERIALIZE_NUMPY))
    return plain


async def log(store: EventStore) -> list[Any]:
    """The log as readers see it, and its total."""
    page = await logs.page(store, LOGS, PageQuery(MANY, whole=True))
    return [page.total, page.events]


async def fill(store: EmbeddedEventStore, bodies: list[bytes], merges: list[bool]) -> None:
    await store.delete([TASK])
    for number, body in enumerate(bodies):
        await add(store, body)
        if merges[number % len(merges)]:
            await store.merge()


def bodies_of(lines: list[Line], size: int) -> list[bytes]:
    """The lines in bodies of so many."""
    return [body_of(lines[start : start + size]) for start in range(0, len(lines), size)]


merges = st.lists(st.booleans(), min_size=1, max_size=4)


@pytest.mark.test
@given(
    lines=events(),
    size=st.integers(1, 12),
    merges=merges,
    again=st.lists(st.tuples(st.integers(0, 99), st.booleans()), max_size=5),
)
@looked_at
async def test_a_batch_sent_again_changes_no_answer(
    store: EmbeddedEventStore, lines: list[Line], size: int, merges: list[bool], again: list[tuple[int, bool]]
) -> None:
    bodies = bodies_of(lines, size)
    await fill(store, bodies, merges)
    before = await answers(store), await log(store)
    printed = Counter(
        (line["timestamp"], line["msg"], line["worker"])
        for body in dict.fromkeys(bodies)
        for line in map(orjson.loads, body.splitlines())
        if line["type"] == "log"
    )
    shown = [(line["timestamp"], line["msg"], line["worker"]) for line in before[1][1]]
    assert Counter(shown) == printed
    for number, merge in again if bodies else ():
        await add(store, bodies[number % len(bodies)])
        if merge:
            await store.merge()
    assert (await answers(store), await log(store)) == before


@pytest.mark.test
@given(lines=events(), sizes=st.tuples(st.integers(1, 12), st.integers(1, 40)), merges=merges, seed=st.integers())
@looked_at
async def test_events_other_than_logs_may_come_in_other_parts_and_another_order(
    store: EmbeddedEventStore, lines: list[Line], sizes: tuple[int, int], merges: list[bool], seed: int
) -> None:
    await fill(store, bodies_of(lines, sizes[0]), merges)
    before = await answers(store)
    lines = [line for line in lines if line["type"] != "log"]
    Random(seed).shuffle(lines)
    await fill(store, bodies_of(lines, sizes[1]), merges[::-1])
    assert await answers(store) == before


async def test_equal_lines_printed_twice_stay_two(store: EmbeddedEventStore) -> None:
    line = {"type": "log", "task": TASK.id, "timestamp": 5, "msg": "again", "worker": "w"}
    for bodies, expected in (([body_of([line, line])] * 3, 2), ([body_of([line]), body_of([line, line])], 3)):
        await fill(store, bodies, [False, True])
        assert (await log(store))[0] == expected
