"""Whatever is stored, in whatever pages it is walked, and whatever arrives meanwhile: each event comes once.

`EVENTS_EXAMPLES=1000 pytest tests/reading/test_paging.py` looks longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import SAMPLE_TYPES, BucketAxis, EventType, LogPosition, MetricSelection
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading import logs, raw_points, samples, task_events
from apiserver.reading.task_events import Position
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.reading.any_events import METRICS, Line, add, body_of, event, identities, looked_at
from tests.reading.events import LOGS, TASK
from tests.stores.events.embedded.sizes import SMALL

pytestmark = pytest.mark.anyio

Pages = AsyncIterator[list[Any]]
"""Pages of what tells events apart."""
Walk = Callable[[EventStore, int, bool], Pages]
M = SeriesQuery(TASK, EventType.SCALAR, [MetricSelection(METRICS[0])])
#: The iterations that are too large for a value, by the values that stand for them.
ITERATIONS = {10**12: 2**63 - 1, -(10**12): -(2**63)}


@pytest.fixture
def bounds() -> EmbeddedBounds:
    return SMALL


def name(line: Line) -> Any:
    """What tells an event from all others."""
    if line["type"] == EventType.LOG:
        return line["msg"]
    return (line["type"], line["iter"], line["metric"], line["variant"], line.get("key", ""))


def names(events: Any) -> list[Any]:
    return [name(line) for line in orjson.loads(orjson.dumps(events))]


def all_events(type: EventType | None) -> Walk:
    async def walk(store: EventStore, limit: int, descending: bool) -> Pages:
        position: Position | None = None
        while True:
            page = await task_events.page(store, TASK, type, PageQuery(limit, position, descending))
            if not page.events:
                return
            yield names(page.events)
            position = page.position

    return walk


async def scalars_of_a_metric(store: EventStore, limit: int, descending: bool) -> Pages:
    iteration: int | None = None
    while found := await task_events.scalars(store, M, PageQuery(limit, iteration, descending)):
        yield names([event for _, event in found])
        iteration = found[-1][0]


async def log_by_position(store: EventStore, limit: int, descending: bool) -> Pages:
    after: LogPosition | None = None
    while (page := await logs.page(store, LOGS, PageQuery(limit, after, descending))).events:
        assert len(page.events) <= limit
        assert page.total == await store.log_count(LOGS)
        yield names(page.events)
        after = page.last


async def log_by_time(store: EventStore, limit: int, descending: bool) -> Pages:
    after: LogPosition | None = None
    while True:
        page = await logs.page(store, LOGS, PageQuery(limit, after, descending, whole=True))
        if not page.events:
            return
        yield names(page.events)
        after = logs.beyond(page.events[-1]["timestamp"], earlier=descending)


def raw(axis: BucketAxis) -> Walk:
    async def walk(store: EventStore, limit: int, descending: bool) -> Pages:
        beyond: int | None = None
        while (page := await raw_points.page(store, M, axis, PageQuery(limit, beyond))).returned:
            yield [
                (EventType.SCALAR, ITERATIONS.get(value, int(value)), METRICS[0], variant, "")
                for variant, (_, values) in page.variants.items()
                for value in values.tolist()
            ]
            beyond = page.last

    return walk


def iterations(type: EventType, *, beyond: int | None = None) -> Walk:
    """To earlier iterations from the newest on, or to later ones from `beyond` on."""

    async def walk(store: EventStore, limit: int, descending: bool) -> Pages:
        seen = None if beyond is None else (beyond, beyond)
        while True:
            series = SeriesQuery(TASK, type)
            page = await samples.walk(store, series, iterations=limit, seen=seen, earlier=beyond is None)
            if not page.iterations:
                return
            assert len(page.iterations) <= limit
            yield names([orjson.Fragment(sample.document) for _, found in page.iterations for sample in found])
            seen = page.seen

    return walk


SCALARS_OF_M = {"types": [EventType.SCALAR], "metrics": METRICS[:1]}
WALKS: dict[str, tuple[Walk, dict[str, Any]]] = {
    "all": (all_events(None), {}),
    **{type.name: (all_events(type), {"types": [type]}) for type in EventType},
    "scalars of a metric": (scalars_of_a_metric, SCALARS_OF_M),
    "log by position": (log_by_position, {"types": [EventType.LOG]}),
    "log by time": (log_by_time, {"types": [EventType.LOG]}),
    "raw by iteration": (raw(BucketAxis.ITER), SCALARS_OF_M),
    "raw by time": (raw(BucketAxis.TIMESTAMP), SCALARS_OF_M),
    **{f"{type.name} to earlier": (iterations(type), {"types": [type]}) for type in SAMPLE_TYPES},
    **{f"{type.name} to later": (iterations(type, beyond=2), {"types": [type], "beyond": 2}) for type in SAMPLE_TYPES},
}


def walked(
    line: Line, types: list[EventType] | None = None, metrics: tuple[str, ...] = METRICS, beyond: int = -(2**64)
) -> bool:
    """Whether a walk goes over the event."""
    of_type = types is None or line["type"] in types
    return of_type and line.get("metric", METRICS[0]) in metrics and line.get("iter", 0) > beyond


def lines_of(found: list[Any], times: list[int]) -> list[Line]:
    """Events of these identities, whose values tell their iterations, and a log line for each time."""
    values = {iter: value for value, iter in ITERATIONS.items()}
    lines = [event(identity, values.get(identity[1], identity[1])) for identity in found]
    return lines + [{"type": "log", "task": TASK.id, "timestamp": time, "msg": ""} for time in times]


batches = st.builds(lines_of, st.lists(identities, max_size=15), st.lists(st.integers(0, 6), max_size=10))


@pytest.mark.check
@pytest.mark.parametrize("walk", WALKS)
@given(
    first=st.lists(batches, max_size=3),
    later=st.lists(batches, max_size=4),
    limit=st.integers(1, 12),
    descending=st.booleans(),
    merges=st.sampled_from(["never", "before", "always"]),
)
@looked_at
async def test_each_event_comes_once_while_others_arrive(
    store: EmbeddedEventStore,
    walk: str,
    first: list[list[Line]],
    later: list[list[Line]],
    limit: int,
    descending: bool,
    merges: str,
) -> None:
    pages, over = WALKS[walk]
    await store.delete([TASK])
    known: set[Any] = set()

    async def arrive(lines: list[Line]) -> None:
        for line in lines:
            if line["type"] == "log":
                line["msg"] = f"line {len(known)}"
            if walked(line, **over):
                known.add(name(line))
        if lines:
            await add(store, body_of(lines))

    for lines in first:
        await arrive(lines)
        if merges != "never":
            await store.merge()
    at_first = set(known)
    came: list[Any] = []
    async for page in pages(store, limit, descending):
        assert page
        came += page
        assert len(came) <= len(known)
        if later:
            await arrive(later.pop())
            if merges == "always":
                await store.merge()
    assert [name for name, times in Counter(came).items() if times > 1] == []
    assert at_first <= set(came) <= known
    if walk == "all" or walk in EventType.__members__:
        assert await store.events_count(TASK, over.get("types")) == len(known)
    if walk.startswith("raw"):
        assert await raw_points.count(store, M) == len(known)
